//! Files in both directions, on each platform.

use ac_channels::{Attachment, ChannelAdapter, ChannelErrorKind, Conversation, Discord, PostKey, Telegram, Upload};
use ac_core::{Part, Timestamp};
use ac_testkit::{Turn, platforms::sign};
use bytes::Bytes;
use serde_json::json;

use crate::desk::{AT, Desk};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n with \r\n--part- in it \0\xff";

pub(crate) fn adapters(desk: &Desk) -> Vec<(Box<dyn ChannelAdapter>, String)> {
    let url = |platform: &str| desk.platforms.file_url(platform, "F1");
    let telegram = Telegram::new(sign::TELEGRAM_TOKEN, sign::TELEGRAM_SECRET).base_url(desk.platforms.base_url("telegram"));
    let discord = Discord::new(sign::DISCORD_APP, &sign::discord_public_key(), sign::DISCORD_TOKEN)
        .unwrap()
        .base_url(desk.platforms.base_url("discord"));
    vec![
        (Box::new(desk.slack()), url("slack")),
        (Box::new(telegram), "F1".to_owned()),
        (Box::new(discord), url("discord")),
        (Box::new(desk.webhook()), url("webhook")),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_fetched_where_the_platform_keeps_it_and_nowhere_else() {
    let desk = Desk::new([]);
    desk.platforms.behave(|manners| manners.files = vec![("F1".into(), PNG.to_vec())]);
    for (adapter, reference) in adapters(&desk) {
        let platform = adapter.platform().to_owned();
        let file = Attachment { reference, name: None, media_type: "image/png".into(), size: None };
        assert_eq!(adapter.download(&file, 1000).await.unwrap(), PNG, "{platform}");
        let error = adapter.download(&file, PNG.len() - 1).await.unwrap_err();
        assert_eq!(error.kind(), ChannelErrorKind::TooLarge, "{platform}");
        if platform != "telegram" {
            // Credentials go nowhere else, and this process fetches nothing for strangers.
            for reference in ["http://127.0.0.1:9/x", "https://files.slack.com.evil.test/x", "file:///etc/passwd", ""] {
                let foreign = Attachment { reference: reference.into(), ..file.clone() };
                let error = adapter.download(&foreign, 1000).await.unwrap_err();
                assert_eq!(error.kind(), ChannelErrorKind::Denied, "{platform} {reference}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_posted_whole() {
    let desk = Desk::new([]);
    let file = Upload { name: "a \"b\".png".into(), media_type: "image/png".into(), bytes: Bytes::from_static(PNG) };
    for (adapter, _) in adapters(&desk) {
        let platform = adapter.platform().to_owned();
        if platform == "webhook" {
            continue;
        }
        let to = Conversation { id: format!("{platform}:5"), channel: "5".into(), thread: None, direct: true };
        let key = PostKey::new("k", Timestamp::from_millis(AT * 1000));
        adapter.upload(&to, &key, &file).await.unwrap_or_else(|error| panic!("{platform}: {error}"));
        let shown = desk.platforms.shown().into_iter().find(|shown| shown.platform == platform).unwrap();
        let (name, bytes) = shown.file.unwrap();
        assert!(bytes == PNG && name.contains("png"), "{platform} {name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_people_attach_reaches_the_model_by_its_type() {
    let desk = Desk::new([Turn::text("seen")]);
    desk.platforms.behave(|manners| {
        manners.files = vec![("F1".into(), PNG.to_vec()), ("F2".into(), b"a,b".to_vec()), ("F3".into(), b"MZ".to_vec())];
    });
    let life = desk.open("a").await;
    let file = |name: &str, kind: &str, id: &str, size: u64| json!({ "name": name, "mimetype": kind, "size": size, "url_private_download": desk.platforms.file_url("slack", id) });
    let message = json!({
        "type": "message", "subtype": "file_share", "user": "U1", "text": "look", "ts": "18.1", "channel": "D1", "channel_type": "im",
        "files": [
            file("p.png", "image/png", "F1", 10), file("t.csv", "text/csv; charset=utf-8", "F2", 3), file("x.exe", "application/x-msdownload", "F3", 2),
            file("huge.png", "image/png", "F1", 1 << 40), file("gone.png", "image/png", "F9", 10),
        ],
    });
    let body = json!({ "type": "event_callback", "event_id": "Ev1", "api_app_id": sign::SLACK_APP, "event": message });
    assert_eq!(life.deliver(&sign::slack(body.to_string(), "application/json", AT)).await, 200);
    desk.see("seen").await;
    let sent = desk.model.requests()[0].messages.last().unwrap().clone();
    let kinds: Vec<&str> =
        sent.parts.iter().filter_map(|part| if let Part::File(file) = part { Some(file.media_type.as_str()) } else { None }).collect();
    assert_eq!(kinds, ["image/png"]);
    // The text of a file is text for the model.
    let text = sent.text();
    assert!(text.contains("t.csv") && text.contains("a,b"), "{text}");
    for words in
        ["x.exe (application/x-msdownload), not shown", "huge.png (image/png), too large", "gone.png (image/png), could not be fetched"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    life.end().await;
}
