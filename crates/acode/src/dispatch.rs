//! What a command does, in place or for another process over the socket.

mod given;
mod rules;

use std::sync::Arc;

use agent_controller::{
    controller::Answer,
    core::{event::PendingKind, permission::GrantTarget},
};
use clap::ValueEnum as _;
use serde_json::{Value, json};

use self::given::Given;
use crate::{
    app::{self, App},
    args::{Command, GrantsCommand, Json, Options, PlanDecision, RulesCommand},
    exit::{Exit, Failure},
    follow::{Follow, Rest},
    interrupt::Interrupts,
    reply,
    sink::Sink,
    socket::{self, Reply, Serve},
    waits::{Found, Settled, Wait, Wants},
};

/// A command as `{op, args}`; `None` for those that need the store for themselves.
pub(crate) fn request(command: &Command, options: &Options) -> Option<(&'static str, Value)> {
    let (op, mut args) = match command {
        Command::Exec { .. } | Command::Serve { .. } | Command::Token { .. } | Command::Store { .. } => return None,
        Command::Threads => ("threads", json!({})),
        Command::Pending => ("pending", json!({})),
        Command::Answer { id, value } => ("answer", json!({ "id": id, "values": value })),
        Command::Approve { id, always } => ("approve", json!({ "id": id, "always": always })),
        Command::Decline { id, reason } => ("decline", json!({ "id": id, "reason": reason })),
        Command::Plan { id, decision, feedback } => {
            ("plan", json!({ "id": id, "approve": *decision == PlanDecision::Approve, "feedback": feedback }))
        }
        Command::Grants { command: None } => ("grants", json!({})),
        Command::Grants { command: Some(GrantsCommand::Revoke { id }) } => ("revoke", json!({ "id": id })),
        Command::Rules { command: None } => ("rules", json!({})),
        Command::Rules { command: Some(RulesCommand::Forget { conversation, pattern }) } => {
            ("forget", json!({ "id": conversation, "pattern": pattern }))
        }
    };
    if let Value::Object(fields) = &mut args {
        let mode = options.approve.to_possible_value().map(|value| value.get_name().to_owned());
        fields.insert("mode".into(), json!(mode));
        fields.insert("views".into(), json!(options.json == Some(Json::All)));
    }
    Some((op, args))
}

/// Whether the answer to an op is a list and not a stream of events.
pub(crate) fn lists(op: &str) -> bool {
    matches!(op, "threads" | "pending" | "grants" | "rules")
}

/// Does what `op` says.
///
/// # Errors
/// Why it was not done.
pub(crate) async fn dispatch(
    app: &App,
    op: &str,
    args: &Value,
    sink: &mut impl Sink,
    interrupts: Option<&mut Interrupts>,
) -> Result<Exit, Failure> {
    let given = Given(args);
    match op {
        "threads" => put(sink, &threads(app).await?).await,
        "pending" => {
            let rows = app.waits(None).await?.iter().map(Wait::row).collect();
            put(sink, &Value::Array(rows)).await
        }
        "grants" => put(sink, &grants(app).await?).await,
        "revoke" => revoke(app, given.id()?).await,
        "rules" => put(sink, &rules::list(app).await?).await,
        "forget" => rules::forget(app, given.id()?, given.text("pattern")?.unwrap_or_default()).await,
        "abort" => abort(app, given.text("run")?).await,
        "answer" => {
            let values = given.values()?;
            let found = app.find(given.id()?, Wants::Value).await?;
            let answer = |wait: &Wait| match wait.pending.kind {
                PendingKind::Question => {
                    let value = reply::answer(&wait.pending.tool, &wait.pending.payload, &values);
                    value
                        .map(|value| Answer::Reply { value })
                        .map_err(|why| Failure { code: "answer.invalid".into(), ..Failure::usage(why) })
                }
                other => Err(wrong_kind(wait, other)),
            };
            match found {
                Found::Open(wait) => {
                    let answer = answer(&wait)?;
                    go_on(app, &wait, answer, args, sink, interrupts).await
                }
                Found::Settled(settled) => {
                    let value = settled.value(&values);
                    again(app, &settled, Answer::Reply { value }).await
                }
            }
        }
        "approve" | "decline" => {
            let (always, reason) = (given.flag("always")?.unwrap_or(false), given.text("reason")?.map(str::to_owned));
            let answer = |wait: Option<&Wait>| match (wait.map(|wait| (wait.pending.kind, wait)), op) {
                (Some((PendingKind::InDoubt, _)), "approve") => Ok(Answer::RunAgain),
                (Some((PendingKind::InDoubt, _)), _) => Ok(Answer::RecordFailed),
                (None | Some((PendingKind::Approval, _)), "approve") => {
                    Ok(Answer::Approve { grant: wait.filter(|_| always).map(|wait| GrantTarget::Tool(wait.pending.tool.clone())) })
                }
                // Nobody answers a question with yes; that it is not answered at all may be said.
                (None, _) | (Some((PendingKind::Approval | PendingKind::Question, _)), "decline") => {
                    Ok(Answer::Decline { reason: reason.clone() })
                }
                (Some((other, wait)), _) => Err(wrong_kind(wait, other)),
            };
            match app.find(given.id()?, Wants::Decision).await? {
                Found::Open(wait) => {
                    let answer = answer(Some(&wait))?;
                    go_on(app, &wait, answer, args, sink, interrupts).await
                }
                Found::Settled(settled) => again(app, &settled, answer(None)?).await,
            }
        }
        "plan" => {
            let (approves, feedback) = (given.approves()?, given.text("feedback")?.map(str::to_owned));
            match app.find(given.id()?, Wants::Value).await? {
                Found::Open(wait) if wait.pending.kind == PendingKind::Plan => {
                    let answer = app.plan_answer(&wait, approves, feedback).await;
                    go_on(app, &wait, answer, args, sink, interrupts).await
                }
                Found::Open(wait) => Err(wrong_kind(&wait, wait.pending.kind)),
                Found::Settled(settled) => {
                    let mut value = json!({ "action": if approves { "approved" } else { "rejected" } });
                    if let (Some(fields), Some(feedback)) = (value.as_object_mut(), feedback) {
                        fields.insert("feedback".into(), feedback.into());
                    }
                    again(app, &settled, Answer::Reply { value }).await
                }
            }
        }
        other => Err(Failure::usage(format!("there is no op `{other}`"))),
    }
}

async fn put(sink: &mut impl Sink, value: &Value) -> Result<Exit, Failure> {
    // Who went away wants nothing more.
    Ok(if sink.put(value).await.is_ok() { Exit::Complete } else { Exit::Failed })
}

fn wrong_kind(wait: &Wait, kind: PendingKind) -> Failure {
    let id = &wait.id;
    let how = match kind {
        PendingKind::Plan => format!("`{id}` is a plan; decide it with: acode plan {id} approve, or reject"),
        PendingKind::Question => format!("`{id}` is a question; answer it with: acode answer {id} 'ANSWER'"),
        PendingKind::Approval => format!("`{id}` asks for permission; decide it with: acode approve {id}, or acode decline {id}"),
        PendingKind::InDoubt => {
            format!("`{id}` is a call in doubt; acode approve {id} runs it again, acode decline {id} records it as failed")
        }
    };
    Failure { code: "answer.invalid".into(), ..Failure::usage(how) }
}

/// The same answer again is fine and moves nothing; another one comes too late.
async fn again(app: &App, settled: &Settled, answer: Answer) -> Result<Exit, Failure> {
    app.controller.answer(&settled.id, settled.again(answer)).await?;
    let open = app.open(None).await?.into_iter().any(|wait| wait.pending.run == settled.id.run);
    Ok(if open { Exit::Waiting } else { Exit::Complete })
}

/// Answers, and goes on with the run until it rests again.
async fn go_on(
    app: &App,
    wait: &Wait,
    answer: Answer,
    args: &Value,
    sink: &mut impl Sink,
    interrupts: Option<&mut Interrupts>,
) -> Result<Exit, Failure> {
    let (id, thread) = (wait.pending.id.clone(), wait.pending.thread.clone());
    let (mode, views) = (Given(args).mode()?, Given(args).flag("views")?.unwrap_or(false));
    let session = app.session(&thread).await?;
    let mut follow = Follow::new(app, session, thread, mode, views);
    follow.session().answer(&id, answer).await?;
    Ok(match follow.until_rest(sink, interrupts).await? {
        Rest::Done(exit) | Rest::Left(exit) => exit,
        Rest::Waiting(_) => Exit::Waiting,
    })
}

async fn threads(app: &App) -> Result<Value, Failure> {
    let waits = app.open(None).await?;
    let all = app::threads(app.storage()).await?;
    let rows = all.iter().map(|info| app::thread_row(info, waits.iter().filter(|wait| wait.pending.thread == info.id).count()));
    Ok(Value::Array(rows.collect()))
}

async fn grants(app: &App) -> Result<Value, Failure> {
    let mut rows = vec![];
    for info in app::threads(app.storage()).await? {
        for grant in app.session(&info.id).await?.grants() {
            let target = match &grant.target {
                GrantTarget::Tool(tool) => json!({ "tool": tool }),
                GrantTarget::Category(category) => json!({ "category": category.as_str() }),
            };
            rows.push(json!({ "id": grant.id, "allows": target, "thread": info.id, "title": info.title, "since": grant.at.to_string() }));
        }
    }
    Ok(Value::Array(rows))
}

async fn revoke(app: &App, id: &str) -> Result<Exit, Failure> {
    for info in app::threads(app.storage()).await? {
        let session = app.session(&info.id).await?;
        if session.grants().iter().any(|grant| grant.id == id) {
            session.revoke(id).await?;
            return Ok(Exit::Complete);
        }
    }
    Err(Failure::usage(format!("there is no grant `{id}`; acode grants lists them")))
}

/// Stops a run that this process moves, for the person at another terminal.
async fn abort(app: &App, run: Option<&str>) -> Result<Exit, Failure> {
    for session in app.controller.sessions() {
        let current = session.current_run().await?;
        if current.is_some_and(|current| Some(current.as_str()) == run) {
            session.abort().await?;
            return Ok(Exit::Complete);
        }
    }
    Err(Failure::usage("that run is not open"))
}

/// Serves other processes.
pub(crate) struct Server(pub(crate) Arc<App>);

impl Serve for Server {
    async fn serve(&self, op: &str, args: &Value, sink: &mut Reply) -> Exit {
        match dispatch(&self.0, op, args, sink, None).await {
            Ok(exit) => exit,
            Err(failure) => {
                // Who went away needs no answer.
                let _ = sink.put(&socket::error(&failure.code, &failure.message)).await;
                failure.exit
            }
        }
    }
}
