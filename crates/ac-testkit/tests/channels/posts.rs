use std::time::Duration;

use ac_testkit::{Turn, platforms::sign};

use crate::desk::{AT, Desk};

/// 12,000 characters with a code block over the border, emoji, and a word of 5,000.
fn long() -> String {
    let mut text = "Words with emoji 👩‍👩‍👧 in them. ".repeat(110);
    text.push_str("\n\n```python\n");
    for n in 0..200 {
        text.push_str(&format!("print({n})  # 🦀\n"));
    }
    text.push_str("```\n\nThen more. ");
    text.push_str(&"x".repeat(5_000));
    text.push_str(" THE END");
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_answer_becomes_several_messages_on_each_platform() {
    // B-129: in order, nothing lost or doubled, no platform ever found one too long.
    let desk = Desk::new([Turn::text(long()), Turn::text(long()), Turn::text(long())]);
    let life = desk.open("a").await;
    life.say("Ev1", "hello").await;
    assert_eq!(life.deliver(&sign::telegram_message(1, 55, 7, "hello", 3, AT)).await, 200);
    assert_eq!(life.deliver(&sign::discord_ask("1", "77", true, "8", "hello", AT)).await, 200);
    for channel in ["D1", "55", "77"] {
        let find = |shown: &[ac_testkit::platforms::Shown]| {
            shown.iter().any(|one| one.channel == channel && one.text.contains("THE END")).then_some(())
        };
        assert!(desk.platforms.until(Duration::from_secs(20), find).await.is_some(), "{channel}");
        let whole: String = desk.platforms.shown_in(channel).into_iter().map(|one| one.text).collect();
        assert_eq!(whole.matches('🦀').count(), 200, "{channel}");
        assert_eq!(whole.matches("👩‍👩‍👧").count(), 110, "{channel}");
        assert_eq!(whole.matches('x').count(), 5_000, "{channel}");
        assert!(whole.find("print(0)").unwrap() < whole.find("print(199)").unwrap());
    }
    let refused: Vec<_> = desk.platforms.called().into_iter().filter(|call| call.status >= 400).collect();
    assert!(refused.is_empty(), "{refused:#?}");
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_that_the_platform_wants_is_kept_and_the_end_arrives() {
    // B-130: 200 pieces in two seconds; edits are coalesced, no edit is made twice, the pause is kept, the run is not slowed down.
    let pieces: Vec<String> = (0..200).map(|n| format!("piece {n}. ")).chain(["THE END".to_owned()]).collect();
    let desk = Desk::new([Turn::chunks(pieces)]);
    desk.platforms.behave(|manners| {
        manners.too_fast_every = 3;
        manners.pause = Duration::from_millis(700);
    });
    let life = desk.open("a").await;
    life.say("Ev1", "hello").await;
    desk.see("THE END").await;
    let called = desk.platforms.called();
    let writes: Vec<_> = called.iter().filter(|call| call.method == "chat.update" || call.method == "chat.postMessage").collect();
    assert!(writes.len() < 20, "{} writes for 201 pieces", writes.len());
    for pair in writes.windows(2) {
        assert_ne!((&pair[0].body, pair[0].status), (&pair[1].body, 200), "the same text twice");
        if pair[0].status == 429 {
            let pause = pair[1].at.duration_since(pair[0].at);
            assert!(pause >= Duration::from_millis(690), "only {pause:?} after a refusal");
        }
    }
    assert_eq!(desk.platforms.shown().len(), 1);
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn people_see_that_the_agent_is_at_work_where_the_platform_shows_it() {
    let desk = Desk::new([Turn::hang(), Turn::hang()]);
    let life = desk.open("a").await;
    assert_eq!(life.deliver(&sign::telegram_message(1, 55, 7, "hello", 3, AT)).await, 200);
    assert_eq!(life.deliver(&sign::discord_ask("1", "77", true, "8", "hello", AT)).await, 200);
    let seen = || desk.platforms.called().iter().filter(|call| call.method == "sendChatAction" || call.method.ends_with("/typing")).count();
    for _ in 0..500 {
        if seen() >= 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(seen(), 2);
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_whose_message_is_gone_is_posted_anew() {
    let desk = Desk::new([Turn::text("begin ").then_pause(Duration::from_millis(400)).then_text("THE END")]);
    desk.platforms.behave(|manners| manners.edits_gone = true);
    let life = desk.open("a").await;
    life.say("Ev1", "hello").await;
    assert!(desk.see("THE END").await.text.contains("begin"));
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_run_is_one_friendly_line() {
    let desk = Desk::new([Turn::error(400, "a secret reason of the provider")]);
    let life = desk.open("a").await;
    life.say("Ev1", "hello").await;
    let line = desk.see("something went wrong").await;
    assert!(!line.text.contains("secret reason"), "{}", line.text);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(desk.platforms.shown().len(), 1);
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn markup_of_the_model_is_the_platforms_own() {
    let desk = Desk::new([Turn::text("**bold** <!channel> & `a<b`"), Turn::text("**bold** <b>raw</b>")]);
    let life = desk.open("a").await;
    life.say("Ev1", "hello").await;
    let shown = desk.see("bold").await;
    assert_eq!(shown.text, "*bold* &lt;!channel&gt; &amp; `a&lt;b`");
    assert_eq!(life.deliver(&sign::telegram_message(1, 55, 7, "hello", 3, AT)).await, 200);
    assert_eq!(desk.see("<b>bold</b>").await.text, "<b>bold</b> &lt;b&gt;raw&lt;/b&gt;");
    life.end().await;
}
