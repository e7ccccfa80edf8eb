use super::*;

/// What version 1 wrote loads for ever.
#[test]
fn a_stored_goal_loads() {
    let stored = json!({
        "schema": 1,
        "goal": {
            "id": "goal-1", "objective": "Ship it", "status": "paused", "runsUsed": 2, "activeDurationMs": 46, "startedAt": 1, "updatedAt": 2,
            "maxRuns": 5, "judgeModelId": "p/j", "pausedReason": "the judge p/j failed: model.timeout"
        },
        "judged": { "run": "r", "step": 1, "worked": 46, "at": 2, "go_on": false, "text": "paused (2/5)", "payload": { "iteration": 2 } },
        "told": "goal-1:active"
    });
    let record: Record = serde_json::from_value(stored).unwrap();
    assert_eq!((record.goal.status, record.goal.runs_used, record.key()), (GoalStatus::Paused, 2, "goal-1:paused".to_owned()));
    let judgement = record.judged.unwrap().judgement();
    assert_eq!(judgement.message.unwrap().id.as_str(), "r/goal/1", "judged again it is the same message");
    let least = json!({ "goal": { "id": "g", "objective": "o", "status": "active", "runsUsed": 0, "activeDurationMs": 0, "startedAt": 1, "updatedAt": 1 } });
    assert_eq!(serde_json::from_value::<Record>(least).unwrap().told, None);
}
