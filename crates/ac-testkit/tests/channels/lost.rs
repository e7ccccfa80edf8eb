//! Answers that get lost on the way, and platforms that fail: what is to be seen is seen once, and nobody is left without it.

use std::{sync::Arc, time::Duration};

use ac_channels::{ChannelErrorKind, Conversation, PostKey, Upload};
use ac_core::{
    CancelToken, FinishReason, ModelError, ModelEvent, ModelProvider, ModelRequest, ModelStream, Part, Timestamp,
    message::{FilePart, FileSource},
    model::Finish,
};
use ac_testkit::{
    Turn,
    platforms::{Shown, sign, sign::Delivery},
};
use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use tokio::sync::Semaphore;

use crate::{
    desk::{AT, Desk, PATIENCE, direct},
    files::adapters,
};

async fn until(desk: &Desk, what: &str, holds: impl Fn(&[Shown]) -> bool) {
    let found = desk.platforms.until(PATIENCE, |shown| holds(shown).then_some(())).await;
    found.unwrap_or_else(|| panic!("{what}: {:#?}", desk.platforms.shown()));
}

fn on_each_platform(event: i64) -> [(&'static str, Delivery); 3] {
    [
        ("D1", direct(&format!("Ev{event}"), "hello")),
        ("55", sign::telegram_message(event, 55, 7, "hello", event, AT)),
        ("77", sign::discord_ask(&event.to_string(), "77", true, "8", "hello", AT)),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_words_are_posted_again_even_where_a_post_failed_before() {
    // Discord knows a nonce for some minutes only, so an earlier attempt is recognised by its words; an earlier message is none.
    let desk = Desk::new((0..6).map(|_| Turn::text("Done.")));
    let life = desk.open("a").await;
    for (channel, delivery) in on_each_platform(1) {
        assert_eq!(life.deliver(&delivery).await, 200);
        until(&desk, channel, |shown| shown.iter().any(|one| one.channel == channel && one.text == "Done.")).await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    for (channel, delivery) in on_each_platform(2) {
        desk.platforms.behave(|manners| manners.failing = 1);
        assert_eq!(life.deliver(&delivery).await, 200);
        let two = |shown: &[Shown]| shown.iter().filter(|one| one.channel == channel && one.text == "Done.").count() == 2;
        until(&desk, channel, two).await;
    }
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_whose_answer_is_lost_is_seen_once() {
    let desk = Desk::new((0..3).map(|_| Turn::text("Done.")));
    let life = desk.open("a").await;
    for (channel, delivery) in on_each_platform(1) {
        desk.platforms.behave(|manners| manners.answers_lost = 1);
        assert_eq!(life.deliver(&delivery).await, 200);
        until(&desk, channel, |shown| shown.iter().any(|one| one.channel == channel && one.text == "Done.")).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let times = desk.platforms.shown_in(channel).iter().filter(|one| one.text == "Done.").count();
        assert_eq!(times, 1, "{channel}: {:#?}", desk.platforms.shown_in(channel));
    }
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_waits_until_the_platform_lets_it_be_posted() {
    // A token that was revoked and made anew, a bot that was thrown out of a channel and let in again.
    let desk = Desk::new((0..3).map(|_| Turn::text("Done.")));
    let life = desk.open("a").await;
    desk.platforms.behave(|manners| manners.denied = true);
    for (_, delivery) in on_each_platform(1) {
        assert_eq!(life.deliver(&delivery).await, 200);
    }
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert!(desk.platforms.shown().is_empty());
    desk.platforms.behave(|manners| manners.denied = false);
    for (channel, _) in on_each_platform(1) {
        until(&desk, channel, |shown| shown.iter().any(|one| one.channel == channel && one.text == "Done.")).await;
    }
    life.end().await;
}

/// Says something, and the rest when it is let.
struct Slow(Arc<Semaphore>);

#[async_trait]
impl ModelProvider for Slow {
    async fn stream(&self, _: ModelRequest, _: CancelToken) -> Result<ModelStream, ModelError> {
        let say = |text: &str| ModelEvent::TextDelta { index: 0, text: text.to_owned() };
        let let_go = self.0.clone();
        let rest = futures::stream::once(async move {
            let_go.acquire().await.unwrap().forget();
            Ok(say("and the end"))
        });
        let end = futures::stream::iter([Ok(ModelEvent::Finish(Finish::new(FinishReason::Stop)))]);
        Ok(futures::stream::iter([Ok(say("It begins "))]).chain(rest).chain(end).boxed())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_has_begun_waits_for_its_rest_to_be_let_through() {
    let mut desk = Desk::new([]);
    let rest = Arc::new(Semaphore::new(0));
    desk.instead = Some(Arc::new(Slow(rest.clone())));
    let life = desk.open("a").await;
    for (channel, delivery) in on_each_platform(1) {
        assert_eq!(life.deliver(&delivery).await, 200);
        until(&desk, channel, |shown| shown.iter().any(|one| one.channel == channel && one.text.contains("It begins"))).await;
        desk.platforms.behave(|manners| manners.denied = true);
        rest.add_permits(1);
        tokio::time::sleep(Duration::from_millis(1_200)).await;
        assert!(!desk.platforms.shown_in(channel).iter().any(|one| one.text.contains("the end")), "{channel}");
        desk.platforms.behave(|manners| manners.denied = false);
        until(&desk, channel, |shown| shown.iter().any(|one| one.channel == channel && one.text.contains("and the end"))).await;
    }
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_may_not_be_posted_holds_up_nothing() {
    let mut desk = Desk::new([]);
    desk.instead = Some(Arc::new(Draws));
    let life = desk.open("a").await;
    desk.platforms.behave(|manners| manners.files_denied = true);
    for event in [1, 2] {
        for (channel, delivery) in on_each_platform(event).into_iter().filter(|(channel, _)| *channel != "55") {
            assert_eq!(life.deliver(&delivery).await, 200);
            let times = usize::try_from(event).unwrap();
            until(&desk, channel, |shown| shown.iter().filter(|one| one.channel == channel && one.text.contains("Here:")).count() == times)
                .await;
        }
    }
    assert!(desk.platforms.shown().iter().all(|one| one.file.is_none()));
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_held_the_place_of_a_file_goes_where_it_cannot_become_the_file() {
    let mut desk = Desk::new([]);
    desk.instead = Some(Arc::new(Draws));
    let life = desk.open("a").await;
    desk.platforms.behave(|manners| manners.no_media_edits = true);
    assert_eq!(life.deliver(&sign::telegram_message(1, 55, 7, "hello", 1, AT)).await, 200);
    let files = |shown: &[Shown]| shown.iter().filter(|one| one.file.is_some()).count();
    until(&desk, "55", |shown| files(shown) == 2 && shown.len() == 3).await;
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_whose_posting_nobody_heard_of_is_posted_once() {
    let desk = Desk::new([]);
    let file = Upload { name: "a.png".into(), media_type: "image/png".into(), bytes: Bytes::from_static(b"PNG") };
    for (adapter, _) in adapters(&desk) {
        let platform = adapter.platform().to_owned();
        if platform == "webhook" {
            continue;
        }
        let to = Conversation::new(&platform, "5");
        let staged = adapter.stage(&to, &file).await.unwrap();
        let key = PostKey { staged, ..PostKey::new("k", Timestamp::from_millis(AT * 1000)) };
        desk.platforms.behave(|manners| manners.answers_lost = 1);
        let error = adapter.upload(&to, &key, &file).await.unwrap_err();
        assert_eq!(error.kind(), ChannelErrorKind::Unavailable, "{platform}");
        adapter.upload(&to, &PostKey { again: true, ..key }, &file).await.unwrap();
        let shown: Vec<_> = desk.platforms.shown().into_iter().filter(|shown| shown.platform == platform).collect();
        assert!(shown.len() == 1 && shown[0].file.is_some(), "{platform}: {shown:#?}");
    }
}

/// Draws the same picture twice.
struct Draws;

#[async_trait]
impl ModelProvider for Draws {
    async fn stream(&self, _: ModelRequest, _: CancelToken) -> Result<ModelStream, ModelError> {
        let file = |index| {
            let source = FileSource::Base64("UE5H".into());
            let part = Part::File(FilePart { media_type: "image/png".into(), source, name: Some("a.png".into()), opaque: None });
            ModelEvent::PartDone { index, part }
        };
        let events = vec![
            ModelEvent::TextDelta { index: 0, text: "Here: ".into() },
            file(1),
            file(2),
            ModelEvent::Finish(Finish::new(FinishReason::Stop)),
        ];
        Ok(futures::stream::iter(events.into_iter().map(Ok)).boxed())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_an_answer_are_posted_once_each_though_answers_are_lost() {
    let mut desk = Desk::new([]);
    desk.instead = Some(Arc::new(Draws));
    let life = desk.open("a").await;
    for (channel, delivery) in on_each_platform(1) {
        desk.platforms.behave(|manners| (manners.answers_lost, manners.file_answers_lost) = (1, 2));
        assert_eq!(life.deliver(&delivery).await, 200);
        let files = |shown: &[Shown]| shown.iter().filter(|one| one.channel == channel && one.file.is_some()).count();
        until(&desk, channel, |shown| files(shown) >= 2).await;
        tokio::time::sleep(Duration::from_millis(700)).await;
        assert_eq!(files(&desk.platforms.shown()), 2, "{channel}: {:#?}", desk.platforms.shown_in(channel));
    }
    life.end().await;
}
