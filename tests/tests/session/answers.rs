//! What waits for a person, and what an answer does; in one life of the process, and over a restart.

use ac_controller::{Answer, ApprovalDecision, Settlement, UserMessage};
use ac_core::{event::PendingKind, permission::GrantTarget};
use ac_testkit::{Transcript, Turn};
use serde_json::json;

use crate::desk::{Desk, build_mode, drain, is_end, send_and_rest, story, until};

#[tokio::test]
async fn a_plain_answer() {
    let desk = Desk::new([Turn::chunks(["Hello ", "world"]).tokens(10, 5)]);
    let controller = desk.open("");
    let session = controller.create_session("ann").await.unwrap();
    let mut events = session.subscribe();
    let settled = session.send_message("hi").await.unwrap();
    assert_eq!(settled.settlement, Settlement::Complete);
    insta::assert_snapshot!(story(&drain(&mut events)), @r#"
    [run-1] agent_start
    [run-1] message_start message-1 signal: "hi"
    [run-1] message_end id=message-1
    [run-1] message_start run-1/0 assistant: ""
    [run-1] message_update run-1/0 text "Hello world" (2 pieces)
    [run-1] usage_update usage={"completionTokens":5,"promptTokens":10,"raw":{"completion_tokens":5,"prompt_tokens":10,"total_tokens":15},"totalTokens":15}
    [run-1] message_end id=run-1/0
    [run-1] agent_end finishReason=stop reason=complete
    "#);
    let mut requests = Transcript::new();
    requests.requests(&desk.server.requests());
    insta::assert_snapshot!(requests, @r#"
    POST /v1/chat/completions model=planner tools=ask_user,submit_plan,look
      system: "AGENT\nPLAN"
      user: "hi"
    "#);
    let mut view = Transcript::new();
    view.display(&session.display_state());
    insta::assert_snapshot!(view, @r#"
    currentMessage: run-1/0 assistant: "Hello world"
    isRunning: false
    tokenUsage: {"cacheCreationInputTokens":0,"cachedInputTokens":0,"completionTokens":5,"promptTokens":10,"raw":{"completion_tokens":5,"prompt_tokens":10,"total_tokens":15},"totalTokens":15}
    "#);
    assert_eq!(session.token_usage().await.unwrap().total, 15);
    controller.shutdown().await;
}

#[tokio::test]
async fn a_call_waits_for_approval_and_runs_when_it_is_allowed() {
    let desk = Desk::new([Turn::tool("c1", "write", json!({ "what": "a.txt" })), Turn::text("done")]);
    let controller = desk.builder("").modes(build_mode()).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    let mut events = session.subscribe();
    let submitted = session.submit("write it").await.unwrap();
    submitted.handle().unwrap().resting().await;
    assert!(session.is_running(), "an approval keeps the segment open");
    let open = session.pending().await.unwrap();
    assert_eq!(
        (open.len(), open[0].kind, open[0].tool.as_str(), &open[0].args),
        (1, PendingKind::Approval, "write", &json!({ "what": "a.txt" }))
    );
    assert_eq!(desk.done(), Vec::<String>::new());
    assert!(!session.approve(&open[0].id).await.unwrap().repeated);
    assert_eq!(submitted.settled().await, Settlement::Complete);
    assert_eq!(desk.done(), ["write a.txt"]);
    insta::assert_snapshot!(story(&drain(&mut events)), @r#"
    [run-1] agent_start
    [run-1] message_start message-1 signal: "write it"
    [run-1] message_end id=message-1
    [run-1] tool_input_start threadId=thread-1 toolCallId=c1 toolName=write
    [run-1] tool_input_delta c1 "{\"what\":\"a.txt\"}"
    [run-1] tool_input_end threadId=thread-1 toolCallId=c1
    [run-1] message_start run-1/0 assistant: c1 write({"what":"a.txt"}) call (modelId=prov/builder stopReason=tool_calls)
    [run-1] tool_start args={"what":"a.txt"} threadId=thread-1 toolCallId=c1 toolName=write
    [run-1] tool_approval_required args={"what":"a.txt"} pendingId=run-1/0/c1#1 threadId=thread-1 toolCallId=c1 toolName=write
    [run-1] pending_resolved pendingId=run-1/0/c1#1 threadId=thread-1 toolCallId=c1
    [run-1] message_update event={"index":0,"part":{"toolInvocation":{"approval":{"approved":true,"id":"c1"},"args":{"what":"a.txt"},"result":"did a.txt","state":"result","toolCallId":"c1","toolName":"write"},"type":"tool-invocation"},"type":"part"} id=run-1/0
    [run-1] tool_end isError=false result="did a.txt" threadId=thread-1 toolCallId=c1
    [run-1] usage_update usage={"completionTokens":5,"promptTokens":10,"raw":{"completion_tokens":5,"prompt_tokens":10,"total_tokens":15},"totalTokens":15}
    [run-1] message_end id=run-1/0
    [run-1] message_start run-1/1 assistant: ""
    [run-1] message_update run-1/1 text "done"
    [run-1] usage_update usage={"completionTokens":5,"promptTokens":10,"raw":{"completion_tokens":5,"prompt_tokens":10,"total_tokens":15},"totalTokens":15}
    [run-1] message_end id=run-1/1
    [run-1] agent_end finishReason=stop reason=complete
    "#);
    // The same again is fine, something else is not (R6).
    assert!(session.approve(&open[0].id).await.unwrap().repeated);
    assert_eq!(session.decline(&open[0].id, None).await.unwrap_err().code(), "answer.already_resolved");
    assert!(session.pending().await.unwrap().is_empty());
    controller.shutdown().await;
}

#[tokio::test]
async fn a_declined_call_does_not_run_and_the_model_reads_why() {
    let desk = Desk::new([Turn::tool("c1", "write", json!({ "what": "a.txt" })), Turn::text("I see")]);
    let controller = desk.builder("").modes(build_mode()).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    let submitted = session.submit("write it").await.unwrap();
    submitted.handle().unwrap().resting().await;
    let mut events = session.subscribe();
    let declined = ApprovalDecision::Decline { reason: Some("not that file".into()) };
    session.respond_to_tool_approval(declined, Some(&"c1".into())).await.unwrap();
    assert_eq!(submitted.settled().await, Settlement::Complete);
    insta::assert_snapshot!(story(&drain(&mut events)), @r#"
    [run-1] pending_resolved pendingId=run-1/0/c1#1 threadId=thread-1 toolCallId=c1
    [run-1] message_update event={"index":0,"part":{"toolInvocation":{"approval":{"approved":false,"id":"c1","reason":"not that file"},"args":{"what":"a.txt"},"state":"output-denied","toolCallId":"c1","toolName":"write"},"type":"tool-invocation"},"type":"part"} id=run-1/0
    [run-1] tool_end denied=true isError=false result="not that file" threadId=thread-1 toolCallId=c1
    [run-1] usage_update usage={"completionTokens":5,"promptTokens":10,"raw":{"completion_tokens":5,"prompt_tokens":10,"total_tokens":15},"totalTokens":15}
    [run-1] message_end id=run-1/0
    [run-1] message_start run-1/1 assistant: ""
    [run-1] message_update run-1/1 text "I see"
    [run-1] usage_update usage={"completionTokens":5,"promptTokens":10,"raw":{"completion_tokens":5,"prompt_tokens":10,"total_tokens":15},"totalTokens":15}
    [run-1] message_end id=run-1/1
    [run-1] agent_end finishReason=stop reason=complete
    "#);
    assert!(desk.server.requests()[1].body.to_string().contains("not that file"));
    assert_eq!(desk.done(), Vec::<String>::new());
    controller.shutdown().await;
}

#[tokio::test]
async fn a_question_ends_the_segment_and_its_answer_opens_the_next() {
    let desk = Desk::new([Turn::tool("c1", "ask_user", json!({ "question": "Which colour?" })), Turn::text("Blue it is")]);
    let controller = desk.open("");
    let session = controller.create_session("ann").await.unwrap();
    let mut events = session.subscribe();
    let settled = session.send_message("paint").await.unwrap();
    assert_eq!(settled.settlement, Settlement::Waiting);
    assert!(!session.is_running());
    let open = session.pending().await.unwrap();
    assert_eq!((open[0].kind, &open[0].payload), (PendingKind::Question, &json!({ "question": "Which colour?" })));
    session.respond_to_tool_suspension(json!("blue"), None).await.unwrap();
    let mut all =
        until(&mut events, |body| matches!(body, ac_core::EventBody::AgentEnd { reason: ac_core::event::EndReason::Complete, .. })).await;
    insta::assert_snapshot!(story(&all), @r#"
    [run-1] agent_start
    [run-1] message_start message-1 signal: "paint"
    [run-1] message_end id=message-1
    [run-1] tool_input_start threadId=thread-1 toolCallId=c1 toolName=ask_user
    [run-1] tool_input_delta c1 "{\"question\":\"Which colour?\"}"
    [run-1] tool_input_end threadId=thread-1 toolCallId=c1
    [run-1] message_start run-1/0 assistant: c1 ask_user({"question":"Which colour?"}) call (modelId=prov/planner stopReason=tool_calls)
    [run-1] tool_start args={"question":"Which colour?"} threadId=thread-1 toolCallId=c1 toolName=ask_user
    [run-1] tool_suspended args={"question":"Which colour?"} kind=question pendingId=run-1/0/c1#1 resumeSchema="{\"$schema\":\"http://json-schema.org/draft-07/schema#\",\"anyOf\":[{\"type\":\"string\"},{\"items\":{\"type\":\"string\"},\"type\":\"array\"}]}" suspendPayload={"question":"Which colour?"} threadId=thread-1 toolCallId=c1 toolName=ask_user
    [run-1] usage_update usage={"completionTokens":5,"promptTokens":10,"raw":{"completion_tokens":5,"prompt_tokens":10,"total_tokens":15},"totalTokens":15}
    [run-1] message_end id=run-1/0
    [run-1] agent_end reason=suspended
    [run-1] agent_start
    [run-1] pending_resolved pendingId=run-1/0/c1#1 threadId=thread-1 toolCallId=c1
    [run-1] message_start run-1/0 assistant: c1 ask_user({"question":"Which colour?"}) result result={"content":"User answered: blue","isError":false} (modelId=prov/planner stopReason=tool_calls)
    [run-1] tool_end isError=false result={"content":"User answered: blue","isError":false} threadId=thread-1 toolCallId=c1
    [run-1] message_end id=run-1/0
    [run-1] message_start run-1/1 assistant: ""
    [run-1] message_update run-1/1 text "Blue it is"
    [run-1] usage_update usage={"completionTokens":5,"promptTokens":10,"raw":{"completion_tokens":5,"prompt_tokens":10,"total_tokens":15},"totalTokens":15}
    [run-1] message_end id=run-1/1
    [run-1] agent_end finishReason=stop reason=complete
    "#);
    all.clear();
    assert!(session.display_state().pending_suspensions.is_empty());
    controller.shutdown().await;
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_refused_and_the_question_stays() {
    let args = json!({ "question": "Which?", "options": [{ "label": "a" }, { "label": "b" }] });
    let desk = Desk::new([Turn::tool("c1", "ask_user", args), Turn::text("ok")]);
    let controller = desk.open("");
    let session = controller.create_session("ann").await.unwrap();
    session.send_message("choose").await.unwrap();
    let id = session.pending().await.unwrap()[0].id.clone();
    for (answer, code) in [
        (Answer::Reply { value: json!("c") }, "answer.invalid"),
        (Answer::Approve { grant: None }, "answer.invalid"),
        (Answer::RunAgain, "answer.invalid"),
    ] {
        assert_eq!(session.answer(&id, answer).await.unwrap_err().code(), code);
    }
    let mut other = id.clone();
    other.n = 7;
    assert_eq!(session.answer(&other, Answer::Reply { value: json!("a") }).await.unwrap_err().code(), "answer.not_pending");
    assert_eq!(session.pending().await.unwrap().len(), 1);
    // Another session does not answer for this one.
    let bob = controller.create_session("bob").await.unwrap();
    assert_eq!(bob.answer(&id, Answer::Reply { value: json!("a") }).await.unwrap_err().code(), "answer.not_pending");
    controller.shutdown().await;
}

#[tokio::test]
async fn an_approved_plan_moves_run_and_session_to_the_target_mode() {
    let desk = Desk::new([
        Turn::tool("c1", "submit_plan", json!({ "path": "plan.md" })),
        Turn::tool("c2", "look", json!({ "what": "around" })),
        Turn::text("built"),
    ]);
    let controller = desk.open("");
    let session = controller.create_session("ann").await.unwrap();
    let mut events = session.subscribe();
    assert_eq!(session.send_message("plan").await.unwrap().settlement, Settlement::Waiting);
    let open = session.pending().await.unwrap();
    assert_eq!(open[0].kind, PendingKind::Plan);
    drain(&mut events);
    session.answer(&open[0].id, Answer::Reply { value: json!({ "action": "approved", "title": "T" }) }).await.unwrap();
    let all = until(&mut events, is_end).await;
    insta::assert_snapshot!(story(&all), @r#"
    [run-1] mode_changed modeId=build previousModeId=plan
    [run-1] model_changed modelId=prov/builder
    [run-1] agent_start
    [run-1] pending_resolved pendingId=run-1/0/c1#1 threadId=thread-1 toolCallId=c1
    [run-1] message_start run-1/0 assistant: c1 submit_plan({"path":"plan.md"}) result result={"content":"Plan approved. Proceed with implementation following the approved plan.","isError":false,"submittedPlan":{"title":"T"},"toolId":"submit_plan"} (modelId=prov/planner stopReason=tool_calls)
    [run-1] tool_end isError=false result={"content":"Plan approved. Proceed with implementation following the approved plan.","isError":false,"submittedPlan":{"title":"T"},"toolId":"submit_plan"} threadId=thread-1 toolCallId=c1
    [run-1] message_end id=run-1/0
    [run-1] tool_input_start threadId=thread-1 toolCallId=c2 toolName=look
    [run-1] tool_input_delta c2 "{\"what\":\"around\"}"
    [run-1] tool_input_end threadId=thread-1 toolCallId=c2
    [run-1] message_start run-1/1 assistant: c2 look({"what":"around"}) call (modelId=prov/builder stopReason=tool_calls)
    [run-1] tool_start args={"what":"around"} threadId=thread-1 toolCallId=c2 toolName=look
    [run-1] message_update event={"index":0,"part":{"toolInvocation":{"args":{"what":"around"},"result":"did around","state":"result","toolCallId":"c2","toolName":"look"},"type":"tool-invocation"},"type":"part"} id=run-1/1
    [run-1] tool_end isError=false result="did around" threadId=thread-1 toolCallId=c2
    [run-1] usage_update usage={"completionTokens":5,"promptTokens":10,"raw":{"completion_tokens":5,"prompt_tokens":10,"total_tokens":15},"totalTokens":15}
    [run-1] message_end id=run-1/1
    [run-1] message_start run-1/2 assistant: ""
    [run-1] message_update run-1/2 text "built"
    [run-1] usage_update usage={"completionTokens":5,"promptTokens":10,"raw":{"completion_tokens":5,"prompt_tokens":10,"total_tokens":15},"totalTokens":15}
    [run-1] message_end id=run-1/2
    [run-1] agent_end finishReason=stop reason=complete
    "#);
    assert_eq!((session.mode().as_str(), session.model().unwrap().as_str()), ("build", "prov/builder"));
    let mut requests = Transcript::new();
    requests.requests(&desk.server.requests());
    insta::assert_snapshot!(requests, @r#"
    POST /v1/chat/completions model=planner tools=ask_user,submit_plan,look
      system: "AGENT\nPLAN"
      user: "plan"
    POST /v1/chat/completions model=builder tools=ask_user,submit_plan,look,write,run
      system: "AGENT\nBUILD"
      user: "plan"
      assistant: c1 submit_plan({"path":"plan.md"})
      tool c1: "{\"content\":\"Plan approved. Proceed with implementation following the approved plan.\",\"isError\":false,\"submittedPlan\":{\"title\":\"T\"},\"toolId\":\"submit_plan\"}"
    POST /v1/chat/completions model=builder tools=ask_user,submit_plan,look,write,run
      system: "AGENT\nBUILD"
      user: "plan"
      assistant: c1 submit_plan({"path":"plan.md"})
      tool c1: "{\"content\":\"Plan approved. Proceed with implementation following the approved plan.\",\"isError\":false,\"submittedPlan\":{\"title\":\"T\"},\"toolId\":\"submit_plan\"}"
      assistant: c2 look({"what":"around"})
      tool c2: "did around"
    "#);
    controller.shutdown().await;
}

#[tokio::test]
async fn a_rejected_plan_leaves_the_mode_as_it_is() {
    let desk = Desk::new([Turn::tool("c1", "submit_plan", json!({ "path": "plan.md" })), Turn::text("again")]);
    let controller = desk.open("");
    let session = controller.create_session("ann").await.unwrap();
    session.send_message("plan").await.unwrap();
    let mut events = session.subscribe();
    session.respond_to_tool_suspension(json!({ "action": "rejected", "feedback": "shorter" }), None).await.unwrap();
    until(&mut events, is_end).await;
    assert_eq!(session.mode().as_str(), "plan");
    assert!(desk.server.requests()[1].body.to_string().contains("shorter"));
    controller.shutdown().await;
}

/// The mode that a person chose after the decision is theirs (R1b); one that was chosen before it is not.
#[tokio::test]
async fn a_plan_leads_on_from_the_mode_of_its_run() {
    let desk = Desk::new([Turn::tool("c1", "submit_plan", json!({ "path": "p.md" })), Turn::text("built")]);
    let modes = [
        ac_controller::Mode::new("plan").model("prov/p").transitions_to("build"),
        ac_controller::Mode::new("build").model("prov/b"),
        ac_controller::Mode::new("talk").model("prov/t"),
    ];
    let controller = desk.builder("").modes(modes).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    session.send_message("plan").await.unwrap();
    session.switch_mode("talk").await.unwrap();
    desk.clock.advance(5);
    let mut events = session.subscribe();
    session.respond_to_tool_suspension(json!({ "action": "approved" }), None).await.unwrap();
    until(&mut events, is_end).await;
    assert_eq!(session.mode().as_str(), "build", "the target of the run's own mode, not of `talk`");
    assert_eq!(desk.server.requests()[1].body["model"], "b");
    controller.shutdown().await;
}

#[tokio::test]
async fn always_holds_for_what_waits_for_what_comes_and_over_a_restart() {
    let write = |id: &str, what: &str| Turn::tool(id, "write", json!({ "what": what }));
    let desk = Desk::new([
        write("c1", "1").then_tool("c2", "write", json!({ "what": "2" })),
        write("c3", "3"),
        Turn::text("done"),
        write("c4", "4"),
        Turn::text("again"),
        write("c5", "5"),
    ]);
    let controller = desk.builder("").modes(build_mode()).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    let submitted = session.submit("go").await.unwrap();
    submitted.handle().unwrap().resting().await;
    let open = session.pending().await.unwrap();
    assert_eq!(open.len(), 2, "both calls of the step wait, each for itself");
    session.answer(&open[0].id, Answer::Approve { grant: Some(GrantTarget::Tool("write".into())) }).await.unwrap();
    assert_eq!(submitted.settled().await, Settlement::Complete);
    let mut done = desk.done();
    done.sort();
    assert_eq!(done, ["write 1", "write 2", "write 3"]);
    controller.shutdown().await;

    let controller = desk.builder("b").modes(build_mode()).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    assert_eq!(session.send_message("more").await.unwrap().settlement, Settlement::Complete);
    let grants = session.grants();
    assert_eq!(grants.len(), 1);
    session.revoke(&grants[0].id).await.unwrap();
    assert_eq!(session.revoke(&grants[0].id).await.unwrap_err().code(), "grant.not_found");
    send_and_rest(&session, "and more").await;
    assert_eq!(session.pending().await.unwrap().len(), 1, "a revoked grant no longer holds");
    controller.shutdown().await;
}

/// R7, B-13, B-16: who writes instead of deciding declines; the message is not lost.
#[tokio::test]
async fn a_message_declines_what_waits_for_approval_and_reaches_the_model() {
    let desk = Desk::new([Turn::tool("c1", "write", json!({ "what": "a" })), Turn::text("then I use b")]);
    let controller = desk.builder("").modes(build_mode()).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    let submitted = session.submit("write").await.unwrap();
    submitted.handle().unwrap().resting().await;
    let mut events = session.subscribe();
    let second = session.send_message("use the other file instead").await.unwrap();
    assert_eq!(second.settlement, Settlement::Joined);
    assert_eq!(submitted.settled().await, Settlement::Complete);
    insta::assert_snapshot!(story(&drain(&mut events)), @r#"
    [run-1] pending_resolved pendingId=run-1/0/c1#1 threadId=thread-1 toolCallId=c1
    [run-1] message_update event={"index":0,"part":{"toolInvocation":{"approval":{"approved":false,"id":"c1","reason":"interrupted_by_user_message"},"args":{"what":"a"},"state":"output-denied","toolCallId":"c1","toolName":"write"},"type":"tool-invocation"},"type":"part"} id=run-1/0
    [run-1] tool_end denied=true isError=false result=interrupted_by_user_message threadId=thread-1 toolCallId=c1
    [run-1] usage_update usage={"completionTokens":5,"promptTokens":10,"raw":{"completion_tokens":5,"prompt_tokens":10,"total_tokens":15},"totalTokens":15}
    [run-1] message_end id=run-1/0
    [run-1] message_start message-2 signal: "use the other file instead"
    [run-1] message_end id=message-2
    [run-1] message_start run-1/1 assistant: ""
    [run-1] message_update run-1/1 text "then I use b"
    [run-1] usage_update usage={"completionTokens":5,"promptTokens":10,"raw":{"completion_tokens":5,"prompt_tokens":10,"total_tokens":15},"totalTokens":15}
    [run-1] message_end id=run-1/1
    [run-1] agent_end finishReason=stop reason=complete
    "#);
    assert_eq!(desk.done(), Vec::<String>::new());
    controller.shutdown().await;
}

/// R7: a message of somebody who may not decide is heard when the run goes on, and is no decision; also after a restart, and also when it
/// comes a second time.
#[tokio::test]
async fn a_message_that_decides_nothing_leaves_what_waits_open_and_reaches_the_model() {
    let desk =
        Desk::new([Turn::tool("c1", "write", json!({ "what": "a" })), Turn::text("written, and hello Bob"), Turn::text("hello again")]);
    let controller = desk.builder("").modes(build_mode()).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    send_and_rest(&session, "write").await;
    let asked = session.pending().await.unwrap();
    let said = UserMessage::new("greet Bob").id("from-bob").decides_nothing();
    assert!(session.submit_once(said.clone()).await.unwrap().unwrap().joined);
    assert!(session.submit_once(said).await.unwrap().is_none(), "it is known");
    assert_eq!(session.pending().await.unwrap(), asked, "what was asked is still asked");
    controller.shutdown().await;
    let controller = desk.builder("b").modes(build_mode()).build().unwrap();
    controller.init().await.unwrap();
    let session = controller.create_session("ann").await.unwrap();
    assert_eq!(session.pending().await.unwrap()[0].id, asked[0].id);
    session.approve(&asked[0].id).await.unwrap();
    for _ in 0..500 {
        if session.current_run().await.unwrap().is_none() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(desk.done(), ["write a"]);
    let sent = desk.server.requests()[1].body.to_string();
    assert_eq!(sent.matches("greet Bob").count(), 1, "{sent}");
    assert!(!sent.contains("interrupted_by_user_message"), "{sent}");
    // Where nothing waits it is a message like any other.
    let alone = session.send_message(UserMessage::new("hi").decides_nothing()).await.unwrap();
    assert_eq!(alone.settlement, Settlement::Complete);
    controller.shutdown().await;
}

#[tokio::test]
async fn abort_at_an_approval_and_at_a_question_leaves_a_legal_history() {
    for (call, args) in [("write", json!({ "what": "a" })), ("ask_user", json!({ "question": "?" }))] {
        let desk = Desk::new([Turn::tool("c1", call, args), Turn::text("hello again")]);
        let controller = desk.builder("").modes(build_mode()).build().unwrap();
        let session = controller.create_session("ann").await.unwrap();
        send_and_rest(&session, "go").await;
        let id = session.pending().await.unwrap()[0].id.clone();
        let mut events = session.subscribe();
        assert!(session.abort().await.unwrap());
        let all = until(&mut events, is_end).await;
        insta::assert_snapshot!(format!("abort at {call}"), story(&all));
        assert!(session.pending().await.unwrap().is_empty());
        assert!(!session.is_running());
        let late = session.answer(&id, Answer::Approve { grant: None }).await.unwrap_err();
        assert!(["answer.not_pending", "answer.already_resolved", "answer.invalid"].contains(&late.code()), "{}", late.code());
        // The scripted server refuses a history with a call that has no result.
        assert_eq!(session.send_message("hi").await.unwrap().settlement, Settlement::Complete);
        assert!(!session.abort().await.unwrap(), "nothing is left to abort");
        controller.shutdown().await;
    }
}

/// The process ends at each kind of wait; the next one lists the same wait, and its answer finishes the job.
#[tokio::test]
async fn every_wait_is_the_same_after_a_restart_and_can_be_answered() {
    let cases = [
        ("write", json!({ "what": "a" }), Answer::Approve { grant: None }),
        ("ask_user", json!({ "question": "?" }), Answer::Reply { value: json!("yes") }),
        ("submit_plan", json!({ "path": "p.md" }), Answer::Reply { value: json!({ "action": "approved" }) }),
    ];
    for (tool, args, answer) in cases {
        let desk = Desk::new([Turn::tool("c1", tool, args), Turn::text("done")]);
        let first = desk.builder("a").modes(build_mode()).build().unwrap();
        let session = first.create_session("ann").await.unwrap();
        send_and_rest(&session, "go").await;
        let before = session.pending().await.unwrap();
        assert_eq!(before.len(), 1);
        first.shutdown().await;

        let second = desk.builder("b").modes(build_mode()).build().unwrap();
        second.init().await.unwrap();
        let session = second.create_session("ann").await.unwrap();
        assert_eq!(session.pending().await.unwrap(), before, "{tool}");
        assert_eq!(second.pending().await.unwrap(), before);
        assert!(!session.is_running(), "nothing moves after a restart");
        let view = session.display_state();
        assert_eq!(view.pending_approvals.len() + view.pending_suspensions.len(), 1, "the prompt is in the view again");
        let mut events = session.subscribe();
        session.answer(&before[0].id, answer).await.unwrap();
        let all = until(&mut events, is_end).await;
        insta::assert_snapshot!(format!("{tool} answered after a restart"), story(&all));
        assert!(session.pending().await.unwrap().is_empty());
        assert_eq!(desk.done(), if tool == "write" { vec!["write a"] } else { vec![] });
        second.shutdown().await;
    }
}

/// A process that is killed tells nobody. What it had stored is enough.
#[tokio::test]
async fn a_killed_process_loses_nothing_and_runs_nothing_twice() {
    let desk = Desk::new([
        Turn::tool("c1", "look", json!({ "what": "one" })).then_tool("c2", "write", json!({ "what": "two" })),
        Turn::text("done"),
    ]);
    let first = desk.builder("a").modes(build_mode()).build().unwrap();
    let session = first.create_session("ann").await.unwrap();
    send_and_rest(&session, "go").await;
    let before = session.pending().await.unwrap();
    assert_eq!(desk.done(), ["look one"]);
    // No shutdown: the first controller is simply never asked again.
    desk.clock.advance(60_000);
    let second = desk.builder("b").modes(build_mode()).build().unwrap();
    second.init().await.unwrap();
    let session = second.create_session("ann").await.unwrap();
    assert_eq!(session.pending().await.unwrap(), before);
    let mut events = session.subscribe();
    session.approve(&before[0].id).await.unwrap();
    until(&mut events, is_end).await;
    assert_eq!(desk.done(), ["look one", "write two"]);
    second.shutdown().await;
    first.shutdown().await;
}
