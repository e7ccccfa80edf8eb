use std::path::Path;

use agent_controller::llm::{ReqwestTransport, Router};
use clap::Parser;

use super::*;
use crate::args::Cli;

fn project(dir: &Path) -> Project {
    Project::open(dir, Some(Path::new("data"))).unwrap()
}

fn options(args: &[&str]) -> Options {
    Cli::parse_from(std::iter::once("acode").chain(args.iter().copied())).options
}

async fn choice(project: &Project, args: &[&str]) -> Result<Models, Failure> {
    choose(&options(args), project, Duration::ZERO).await
}

#[test]
fn the_name_for_the_server_is_what_follows_a_known_provider_else_all_of_it() {
    let known = Router::builder(Arc::new(ReqwestTransport::new().unwrap())).build();
    let server = |model| Server::new("http://Host:1/v1/", Some(model), &known).unwrap();
    for (model, name) in
        [("openai/gpt-x", "gpt-x"), ("maker/model", "maker/model"), ("plain", "plain"), ("host:1/plain", "plain"), ("openai/", "openai/")]
    {
        assert_eq!(server(model).model_name(model, &known), name);
    }
    assert_eq!(server("openai/gpt-x").keys, ["AC_API_KEY", "OPENAI_API_KEY"]);
    assert_eq!(server("maker/model").keys, ["AC_API_KEY"]);
    assert_eq!((server("m").name.as_str(), server("m").base_url.as_str()), ("host:1", "http://Host:1/v1"));
    for wrong in ["", "host:1", "ftp://host", "http://", "http://me:secret@host/v1", "http:///v1"] {
        assert_eq!(Server::new(wrong, None, &known).unwrap_err().exit, Exit::Usage, "{wrong}");
    }
}

#[tokio::test]
async fn a_server_is_found_again_by_later_commands_and_its_key_is_not_kept() {
    let dir = tempfile::tempdir().unwrap();
    let project = project(dir.path());
    let first = choice(&project, &["--base-url", "http://127.0.0.1:9/v1", "--model", "maker/m"]).await.unwrap();
    assert_eq!(first.model.as_str(), "127.0.0.1:9/maker/m");
    let later = choice(&project, &[]).await.unwrap();
    assert!(later.fallback && later.router.resolve(&first.model).is_ok());
    std::fs::write(project.data.join("servers.json"), "{").unwrap();
    assert!(choice(&project, &[]).await.unwrap_err().message.contains("servers.json"));
}

#[tokio::test]
async fn what_cannot_be_asked_is_refused_before_anything_begins() {
    let dir = tempfile::tempdir().unwrap();
    let project = project(dir.path());
    for (args, exit, code) in [
        (&["--model", "nonsense"][..], Exit::Usage, "model.unknown_provider"),
        (&["--model", "nobody/m"], Exit::Usage, "model.unknown_provider"),
        (&["--model", "openai/"], Exit::Usage, "model.unknown_model"),
        // Nothing listens there, so its models cannot be listed.
        (&["--base-url", "http://127.0.0.1:9/v1"], Exit::Failed, "model.connect"),
    ] {
        let failure = choice(&project, args).await.unwrap_err();
        assert_eq!((failure.exit, failure.code.as_str()), (exit, code), "{args:?}: {}", failure.message);
    }
    assert!(choice(&project, &["--base-url", "http://127.0.0.1:9/v1"]).await.unwrap_err().message.contains("--model"));
}
