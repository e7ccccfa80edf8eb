use clap::{CommandFactory, Parser, error::ErrorKind};

use super::*;

fn parse(args: &[&str]) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(std::iter::once("acode").chain(args.iter().copied()))
}

#[test]
fn the_definition_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn flags_stand_before_or_after_the_command() {
    let one = parse(&["--approve", "all", "--json", "exec", "do it"]).unwrap();
    let other = parse(&["exec", "do it", "--approve=all", "--json"]).unwrap();
    for cli in [one, other] {
        assert_eq!((cli.options.approve, cli.options.json), (Approve::All, Some(Json::Events)));
        assert!(matches!(cli.command, Some(Command::Exec { task: Some(task) }) if task == "do it"));
    }
    assert_eq!(parse(&["--json=all"]).unwrap().options.json, Some(Json::All));
    assert_eq!(parse(&[]).unwrap().options.json, None);
}

#[test]
fn an_answer_takes_several_values_and_ones_that_look_like_flags() {
    for (args, expected) in [
        (&["answer", "c", "one", "-2", "--approve", "all"][..], &["one", "-2"][..]),
        (&["answer", "c", "--approve", "all", "--", "--data", "-x"], &["--data", "-x"]),
    ] {
        let cli = parse(args).unwrap();
        assert_eq!(cli.options.approve, Approve::All);
        let Some(Command::Answer { id, value }) = cli.command else { panic!("not an answer") };
        assert_eq!((id.as_str(), value.iter().map(String::as_str).collect::<Vec<_>>().as_slice()), ("c", expected));
    }
    assert_eq!(parse(&["answer", "c"]).unwrap_err().kind(), ErrorKind::MissingRequiredArgument);
}

#[test]
fn what_makes_no_sense_is_refused_with_a_way_out() {
    for (args, hint) in
        [(&["--continue", "pending"][..], "exec"), (&["plan", "c", "approve", "--feedback", "x"], "reject"), (&["exec", " "], "TASK")]
    {
        let message = parse(args).unwrap().check().unwrap_err();
        assert!(message.contains(hint), "{message}");
    }
    assert_eq!(parse(&["--continue", "--thread", "t"]).unwrap_err().kind(), ErrorKind::ArgumentConflict);
    assert_eq!(parse(&["plan", "c", "maybe"]).unwrap_err().kind(), ErrorKind::InvalidValue);
    assert!(parse(&["do something"]).is_err());
}

#[test]
fn the_help_teaches() {
    let help = Cli::command().term_width(110).render_long_help().to_string();
    insta::assert_snapshot!(help);
}
