//! What a host does, one verb at a time.

mod permissions;
mod threads;

use std::{sync::Arc, time::Duration};

use ac_controller::{AgentController, ApprovalDecision, ControllerError, ModelChoice, RunHandle, Session, SessionRequest, UserMessage};
use ac_core::{
    ModelId, SessionKey, ToolCallId,
    event::PendingKind,
    message::{FilePart, FileSource},
    wire,
};
use base64::Engine as _;
use serde_json::{Map, Value, json};

use super::{
    ScenarioError,
    file::{Act, Verb},
    finish,
    play::{Host, Listener},
};

/// Why something has no result.
pub(super) enum Trouble {
    /// The controller refused.
    Refused { code: String, message: String },
    /// The scenario asks for what is not there.
    Driver(String),
}

pub(super) type Done = Result<Option<Value>, Trouble>;

impl From<ControllerError> for Trouble {
    fn from(error: ControllerError) -> Self {
        Self::Refused { code: error.code().to_owned(), message: error.to_string() }
    }
}

impl From<ScenarioError> for Trouble {
    fn from(error: ScenarioError) -> Self {
        Self::Driver(error.to_string())
    }
}

/// How long the segment that an answer begins may take.
const SEGMENT: Duration = Duration::from_secs(9);
/// What ends the wait for it (SPEC S-57).
const SEGMENT_OVER: [&str; 3] = ["tool_suspended", "agent_end", "error"];

/// The arguments of an action.
pub(super) struct Args(Value);

impl Args {
    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Value::as_str)
    }

    pub(super) fn flag(&self, key: &str) -> bool {
        self.get(key).and_then(Value::as_bool).unwrap_or(false)
    }

    pub(super) fn map(&self, key: &str) -> Map<String, Value> {
        self.get(key).and_then(Value::as_object).cloned().unwrap_or_default()
    }

    pub(super) fn needed(&self, key: &str) -> Result<&str, Trouble> {
        self.text(key).ok_or_else(|| Trouble::Driver(format!("`{key}` is missing")))
    }

    fn whole(&self) -> Map<String, Value> {
        self.0.as_object().cloned().unwrap_or_default()
    }
}

/// Does it.
pub(super) async fn act(host: &Arc<Host>, act: &Act) -> Done {
    let args = Args(act.args.as_ref().map(|args| host.filled(args)).unwrap_or_default());
    let cast = host.cast();
    match act.verb {
        Verb::CreateSession => return create_session(host, &cast.controller, &cast.resource, act, &args).await,
        Verb::DeleteSession => {
            let key = key(&args, &cast.resource);
            return Ok(Some(cast.controller.delete_session(&key).await?.into()));
        }
        Verb::QueryThreads => return threads::query(&cast.controller, &args).await,
        Verb::ActiveRuns => return threads::active_runs(&cast).await,
        Verb::Recreate => return Err(Trouble::Driver("a controller is not made again while others wait for it".to_owned())),
        _ => {}
    }
    let label = act.session.as_deref().unwrap_or("s");
    let listener = host.session(label).ok_or_else(|| Trouble::Driver(format!("there is no session `{label}`")))?;
    let session = &listener.session;
    match act.verb {
        Verb::SendMessage | Verb::Steer | Verb::Inject | Verb::FollowUp | Verb::QueueMessage => say(session, act.verb, &args).await,
        Verb::Queue | Verb::RemoveQueued | Verb::ReorderQueue => queue(session, act.verb, &args).await,
        Verb::Abort => {
            session.abort().await?;
            Ok(None)
        }
        Verb::Approve => approve(session, &args).await,
        Verb::Resume => resume(host, &listener, label, &args).await,
        Verb::Pending => pending(session).await,
        Verb::Mode => {
            session.switch_mode(args.needed("modeId")?).await?;
            Ok(Some(json!({ "mode": session.mode(), "model": session.model() })))
        }
        Verb::Model => switch_model(session, &args).await,
        Verb::StateSet => {
            session.set_state(args.whole()).await?;
            Ok(Some(Value::Object(session.state().as_ref().clone())))
        }
        Verb::StateGet => Ok(Some(Value::Object(session.state().as_ref().clone()))),
        Verb::Usage => Ok(Some(finish::usage(&session.token_usage().await?))),
        Verb::RunState => run_state(session).await,
        Verb::Display => Ok(Some(finish::display(&session.display_state()))),
        Verb::SubagentModel => {
            let kind = args.text("agentType");
            if let Some(model) = args.text("modelId") {
                session.set_subagent_model(Some(model.into()), kind).await?;
            }
            Ok(Some(json!(session.subagent_model(kind).await?)))
        }
        Verb::GrantTool
        | Verb::GrantCategory
        | Verb::GetGrants
        | Verb::SetForTool
        | Verb::SetForCategory
        | Verb::GetRules
        | Verb::ResolveToolApproval => permissions::act(session, act.verb, &args).await,
        _ => threads::act(session, act.verb, &args).await,
    }
}

fn key(args: &Args, resource: &str) -> SessionKey {
    let mut key = SessionKey::new(args.text("resourceId").unwrap_or(resource));
    key.scope = args.text("scope").map(Into::into);
    key
}

async fn create_session(host: &Arc<Host>, controller: &AgentController, resource: &str, act: &Act, args: &Args) -> Done {
    let mut request = SessionRequest::new(key(args, resource));
    if let Some(thread) = args.text("threadId") {
        request = request.thread(thread);
    }
    for (name, value) in args.map("tags") {
        request = request.tag(name, value);
    }
    let session = controller.create_session(request).await?;
    let mut result = json!({ "threadId": session.thread_id(), "mode": session.mode(), "model": session.model() });
    let known = host.take_in(act.label.as_deref().or(act.session.as_deref()).unwrap_or("s"), session);
    if let (Value::Object(result), Some(label)) = (&mut result, known) {
        result.insert("sameAs".to_owned(), label.into());
    }
    Ok(Some(result))
}

async fn say(session: &Session, verb: Verb, args: &Args) -> Done {
    let message = message(args)?;
    match verb {
        Verb::Inject => {
            session.inject(message).await?;
        }
        Verb::Steer => {
            let joins = session.current_run().await?.is_some();
            let submitted = session.steer(message).await?;
            if !joins {
                submitted.settled().await;
            }
        }
        Verb::FollowUp | Verb::QueueMessage => {
            if let Some(started) = session.follow_up(message).await?.started {
                started.settled().await;
            }
        }
        _ => {
            session.send_message(message).await?;
        }
    }
    Ok(None)
}

fn message(args: &Args) -> Result<UserMessage, Trouble> {
    let mut message = UserMessage::new(args.text("content").unwrap_or_default());
    for file in args.get("files").and_then(Value::as_array).into_iter().flatten() {
        message = message.file(self::file(file));
    }
    if args.get("requestContext").is_some() {
        message = message.request_context(args.map("requestContext"));
    }
    Ok(message)
}

/// Text may come as it is; everything else is base64, bare or in a data URL (SPEC S-8).
fn file(file: &Value) -> FilePart {
    let field = |name: &str| file.get(name).and_then(Value::as_str).unwrap_or_default();
    let (data, media_type) = (field("data"), field("mediaType"));
    let textual = media_type.starts_with("text/") || media_type == "application/json";
    let source = match data.strip_prefix("data:").and_then(|url| url.split_once(";base64,")) {
        Some((_, encoded)) => FileSource::Base64(encoded.into()),
        None if data.starts_with("http://") || data.starts_with("https://") => FileSource::Url(data.to_owned()),
        None if textual => FileSource::Base64(base64::engine::general_purpose::STANDARD.encode(data).into()),
        None => FileSource::Base64(data.into()),
    };
    let name = file.get("filename").and_then(Value::as_str).map(Into::into);
    FilePart { media_type: media_type.to_owned(), source, name, opaque: None }
}

async fn queue(session: &Session, verb: Verb, args: &Args) -> Done {
    match verb {
        Verb::RemoveQueued => {
            session.remove_queued(&args.needed("id")?.into()).await?;
            Ok(None)
        }
        Verb::ReorderQueue => {
            let order = args.get("ids").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
            session.reorder_queue(&order.map(Into::into).collect::<Vec<_>>()).await?;
            Ok(None)
        }
        _ => {
            let items = session.queue().await?;
            Ok(Some(items.iter().map(|item| json!({ "id": item.id, "kind": item.kind, "text": item.text })).collect()))
        }
    }
}

async fn approve(session: &Session, args: &Args) -> Done {
    let context = args.map("declineContext");
    let reason = ["reason", "message"].iter().find_map(|key| context.get(*key).and_then(Value::as_str)).map(str::to_owned);
    let decision = match args.text("decision").unwrap_or("approve") {
        "approve" => ApprovalDecision::Approve,
        "decline" => ApprovalDecision::Decline { reason },
        "always_allow_tool" => ApprovalDecision::AlwaysAllowTool,
        "always_allow_category" => ApprovalDecision::AlwaysAllowCategory,
        other => return Err(Trouble::Driver(format!("`{other}` is no decision"))),
    };
    let call = args.text("toolCallId").map(ToolCallId::from);
    session.respond_to_tool_approval(decision, call.as_ref()).await?;
    Ok(None)
}

/// Waits as the reference does: until the segment that goes on is over.
async fn resume(host: &Arc<Host>, listener: &Listener, label: &str, args: &Args) -> Done {
    let call = args.text("toolCallId").filter(|id| !id.is_empty()).map(ToolCallId::from);
    let answer = args.get("resumeData").cloned().unwrap_or_default();
    let begin = host.log.events();
    let accepted = listener.session.respond_to_tool_suspension(answer, call.as_ref()).await?;
    if accepted.repeated {
        return Ok(None);
    }
    match listener.session.live_run().await? {
        // An action's own limit tells if it never rests.
        Some(run) => drop(tokio::time::timeout(SEGMENT, rest(&run)).await),
        // It goes on on a thread that the session left.
        None => host.log.wait_after(begin, label, &SEGMENT_OVER, SEGMENT).await,
    }
    Ok(None)
}

/// Until only a person can move the run, or its last segment is over.
async fn rest(run: &RunHandle) {
    if run.resting().await.outcome.is_some() {
        run.settled().await;
    }
}

async fn pending(session: &Session) -> Done {
    let open = session.pending().await?;
    let shown = open.iter().map(|wait| {
        json!({
            "id": wait.id, "kind": wait.kind.as_str(), "toolCallId": wait.call, "toolName": wait.tool, "args": wait.args,
            "threadId": wait.thread, "parentToolCallId": wait.parent_call,
        })
    });
    Ok(Some(shown.collect()))
}

async fn switch_model(session: &Session, args: &Args) -> Done {
    let mut choice = ModelChoice::new(ModelId::from(args.needed("modelId")?));
    if let Some(mode) = args.text("modeId") {
        choice = choice.mode(mode);
    }
    if args.text("scope") == Some("global") {
        choice = choice.global();
    }
    session.switch_model(choice).await?;
    Ok(Some(json!({ "model": session.model() })))
}

async fn run_state(session: &Session) -> Done {
    let state = session.display_state();
    let run = session.current_run().await?;
    let open = session.pending().await?;
    let running = session.is_running();
    Ok(Some(json!({
        "isRunning": running,
        "runId": run.as_ref().filter(|_| running),
        "streamActive": run.is_some(),
        "pending": open.iter().any(|wait| wait.kind != PendingKind::Approval),
        "armed": open.iter().any(|wait| wait.kind == PendingKind::Approval),
        "followUps": state.queued_follow_ups,
        "dsRunning": state.is_running,
        "dsFollow": wire::display_state(&state).get("queuedFollowUps"),
    })))
}
