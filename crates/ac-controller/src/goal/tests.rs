use super::*;

fn goal(runs_used: u32, max_runs: Option<u32>) -> Goal {
    Goal {
        id: "g".into(),
        objective: "Ship it".into(),
        status: GoalStatus::Active,
        runs_used,
        active_duration_ms: 0,
        started_at: Timestamp::from_millis(1),
        updated_at: Timestamp::from_millis(2),
        max_runs,
        judge_model: None,
        paused_reason: None,
    }
}

fn said(decision: GoalDecision) -> Asked {
    Asked::Said(Said { decision, reason: "why".into() })
}

#[test]
fn a_goal_has_its_wire_form() {
    let mut goal = goal(0, Some(2));
    goal.judge_model = Some("p/j".into());
    let wire = json!({
        "id": "g", "objective": "Ship it", "status": "active", "runsUsed": 0, "activeDurationMs": 0, "startedAt": 1, "updatedAt": 2,
        "maxRuns": 2, "judgeModelId": "p/j"
    });
    assert_eq!(serde_json::to_value(&goal).unwrap(), wire);
    assert_eq!(serde_json::from_value::<Goal>(wire).unwrap(), goal);
}

#[test]
fn a_decision_is_found_among_words_and_nothing_is_invented() {
    let done = Some(Said { decision: GoalDecision::Done, reason: "r".into() });
    for text in [
        r#"{"decision":"done","reason":"r"}"#,
        "```json\n{\"decision\": \"done\", \"reason\": \"r\"}\n```",
        r#"I think {so}: {"x": 1} {"decision":"done","reason":"r","confidence":1} and that is it"#,
    ] {
        assert_eq!(Said::read(text), done, "{text}");
    }
    assert_eq!(Said::read(r#"{"decision":"waiting"}"#).unwrap().reason, "");
    for text in ["", "done", "{", r#"{"decision":"maybe"}"#, r#"{"decision": true}"#, "日本 {語"] {
        assert_eq!(Said::read(text), None, "{text}");
    }
}

#[test]
fn only_a_clear_continue_below_the_limit_goes_on() {
    let judge = |goal: &Goal, asked| Verdict::of(goal, 50, asked, 7);
    let verdict = judge(&goal(0, Some(2)), said(GoalDecision::Continue));
    assert!(verdict.goes_on());
    let payload = verdict.payload("Ship it");
    assert_eq!((&payload["iteration"], &payload["maxRuns"], &payload["shouldContinue"]), (&json!(1), &json!(2), &json!(true)));
    assert_eq!(verdict.text("Ship it"), "active (1/2)\nwhy\nThe goal is not reached yet, go on with it: Ship it");

    let last = judge(&goal(1, Some(2)), said(GoalDecision::Continue));
    assert!(!last.goes_on() && last.max_runs_reached);
    assert_eq!(last.status, GoalStatus::Paused);
    assert!(last.payload("Ship it")["pausedReason"].is_string());
    assert!(judge(&goal(49, None), said(GoalDecision::Continue)).max_runs_reached, "the controller's limit holds where there is no other");

    let waiting = judge(&goal(0, None), said(GoalDecision::Waiting));
    assert_eq!((waiting.goes_on(), waiting.status), (false, GoalStatus::Active));
    assert_eq!(waiting.payload("x")["waitingForUser"], true);
    assert_eq!(waiting.text("x"), "active (1/50)\nwhy");

    let done = judge(&goal(1, Some(2)), said(GoalDecision::Done));
    assert_eq!((done.goes_on(), done.status), (false, GoalStatus::Done));
    assert_eq!(done.payload("x")["results"][0]["score"], 1.0);

    let failed = judge(&goal(0, None), Asked::Failed { reason: "no answer".into(), timed_out: true });
    assert_eq!((failed.goes_on(), failed.status, failed.paused_reason.as_deref()), (false, GoalStatus::Paused, Some("no answer")));
    let payload = failed.payload("x");
    assert_eq!((&payload["judgeFailed"], &payload["timedOut"]), (&json!(true), &json!(true)));
}
