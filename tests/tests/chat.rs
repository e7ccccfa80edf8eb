//! Chat platforms from end to end: their signed requests over a server's socket, a session, and its answers through the platforms' APIs.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use ac_controller::{AgentConfig, AgentController, Mode};
use ac_core::{ModelId, ModelProvider, Tool, ToolCategory, ToolContext, ToolDefinition, ToolEffect, ToolError, ToolOutcome, ToolOutput};
use ac_storage::{MemoryStorage, Storage};
use ac_testkit::{
    ScriptedModel, Turn,
    platforms::{Platforms, Shown, sign, sign::Delivery},
};
use agent_controller::{
    channels::{ChannelRegistry, Channels, Discord, Slack, Telegram},
    server::{Served, Server},
};
use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
};

const PATIENCE: Duration = Duration::from_secs(10);

/// A server with the chat channels of its controller, and the platforms around it.
struct Chat {
    address: SocketAddr,
    model: Arc<ScriptedModel>,
    storage: Arc<MemoryStorage>,
    platforms: Platforms,
    channels: Channels,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

/// What came back.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// Notes nothing; what counts is that it has to be asked for.
struct WriteNote;

#[async_trait]
impl Tool for WriteNote {
    fn definition(&self) -> ToolDefinition {
        let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"] });
        ToolDefinition::new("write_note", "Writes a note.", schema).category(ToolCategory::Edit).effect(ToolEffect::Mutating)
    }

    async fn call(&self, _: Value, _: &ToolContext) -> Result<ToolOutcome, ToolError> {
        Ok(ToolOutcome::Done(ToolOutput::text("written")))
    }
}

fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap()
}

impl Chat {
    async fn open(turns: impl IntoIterator<Item = Turn>) -> Self {
        let (storage, platforms) = (Arc::new(MemoryStorage::default()), Platforms::start().unwrap());
        let model = Arc::new(ScriptedModel::new(turns));
        let answering: Arc<dyn ModelProvider> = model.clone();
        let controller = AgentController::builder()
            .id("code")
            .storage(storage.clone() as Arc<dyn Storage>)
            .models(move |_: &ModelId| Ok(answering.clone()))
            .agent(AgentConfig::new("agent").tools([Arc::new(WriteNote) as Arc<dyn Tool>]))
            .mode(Mode::new("build").model("p/m"))
            .build()
            .unwrap();
        controller.init().await.unwrap();
        let slack = Slack::new(sign::SLACK_SECRET, sign::SLACK_TOKEN)
            .app_id(sign::SLACK_APP)
            .bot_user(sign::SLACK_BOT)
            .base_url(platforms.base_url("slack"));
        let telegram = Telegram::new(sign::TELEGRAM_TOKEN, sign::TELEGRAM_SECRET)
            .username(sign::TELEGRAM_BOT)
            .base_url(platforms.base_url("telegram"));
        let discord = Discord::new(sign::DISCORD_APP, &sign::discord_public_key(), sign::DISCORD_TOKEN)
            .unwrap()
            .base_url(platforms.base_url("discord"));
        let channels = Channels::builder(controller.clone())
            .storage(storage.clone() as Arc<dyn Storage>)
            .key(b"a key of more than thirty-two bytes for tests".as_slice())
            .adapter(slack)
            .adapter(telegram)
            .adapter(discord)
            .build()
            .unwrap();
        channels.start().await.unwrap();
        let mut registry = ChannelRegistry::new();
        registry.register(channels.clone()).unwrap();
        let registry = Arc::new(registry);
        let server = Server::builder()
            .controller(Served::new("code", controller))
            .webhooks(move |controller, platform, request| {
                let registry = registry.clone();
                async move { registry.receive(&controller, &platform, request).await }
            })
            .build()
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(async move {
            server.serve(listener, async { drop(stopped.await) }).await.unwrap();
        });
        Self { address, model, storage, platforms, channels, stop, serving }
    }

    async fn deliver(&self, delivery: &Delivery) -> Answer {
        self.deliver_to("code", delivery).await
    }

    async fn deliver_to(&self, controller: &str, delivery: &Delivery) -> Answer {
        let path = format!("/api/agent-controllers/{controller}/channels/{}/webhook", delivery.platform);
        let mut text = format!("POST {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", self.address);
        for (name, value) in &delivery.headers {
            text += &format!("{name}: {value}\r\n");
        }
        text += &format!("content-length: {}\r\n\r\n{}", delivery.body.len(), delivery.body);
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        socket.write_all(text.as_bytes()).await.unwrap();
        let mut all = vec![];
        tokio::time::timeout(PATIENCE, socket.read_to_end(&mut all)).await.unwrap().unwrap();
        let end = all.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        let head = String::from_utf8_lossy(&all[..end]).to_ascii_lowercase();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
        Answer { status, head, body: all.split_off(end + 4) }
    }

    async fn see(&self, channel: &str, text: &str) -> Shown {
        let find = |shown: &[Shown]| shown.iter().find(|one| one.channel == channel && one.text.contains(text)).cloned();
        self.platforms.until(PATIENCE, find).await.unwrap_or_else(|| panic!("no `{text}` in {:#?}", self.platforms.shown()))
    }

    async fn close(self) {
        self.channels.shutdown().await;
        drop(self.stop);
        self.serving.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn signed_requests_of_three_platforms_are_answered_through_their_apis() {
    let chat = Chat::open([Turn::text("one"), Turn::text("two"), Turn::text("three")]).await;
    let discord = sign::discord_ask("1", "77", true, "8", "hello", now());
    let deliveries = [
        (sign::slack_message("Ev1", "D1", None, "U1", "hello", "18.1", now()), "D1", "one"),
        (sign::telegram_message(1, 55, 7, "hello", 3, now()), "55", "two"),
        (discord.clone(), "77", "three"),
    ];
    for (delivery, channel, answer) in &deliveries {
        let answered = chat.deliver(delivery).await;
        assert_eq!(answered.status, 200, "{answered:?}");
        chat.see(channel, answer).await;
    }
    // What the platforms want to hear back, byte for byte.
    assert_eq!(chat.deliver(&discord).await.json()["type"], 4);
    let ping = chat.deliver(&sign::discord(&json!({ "id": "2", "application_id": sign::DISCORD_APP, "type": 1 }), now())).await;
    assert_eq!((ping.json(), ping.head.contains("content-type: application/json")), (json!({ "type": 1 }), true));
    let handshake = json!({ "type": "url_verification", "token": "t", "challenge": "3eZbrw1aBm2r" }).to_string();
    assert_eq!(chat.deliver(&sign::slack(handshake, "application/json", now())).await.body, b"3eZbrw1aBm2r");
    // A second delivery of each starts nothing.
    for (delivery, ..) in &deliveries {
        assert_eq!(chat.deliver(delivery).await.status, 200);
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(chat.model.requests().len(), 3);
    assert_eq!(chat.platforms.shown().len(), 3);
    chat.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_is_pressed_on_the_platform_and_another_given_elsewhere() {
    let note = |id: &str| Turn::tool(id, "write_note", json!({ "path": "a.md", "content": "x" }));
    let chat = Chat::open([note("c1"), Turn::text("noted"), note("c2"), Turn::text("noted again")]).await;
    assert_eq!(chat.deliver(&sign::slack_message("Ev1", "D1", None, "U1", "note it", "18.1", now())).await.status, 200);
    let card = chat.see("D1", "wants to run").await;
    let value = &card.buttons.iter().find(|(label, _)| label == "Approve").unwrap().1;
    let press = sign::slack_press("T1", "D1", None, &card.id, "U1", value, now());
    assert_eq!(chat.deliver(&press).await.status, 200);
    chat.see("D1", "noted").await;
    chat.see("D1", "Approved").await;
    // Another surface of the process decides, and the card in the conversation says so.
    assert_eq!(chat.deliver(&sign::slack_message("Ev2", "D1", None, "U1", "note more", "18.2", now())).await.status, 200);
    let find = |shown: &[Shown]| shown.iter().find(|one| one.text.contains("wants to run") && !one.buttons.is_empty()).cloned();
    let card = chat.platforms.until(PATIENCE, find).await.unwrap();
    let pending = chat.channels.controller().pending().await.unwrap();
    chat.channels.controller().answer(&pending[0].id, ac_controller::Answer::Approve { grant: None }).await.unwrap();
    chat.see("D1", "noted again").await;
    let settled = |shown: &[Shown]| shown.iter().find(|one| one.id == card.id && one.text.contains("Approved")).cloned();
    assert!(chat.platforms.until(PATIENCE, settled).await.unwrap().buttons.is_empty());
    chat.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_forged_replayed_stale_or_of_another_app_is_refused_before_anything_exists() {
    let chat = Chat::open([Turn::text("never")]).await;
    let slack = |at| sign::slack_message("Ev1", "D1", None, "U1", "hello", "18.1", at);
    let discord = |at| sign::discord_ask("1", "77", true, "8", "hello", at);
    let telegram = sign::telegram_message(1, 55, 7, "hello", 3, now());
    let forged = |delivery: Delivery| Delivery { body: delivery.body.replace("hello", "rm -rf"), ..delivery };
    let bare = |delivery: Delivery| Delivery { headers: vec![], ..delivery };
    // A genuine request of some minutes ago, told under the time of now.
    let mut refreshed = slack(now() - 400);
    for (name, value) in &mut refreshed.headers {
        if name == "x-slack-request-timestamp" {
            *value = now().to_string();
        }
    }
    let attacks = [
        ("forged", 401, forged(slack(now()))),
        ("forged", 401, forged(discord(now()))),
        ("unsigned", 401, bare(slack(now()))),
        ("unsigned", 401, bare(discord(now()))),
        ("unsigned", 401, bare(telegram.clone())),
        ("replayed", 401, slack(now() - 400)),
        ("replayed", 401, discord(now() - 400)),
        ("replayed under a new time", 401, refreshed),
        ("another app", 403, sign::slack_of_another_app(now())),
        ("another app", 403, sign::discord_of_another_app(now())),
        ("another bot", 401, Delivery { headers: vec![("x-telegram-bot-api-secret-token".into(), "other".into())], ..telegram }),
        ("another platform's", 401, Delivery { platform: "discord".into(), ..slack(now()) }),
        ("no platform", 404, Delivery { platform: "teams".into(), ..slack(now()) }),
    ];
    for (what, status, delivery) in attacks {
        let answered = chat.deliver(&delivery).await;
        assert_eq!(answered.status, status, "{what} at {}: {answered:?}", delivery.platform);
        assert!(!String::from_utf8_lossy(&answered.body).contains("hello"), "nothing comes back");
    }
    assert_eq!(chat.deliver_to("other", &slack(now())).await.status, 404, "another controller");
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(chat.channels.controller().sessions().is_empty());
    assert!(chat.model.requests().is_empty() && chat.platforms.called().is_empty());
    for controller in ["code", "code/channels"] {
        let rows = chat.storage.sessions().list(&controller.into(), None, 10).await.unwrap();
        assert!(rows.items.is_empty(), "{controller}: {rows:?}");
    }
    chat.close().await;
}
