//! What every test here works at: a store, a scripted model behind real HTTP, and controllers that come and go.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use ac_controller::{AgentConfig, AgentController, ControllerBuilder, Mode, RuntimeSettings, Session, Subscription};
use ac_core::{Event, EventBody, Tool, ToolCategory, ToolContext, ToolDefinition, ToolEffect, ToolError, ToolOutcome, ToolOutput};
use ac_llm::{OpenAiCompatible, ReqwestTransport};
use ac_storage::{MemoryStorage, Storage};
use ac_testkit::{ManualClock, ScriptedServer, SequentialIds, Transcript, Turn};
use ac_tools::{AskUser, SubmitPlan};
use async_trait::async_trait;
use futures::{FutureExt, StreamExt};
use serde_json::{Value, json};

pub(crate) struct Desk {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) server: ScriptedServer,
    pub(crate) clock: ManualClock,
    /// What tools really did, in order.
    pub(crate) done: Arc<Mutex<Vec<String>>>,
}

impl Desk {
    pub(crate) fn new(turns: impl IntoIterator<Item = Turn>) -> Self {
        Self {
            storage: Arc::new(MemoryStorage::new()),
            server: ScriptedServer::start(turns),
            clock: ManualClock::new(),
            done: Arc::default(),
        }
    }

    /// A life of the process. Each has ids of its own.
    pub(crate) fn builder(&self, life: &str) -> ControllerBuilder {
        let ids = if life.is_empty() { SequentialIds::new() } else { SequentialIds::prefixed(format!("{life}-")) };
        let mut settings = RuntimeSettings::default();
        settings.grace = Duration::from_millis(50);
        AgentController::builder()
            .id("desk")
            .storage(self.storage.clone())
            .clock(Arc::new(self.clock.clone()))
            .ids(Arc::new(ids))
            .provider(OpenAiCompatible::new(self.server.base_url(), Arc::new(ReqwestTransport::new().unwrap())))
            .runtime(settings)
            .agent(AgentConfig::new("agent").instructions("AGENT").tools(self.tools()))
    }

    /// With a planning and a building mode.
    pub(crate) fn open(&self, life: &str) -> AgentController {
        self.builder(life).modes(modes()).build().unwrap()
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let work = |name, category, effect| Arc::new(Work { name, category, effect, done: self.done.clone() }) as Arc<dyn Tool>;
        vec![
            Arc::new(AskUser),
            Arc::new(SubmitPlan),
            work("look", ToolCategory::Read, ToolEffect::ReadOnly),
            work("write", ToolCategory::Edit, ToolEffect::Mutating),
            work("run", ToolCategory::Execute, ToolEffect::Mutating),
        ]
    }

    pub(crate) fn done(&self) -> Vec<String> {
        self.done.lock().unwrap().clone()
    }
}

pub(crate) fn modes() -> [Mode; 2] {
    [
        Mode::new("plan")
            .instructions("PLAN")
            .model("prov/planner")
            .available_tools(["ask_user", "submit_plan", "look"])
            .transitions_to("build"),
        Mode::new("build").instructions("BUILD").model("prov/builder"),
    ]
}

/// Only the building mode.
pub(crate) fn build_mode() -> [Mode; 1] {
    [Mode::new("build").instructions("BUILD").model("prov/builder")]
}

/// Does what it says and writes it down.
struct Work {
    name: &'static str,
    category: ToolCategory,
    effect: ToolEffect,
    done: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl Tool for Work {
    fn definition(&self) -> ToolDefinition {
        let schema = json!({ "type": "object", "properties": { "what": { "type": "string" }, "wait": { "type": "integer" } }, "required": ["what"] });
        ToolDefinition::new(self.name, "Works.", schema).category(self.category).effect(self.effect)
    }

    async fn call(&self, args: Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let what = args["what"].as_str().unwrap_or_default().to_owned();
        if let Some(millis) = args["wait"].as_u64() {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(millis)) => {}
                () = cx.cancel.cancelled() => return Err(ToolError::failed("stopped")),
            }
        }
        self.done.lock().unwrap().push(format!("{} {what}", self.name));
        Ok(ToolOutcome::Done(ToolOutput::text(format!("did {what}"))))
    }
}

/// Everything that a subscriber could have read by now.
pub(crate) fn drain(events: &mut Subscription) -> Vec<Arc<Event>> {
    let mut out = vec![];
    while let Some(Some(event)) = events.next_event().boxed().now_or_never() {
        out.push(event);
    }
    out
}

/// Reads until an event fits; everything read so far.
pub(crate) async fn until(events: &mut Subscription, fits: impl Fn(&EventBody) -> bool) -> Vec<Arc<Event>> {
    let mut out = vec![];
    let read = async {
        while let Some(event) = events.next_event().await {
            let found = fits(&event.body);
            out.push(event);
            if found {
                return;
            }
        }
        panic!("the stream ended");
    };
    if tokio::time::timeout(Duration::from_secs(10), read).await.is_err() {
        panic!("nothing fits among {:#?}", names(&out));
    }
    out
}

pub(crate) fn names(events: &[Arc<Event>]) -> Vec<&'static str> {
    events.iter().map(|event| event.body.name()).filter(|name| *name != "display_state_changed").collect()
}

pub(crate) fn story(events: &[Arc<Event>]) -> String {
    let mut story = Transcript::new();
    story.events(events.iter().map(AsRef::as_ref));
    story.to_string()
}

/// Sends and waits until only a person moves the run, approvals included.
pub(crate) async fn send_and_rest(session: &Session, text: &str) {
    let submitted = session.submit(text).await.unwrap();
    tokio::time::timeout(Duration::from_secs(10), submitted.handle().unwrap().resting()).await.unwrap();
}

pub(crate) fn is_end(body: &EventBody) -> bool {
    matches!(body, EventBody::AgentEnd { .. })
}

/// A stream of everything, states included, as one word each.
pub(crate) fn words(events: &mut Subscription) -> Vec<String> {
    let mut out = vec![];
    while let Some(Some(delivery)) = events.next().now_or_never() {
        out.push(match delivery {
            ac_controller::Delivery::State(_) => "state".to_owned(),
            ac_controller::Delivery::Event(event) => event.body.name().to_owned(),
        });
    }
    out
}
