//! What every test here works at: a store, a scripted model, platforms, and processes that come and go.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use ac_channels::{
    ChannelHooks, ChannelSettings, Channels, ChannelsBuilder, Discord, NoHooks, SignedWebhook, Slack, Telegram, ToolDisplay,
};
use ac_controller::{AgentConfig, AgentController, Mode, RuntimeSettings};
use ac_core::{
    Clock, ModelId, ModelProvider, Timestamp, Tool, ToolCategory, ToolContext, ToolDefinition, ToolEffect, ToolError, ToolOutcome,
    ToolOutput,
};
use ac_storage::{MemoryStorage, Storage};
use ac_testkit::{
    ScriptedModel, SequentialIds, Turn,
    platforms::{Platforms, Shown, sign, sign::Delivery},
};
use ac_tools::{AskUser, SubmitPlan};
use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Value, json};

pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct Desk {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) model: Arc<ScriptedModel>,
    /// What answers instead of the scripted model.
    pub(crate) instead: Option<Arc<dyn ModelProvider>>,
    pub(crate) platforms: Platforms,
    /// What tools really did, in order.
    pub(crate) done: Arc<Mutex<Vec<String>>>,
}

/// A process: a controller with its channels.
pub(crate) struct Life {
    pub(crate) channels: Channels,
}

/// The time that signatures are made with, as a clock of the channels.
struct Now;

pub(crate) const AT: i64 = 1_767_225_600;

impl Clock for Now {
    fn now(&self) -> Timestamp {
        // It moves, for leases; it never leaves the window of a signature within a test.
        static BEGUN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
        let since = BEGUN.get_or_init(std::time::Instant::now).elapsed();
        Timestamp::from_millis(AT * 1000 + i64::try_from(since.as_millis()).unwrap())
    }
}

impl Desk {
    pub(crate) fn new(turns: impl IntoIterator<Item = Turn>) -> Self {
        Self {
            storage: Arc::new(MemoryStorage::new()),
            model: Arc::new(ScriptedModel::new(turns)),
            instead: None,
            platforms: Platforms::start().unwrap(),
            done: Arc::default(),
        }
    }

    pub(crate) fn controller(&self, life: &str) -> AgentController {
        let mut settings = RuntimeSettings::default();
        settings.lease = Duration::from_millis(400);
        settings.grace = Duration::from_millis(50);
        settings.poll = Duration::from_millis(100);
        let model: Arc<dyn ModelProvider> = self.instead.clone().unwrap_or_else(|| self.model.clone());
        let work = |name, category| Arc::new(Work { name, category, done: self.done.clone() }) as Arc<dyn Tool>;
        let tools: [Arc<dyn Tool>; 5] = [
            Arc::new(AskUser),
            Arc::new(SubmitPlan),
            work("look", ToolCategory::Read),
            work("write", ToolCategory::Edit),
            work("run", ToolCategory::Execute),
        ];
        AgentController::builder()
            .id("desk")
            .storage(self.storage.clone())
            .clock(Arc::new(Now))
            .ids(Arc::new(SequentialIds::prefixed(format!("{life}-"))))
            .models(move |_: &ModelId| Ok(model.clone()))
            .runtime(settings)
            .agent(AgentConfig::new("agent").tools(tools))
            .mode(Mode::new("plan").model("p/m").transitions_to("build"))
            .mode(Mode::new("build").model("p/m"))
            .default_mode("build")
            .build()
            .unwrap()
    }

    pub(crate) fn builder(&self, life: &str, controller: AgentController) -> ChannelsBuilder {
        Channels::builder(controller)
            .storage(self.storage.clone())
            .key(b"thirty-two bytes or more of a key".as_slice())
            .clock(Arc::new(Now))
            .ids(Arc::new(SequentialIds::prefixed(format!("{life}-channel-"))))
            .lease(Duration::from_millis(500))
            .look_every(Duration::from_millis(200))
    }

    pub(crate) fn slack(&self) -> Slack {
        Slack::new(sign::SLACK_SECRET, sign::SLACK_TOKEN)
            .app_id(sign::SLACK_APP)
            .bot_user(sign::SLACK_BOT)
            .base_url(self.platforms.base_url("slack"))
    }

    pub(crate) fn webhook(&self) -> SignedWebhook {
        SignedWebhook::new("webhook", sign::WEBHOOK_SECRET, self.platforms.base_url("webhook")).unwrap()
    }

    /// All platforms, with these hooks.
    pub(crate) async fn open_with(&self, life: &str, hooks: impl ChannelHooks) -> Life {
        let controller = self.controller(life);
        controller.init().await.unwrap();
        let quiet = ChannelSettings::new().tools(ToolDisplay::Hidden);
        let telegram = Telegram::new(sign::TELEGRAM_TOKEN, sign::TELEGRAM_SECRET)
            .username(sign::TELEGRAM_BOT)
            .base_url(self.platforms.base_url("telegram"));
        let discord = Discord::new(sign::DISCORD_APP, &sign::discord_public_key(), sign::DISCORD_TOKEN)
            .unwrap()
            .base_url(self.platforms.base_url("discord"));
        let channels = self
            .builder(life, controller)
            .adapter_with(self.slack(), quiet.clone())
            .adapter_with(telegram, quiet.clone())
            .adapter_with(discord, quiet.clone())
            .adapter_with(self.webhook(), quiet)
            .hooks(hooks)
            .build()
            .unwrap();
        channels.start().await.unwrap();
        Life { channels }
    }

    pub(crate) async fn open(&self, life: &str) -> Life {
        self.open_with(life, NoHooks).await
    }

    /// Waits for a message that says something.
    pub(crate) async fn see(&self, text: &str) -> Shown {
        let found = self.platforms.until(PATIENCE, |shown| shown.iter().find(|one| one.text.contains(text)).cloned()).await;
        found.unwrap_or_else(|| panic!("`{text}` is nowhere in {:#?}", self.platforms.shown()))
    }

    /// Waits for a message with a button.
    pub(crate) async fn card(&self, label: &str) -> Shown {
        let has = |one: &&Shown| one.buttons.iter().any(|(known, _)| known == label);
        let found = self.platforms.until(PATIENCE, |shown| shown.iter().rev().find(has).cloned()).await;
        found.unwrap_or_else(|| panic!("`{label}` is nowhere in {:#?}", self.platforms.shown()))
    }

    /// Waits for a word to one person.
    pub(crate) async fn noticed(&self, text: &str) -> String {
        let begun = tokio::time::Instant::now();
        loop {
            if let Some(notice) = self.platforms.notices().into_iter().find(|notice| notice.text.contains(text)) {
                return notice.to;
            }
            assert!(begun.elapsed() < PATIENCE, "`{text}` is nowhere in {:#?}", self.platforms.notices());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until the model was asked so often; what it was told last each time.
    pub(crate) async fn told(&self, times: usize) -> Vec<String> {
        let begun = tokio::time::Instant::now();
        while self.model.requests().len() < times {
            assert!(begun.elapsed() < PATIENCE, "the model was asked {} times", self.model.requests().len());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.model.requests().iter().map(|request| request.messages.last().unwrap().text()).collect()
    }

    pub(crate) fn done(&self) -> Vec<String> {
        self.done.lock().unwrap().clone()
    }
}

impl Life {
    pub(crate) async fn deliver(&self, delivery: &Delivery) -> u16 {
        self.answer(delivery).await.status().as_u16()
    }

    /// What the platform hears back.
    pub(crate) async fn answer(&self, delivery: &Delivery) -> http::Response<Bytes> {
        let mut request = http::Request::post("/");
        for (name, value) in &delivery.headers {
            request = request.header(name, value);
        }
        let request = request.body(Bytes::from(delivery.body.clone())).unwrap();
        self.channels.receive(&delivery.platform, request).await
    }

    /// A direct message in Slack.
    pub(crate) async fn say(&self, event: &str, text: &str) {
        assert_eq!(self.deliver(&direct(event, text)).await, 200);
    }

    /// Somebody presses a button of a message in Slack.
    pub(crate) async fn press(&self, trigger: &str, card: &Shown, user: &str, label: &str) {
        let press = sign::slack_press(trigger, &card.channel, card.thread.as_deref(), &card.id, user, &value(card, label), AT);
        assert_eq!(self.deliver(&press).await, 200);
    }

    /// The process ends as it should.
    pub(crate) async fn end(self) {
        self.channels.shutdown().await;
        self.channels.controller().shutdown().await;
    }
}

pub(crate) fn direct(event: &str, text: &str) -> Delivery {
    sign::slack_message(event, "D1", None, "U1", text, &format!("18.{event}"), AT)
}

/// A mention, or a word in the thread that it began.
pub(crate) fn group(event: &str, user: &str, text: &str) -> Delivery {
    let first = event == "Ev1";
    let ts = if first { "17.1".to_owned() } else { format!("18.{event}") };
    sign::slack_message(event, "C1", (!first).then_some("17.1"), user, text, &ts, AT)
}

pub(crate) fn value(card: &Shown, label: &str) -> String {
    card.buttons.iter().find(|(known, _)| known == label).unwrap().1.clone()
}

pub(crate) fn write(id: &str) -> Turn {
    Turn::tool(id, "write", json!({ "what": id }))
}

struct Work {
    name: &'static str,
    category: ToolCategory,
    done: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl Tool for Work {
    fn definition(&self) -> ToolDefinition {
        let schema = json!({ "type": "object", "properties": { "what": { "type": "string" } }, "required": ["what"] });
        ToolDefinition::new(self.name, "Works.", schema).category(self.category).effect(ToolEffect::Mutating)
    }

    async fn call(&self, args: Value, _: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let what = args["what"].as_str().unwrap_or_default();
        self.done.lock().unwrap().push(format!("{} {what}", self.name));
        Ok(ToolOutcome::Done(ToolOutput::text(format!("did {what}"))))
    }
}
