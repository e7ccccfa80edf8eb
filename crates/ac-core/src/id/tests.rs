use super::*;

#[test]
fn a_pending_id_survives_its_text_form_whatever_the_provider_called_the_call() {
    for call in ["call_1", "a/b#c", "100%", "%2F", "", "ü~2"] {
        for run in ["r1", "r1~0.c", "a/b"] {
            let id = PendingId { run: run.into(), step: 3, call: call.into(), n: 2 };
            assert_eq!(id.to_string().parse::<PendingId>().unwrap(), id);
        }
    }
}

#[test]
fn text_that_names_no_wait_is_refused() {
    for text in ["", "r", "r/1", "r/1/c", "r/x/c#1", "r/1/c#x", "#1", "/#"] {
        assert_eq!(text.parse::<PendingId>(), Err(ParsePendingIdError), "{text}");
    }
}

#[test]
fn child_runs_of_different_calls_never_share_an_id() {
    let run = RunId::from("r");
    assert_ne!(child_run(&run, 1, &"2.a".into()), child_run(&run, 12, &"a".into()));
    assert_ne!(child_run(&run, 0, &"a/b".into()), child_run(&run, 0, &"a%2Fb".into()));
}
