//! The child: a controller and its channels. Deliveries come as lines on standard input, answers go as lines to standard output.

use std::{
    io::{BufRead, Write},
    sync::{Arc, Mutex},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use ac_channels::{ChannelRegistry, Channels, Discord, Slack, Telegram};
use ac_controller::{AgentConfig, AgentController, Mode, RuntimeSettings};
use ac_core::Tool;
use ac_storage::{Durability, SledOptions, Storage};
use ac_testkit::platforms::sign;
use serde::{Deserialize, Serialize};
use tracing_subscriber::EnvFilter;

use crate::{
    Failure, Work,
    heart::{Heart, millis},
    model::{Answering, Write_},
};

/// A delivery on its way to the child.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Sent {
    pub(crate) n: u64,
    pub(crate) delivery: sign::Delivery,
}

/// What the child answered.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Answered {
    pub(crate) n: u64,
    pub(crate) status: u16,
    pub(crate) millis: u64,
    /// So much of that the child did not get the processor.
    pub(crate) stopped: u64,
    /// No answer: the child gets the processor.
    pub(crate) beat: bool,
}

/// Where the child tells what it does, for the account of a failure.
pub(crate) const TOLD: &str = "told.txt";

fn tell_in(dir: &std::path::Path) -> Result<(), Failure> {
    let file = std::fs::OpenOptions::new().create(true).append(true).open(dir.join(TOLD))?;
    let filter = EnvFilter::new("warn,ac_channels=debug,ac_controller=debug,ac_agent=debug");
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_target(false).with_writer(Mutex::new(file)).try_init()
}

/// How long a dead process keeps its runs and conversations, for the next one.
const LEASE: Duration = Duration::from_millis(600);
const KEY: &[u8] = b"a key of more than thirty-two bytes for tests";

pub(crate) async fn channels(work: &Work, storage: Arc<dyn Storage>) -> Result<ChannelRegistry, Failure> {
    let mut settings = RuntimeSettings::default();
    settings.lease = LEASE;
    settings.grace = LEASE / 6;
    settings.poll = LEASE / 4;
    let tools: [Arc<dyn Tool>; 1] = [Arc::new(Write_(work.dir.join("written.txt")))];
    let controller = AgentController::builder()
        .id("desk")
        .storage(storage.clone())
        .provider(Answering)
        .runtime(settings)
        .agent(AgentConfig::new("agent").tools(tools))
        .mode(Mode::new("chat").model("scripted/model"))
        .build()?;
    controller.init().await?;
    let slack = Slack::new(sign::SLACK_SECRET, sign::SLACK_TOKEN).app_id(sign::SLACK_APP).bot_user(sign::SLACK_BOT).base_url(&work.slack);
    let telegram = Telegram::new(sign::TELEGRAM_TOKEN, sign::TELEGRAM_SECRET).username(sign::TELEGRAM_BOT).base_url(&work.telegram);
    let discord = Discord::new(sign::DISCORD_APP, &sign::discord_public_key(), sign::DISCORD_TOKEN)?.base_url(&work.discord);
    let channels =
        Channels::builder(controller).storage(storage).key(KEY).lease(LEASE).adapter(slack).adapter(telegram).adapter(discord).build()?;
    channels.start().await?;
    let mut registry = ChannelRegistry::new();
    registry.register(channels)?;
    Ok(registry)
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn work(work: &Work) -> Result<bool, Failure> {
    tell_in(&work.dir)?;
    let store = Arc::new(SledOptions::new(work.dir.join("store")).durability(Durability::Process).cache_bytes(16 << 20).open().await?);
    let storage: Arc<dyn Storage> = store.clone();
    let registry = Arc::new(channels(work, storage).await?);
    // A bounded queue between the pipe and the answers.
    let (lines, mut sent) = tokio::sync::mpsc::channel::<Sent>(256);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let Ok(one) = serde_json::from_str(&line) else { continue };
            if lines.blocking_send(one).is_err() {
                return;
            }
        }
    });
    say(&Answered::default());
    let heart = Heart::start(|| say(&Answered { beat: true, ..Answered::default() }));
    let mut forgotten = 0_u64;
    while let Some(Sent { n, mut delivery }) = sent.recv().await {
        if work.forgetful {
            // Another name for the same thing, genuinely signed: as if nothing of it had been kept.
            forgotten += 1;
            delivery = renamed(&delivery, forgotten);
        }
        let (registry, heart) = (registry.clone(), heart.clone());
        tokio::spawn(async move {
            let (begun, before) = (Instant::now(), heart.without_processor());
            let mut request = http::Request::post("/");
            for (name, value) in &delivery.headers {
                request = request.header(name, value);
            }
            let status = match request.body(delivery.body.into_bytes().into()) {
                Ok(request) => registry.receive("desk", &delivery.platform, request).await.status().as_u16(),
                Err(_) => 400,
            };
            let stopped = heart.without_processor().saturating_sub(before);
            say(&Answered { n, status, millis: millis(begun.elapsed()), stopped, beat: false });
        });
    }
    // The parent is gone, or done.
    for channels in registry.iter() {
        channels.shutdown().await;
        channels.controller().shutdown().await;
    }
    store.close().await?;
    Ok(true)
}

/// The same message under a name that nobody knows, signed as its platform signs. A press stays as it is: it names its card.
fn renamed(delivery: &sign::Delivery, n: u64) -> sign::Delivery {
    let unchanged = delivery.clone();
    let Ok(mut body) = serde_json::from_str::<serde_json::Value>(&delivery.body) else { return unchanged };
    let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX));
    let set = |body: &mut serde_json::Value, pointer: &str, value: serde_json::Value| {
        if let Some(place) = body.pointer_mut(pointer) {
            *place = value;
        }
    };
    match delivery.platform.as_str() {
        "telegram" if body.get("message").is_some() => {
            set(&mut body, "/message/message_id", (1_000_000 + n).into());
            set(&mut body, "/update_id", (1_000_000 + n).into());
            sign::Delivery { body: body.to_string(), ..unchanged }
        }
        // The time stamp of a mention outside a thread names the conversation.
        "slack" if body.pointer("/event/type").is_some_and(|kind| kind == "message") => {
            set(&mut body, "/event_id", format!("Renamed{n}").into());
            set(&mut body, "/event/ts", format!("19.{n:012}").into());
            sign::slack(body.to_string(), "application/json", at)
        }
        "discord" if body.get("type").is_some_and(|kind| kind == 2) => {
            set(&mut body, "/id", format!("Renamed{n}").into());
            sign::discord(&body, at)
        }
        _ => unchanged,
    }
}

fn say(answered: &Answered) {
    let Ok(line) = serde_json::to_string(answered) else { return };
    let mut out = std::io::stdout().lock();
    // Nobody listens any more: the end of the input says so too.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
