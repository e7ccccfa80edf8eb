//! Rules for messages.

use std::collections::BTreeSet;

use ac_core::{Message, MessageId, Part, Role, ToolCallPart};
use ac_storage::{
    RunStage, Storage,
    StorageErrorKind::{Conflict, Deleted, Exists, NotFound},
    domain::MessageQuery,
    record::MessageCursor,
};
use serde_json::json;

use super::{
    Verdict, Violation,
    fixture::{assistant, at, commit, create, ensure, ensure_eq, fails, head, head_version, record, texts, thread, user, whole_run},
};

/// Positions go up in the order of putting and never change.
pub async fn messages_keep_the_order_in_which_they_were_put(store: &dyn Storage) -> Verdict {
    create(store, "t").await?;
    for id in ["z", "a", "m"] {
        let version = head_version(store, "t").await?;
        store.messages().put(&"t".into(), &user(id, id), version).await?;
    }
    whole_run(store, "r", "t", &[user("y", "y"), assistant("b", "b")]).await?;
    ensure_eq!(texts(store, &"t".into()).await?, ["z", "a", "m", "y", "b"], "the order");
    let page = store.messages().page(&"t".into(), &MessageQuery::default()).await?;
    ensure!(page.items.is_sorted_by(|a, b| a.position < b.position), "positions do not go up");
    ensure_eq!(head(store, "t").await?.value.next_position, 5, "the next position");
    let first = store.messages().get(&"t".into(), &"z".into()).await?;
    ensure_eq!(first.as_ref(), page.items.first(), "the first message, read alone");
    Ok(())
}

/// Every part is kept, also what this version does not know.
pub async fn a_message_reads_back_as_it_was_put(store: &dyn Storage) -> Verdict {
    create(store, "t").await?;
    let call = ToolCallPart::new("call/1", "view", json!({"path": "a\u{0}b", "big": 9_007_199_254_740_993_u64}));
    let parts = vec![Part::text("text \u{2028}\u{1F600}"), Part::ToolCall(call), Part::Unknown(json!({"type": "from later", "x": [1.5]}))];
    let mut message = Message::new("m", Role::Signal, parts, at(5));
    message.meta.host.insert("key".into(), json!(null));
    store.messages().put(&"t".into(), &message, head_version(store, "t").await?).await?;
    let stored = store.messages().get(&"t".into(), &"m".into()).await?;
    ensure_eq!(stored.map(|stored| (*stored.message).clone()), Some(message), "the message");
    ensure_eq!(store.messages().get(&"t".into(), &"other".into()).await?, None, "a message that is not there");
    ensure_eq!(store.messages().get(&"other".into(), &"m".into()).await?, None, "a message of a thread that is not there");
    Ok(())
}

/// Size is no reason to lose anything.
pub async fn a_large_message_reads_back(store: &dyn Storage) -> Verdict {
    create(store, "t").await?;
    let text = "0123456789abcdef".repeat(40_000);
    whole_run(store, "r", "t", &[user("small", "small"), user("large", &text), assistant("after", "after")]).await?;
    let stored = store.messages().get(&"t".into(), &"large".into()).await?;
    ensure!(stored.is_some_and(|stored| stored.message.text() == text), "a message of 640 kB is not what was put");
    let lengths: Vec<_> = texts(store, &"t".into()).await?.iter().map(String::len).collect();
    ensure_eq!(lengths, [5, text.len(), 5], "lengths on a page");
    Ok(())
}

/// The answer to a first attempt may be lost, so a second one is fine, on whatever version.
pub async fn putting_the_same_message_again_changes_nothing(store: &dyn Storage) -> Verdict {
    create(store, "t").await?;
    let version = head_version(store, "t").await?;
    store.messages().put(&"t".into(), &user("m", "hello"), version).await?;
    let after = head(store, "t").await?;
    store.messages().put(&"t".into(), &user("m", "hello"), version).await?;
    store.messages().put(&"t".into(), &user("m", "hello"), after.version).await?;
    ensure_eq!(texts(store, &"t".into()).await?, ["hello"], "messages");
    ensure_eq!(head(store, "t").await?, after, "the head");
    Ok(())
}

/// An id with other words is refused.
pub async fn a_message_is_not_put_over_another(store: &dyn Storage) -> Verdict {
    create(store, "t").await?;
    for message in [user("m", "hello"), assistant("a", "hello")] {
        let version = head_version(store, "t").await?;
        store.messages().put(&"t".into(), &message, version).await?;
    }
    for message in [user("m", "else"), assistant("m", "hello"), assistant("a", "else")] {
        let version = head_version(store, "t").await?;
        fails(Exists, "other words under a known id", store.messages().put(&"t".into(), &message, version).await)?;
    }
    ensure_eq!(texts(store, &"t".into()).await?, ["hello", "hello"], "messages");
    Ok(())
}

/// A message outside a run is a compare-and-set on the head.
pub async fn a_message_is_put_on_the_version_of_the_head_only(store: &dyn Storage) -> Verdict {
    fails(NotFound, "a message without thread", store.messages().put(&"t".into(), &user("m", "hello"), 1).await)?;
    create(store, "t").await?;
    let version = head_version(store, "t").await?;
    store.messages().put(&"t".into(), &user("one", "one"), version).await?;
    fails(Conflict, "a message on an old head", store.messages().put(&"t".into(), &user("two", "two"), version).await)?;
    ensure_eq!(texts(store, &"t".into()).await?, ["one"], "messages");
    ensure_eq!(head(store, "t").await?.value.updated_at, at(5), "when the thread was written to");
    Ok(())
}

/// While a run holds the thread, its commits alone put messages (`R8`).
pub async fn no_message_is_put_beside_an_open_run(store: &dyn Storage) -> Verdict {
    create(store, "t").await?;
    let mut version = commit(store, None, &record("r", "t", RunStage::Open, 1)?, &[user("m", "hello")]).await?;
    for stage in [RunStage::Finished, RunStage::Closed] {
        let head = head_version(store, "t").await?;
        fails(Conflict, "a message beside a run", store.messages().put(&"t".into(), &user("beside", "beside"), head).await)?;
        version = commit(store, Some(version), &record("r", "t", stage, version + 1)?, &[]).await?;
    }
    ensure_eq!(texts(store, &"t".into()).await?, ["hello"], "messages");
    let head = head_version(store, "t").await?;
    store.messages().put(&"t".into(), &user("after", "after"), head).await?;
    Ok(())
}

/// Cursors are exclusive, by position or by message, in both directions.
pub async fn message_pages_go_both_ways(store: &dyn Storage) -> Verdict {
    create(store, "t").await?;
    let put: Vec<_> = (0..7).map(|n| user(&format!("m{n}"), &n.to_string())).collect();
    whole_run(store, "r", "t", &put).await?;
    for newest_first in [false, true] {
        let mut all: Vec<String> = (0..7).map(|n| n.to_string()).collect();
        if newest_first {
            all.reverse();
        }
        for limit in [0, 1, 3, 7, 8] {
            let mut query = MessageQuery { after: None, newest_first, limit };
            let mut found = Vec::new();
            loop {
                let page = store.messages().page(&"t".into(), &query).await?;
                ensure!(limit == 0 || page.items.len() <= limit, "a page of {limit} has {} messages", page.items.len());
                found.extend(page.items.iter().map(|stored| stored.message.text()));
                let Some(next) = page.next else { break };
                ensure!(found.len() < all.len(), "there is a next page after the last message");
                let position = next.parse().map_err(|_| Violation::new(format!("{next:?} is no position")))?;
                query.after = Some(MessageCursor::Position(position));
            }
            ensure_eq!(found, all, "pages of {limit}, newest first: {newest_first}");
        }
        let query = MessageQuery { after: Some(MessageCursor::Message("m3".into())), newest_first, limit: 2 };
        let page = store.messages().page(&"t".into(), &query).await?;
        let expected = if newest_first { ["2", "1"] } else { ["4", "5"] };
        ensure_eq!(page.items.iter().map(|stored| stored.message.text()).collect::<Vec<_>>(), expected, "from a message on");
        let query = MessageQuery { after: Some(MessageCursor::Message("none".into())), newest_first, limit: 2 };
        fails(NotFound, "a cursor that is no message", store.messages().page(&"t".into(), &query).await)?;
    }
    ensure_eq!(texts(store, &"other".into()).await?, Vec::<String>::new(), "messages of a thread that is not there");
    Ok(())
}

/// A clone or fork is cut before the given message; ids are kept and lead to the messages as in any thread, and the source is left alone.
pub async fn a_copy_holds_what_stands_before_a_message(store: &dyn Storage) -> Verdict {
    let until: [(&str, Option<MessageId>, u64); 4] =
        [("all", None, 600), ("none", Some("m0".into()), 0), ("one", Some("m1".into()), 1), ("many", Some("m555".into()), 555)];
    create(store, "t").await?;
    let put: Vec<_> = (0..600).map(|n| user(&format!("m{n}"), &n.to_string())).collect();
    whole_run(store, "r", "t", &put).await?;
    let source = head(store, "t").await?;
    for (to, until, count) in until {
        let new = thread(to, "resource", 7);
        ensure_eq!(store.messages().copy(&"t".into(), &new, until.as_ref()).await?, count, "messages copied to {to}");
        ensure_eq!(store.threads().get(&to.into()).await?.map(|stored| stored.value), Some(new), "the thread {to}");
        let found = texts(store, &to.into()).await?;
        ensure_eq!(found, (0..count).map(|n| n.to_string()).collect::<Vec<_>>(), "messages of {to}");
        ensure_eq!(head(store, to).await?.value.next_position, count, "the next position of {to}");
        ids_lead_to_messages(store, to, count).await?;
        whole_run(store, &format!("r {to}"), to, &[user("new", "new")]).await?;
        ensure_eq!(texts(store, &to.into()).await?.last().map(String::as_str), Some("new"), "the message after the copy to {to}");
        // A copy of the copy, up to what came later.
        let again = format!("{to} again");
        let copied = store.messages().copy(&to.into(), &thread(&again, "resource", 7), Some(&"new".into())).await?;
        ensure_eq!(copied, count, "messages copied to {again}");
        ids_lead_to_messages(store, &again, count).await?;
        let new = store.messages().get(&to.into(), &"new".into()).await?.map(|stored| stored.position);
        ensure_eq!(new, Some(count), "where the message after the copy to {to} stands");
    }
    ensure_eq!(head(store, "t").await?, source, "the head of the source");
    Ok(())
}

/// What was copied, `m0` to the one before `m{count}`, is found by id, is a cursor, and is known to who puts it again.
async fn ids_lead_to_messages(store: &dyn Storage, id: &str, count: u64) -> Verdict {
    for n in BTreeSet::from([0, count / 2, count.saturating_sub(1), count]) {
        let found = store.messages().get(&id.into(), &format!("m{n}").into()).await?;
        let found = found.map(|stored| (stored.position, stored.message.text()));
        ensure_eq!(found, (n < count).then(|| (n, n.to_string())), "message {n} of {id} by its id");
    }
    if count == 0 {
        return Ok(());
    }
    let (last, before) = (format!("m{}", count - 1), head(store, id).await?);
    let query = MessageQuery { after: Some(MessageCursor::Message(last.as_str().into())), newest_first: true, limit: 1 };
    let page = store.messages().page(&id.into(), &query).await?;
    let expected: Vec<u64> = (count - 1).checked_sub(1).into_iter().collect();
    ensure_eq!(
        page.items.iter().map(|stored| stored.position).collect::<Vec<_>>(),
        expected,
        "what stands before the last message of {id}"
    );
    store.messages().put(&id.into(), &user(&last, &(count - 1).to_string()), before.version).await?;
    fails(Exists, "other words in a copy", store.messages().put(&id.into(), &user(&last, "else"), before.version).await)?;
    ensure_eq!(head(store, id).await?, before, "the head of {id}");
    Ok(())
}

/// A copy changes no thread that is there, and makes none where it cannot be made.
pub async fn a_copy_makes_a_thread_of_its_own(store: &dyn Storage) -> Verdict {
    create(store, "t").await?;
    create(store, "full").await?;
    create(store, "empty").await?;
    create(store, "gone").await?;
    store.threads().delete(&"gone".into()).await?;
    whole_run(store, "r", "t", &[user("m", "hello")]).await?;
    whole_run(store, "r2", "full", &[user("own", "own")]).await?;
    let copy = async |from: &str, to: &str, until: Option<MessageId>| {
        store.messages().copy(&from.into(), &thread(to, "resource", 7), until.as_ref()).await
    };
    fails(Exists, "a copy over a thread with messages", copy("t", "full", None).await)?;
    fails(Exists, "a copy over an empty thread", copy("t", "empty", None).await)?;
    fails(Deleted, "a copy over a deleted thread", copy("t", "gone", None).await)?;
    fails(NotFound, "a copy of no thread", copy("other", "new", None).await)?;
    fails(Deleted, "a copy of a deleted thread", copy("gone", "new", None).await)?;
    fails(NotFound, "a copy up to no message", copy("t", "new", Some("none".into())).await)?;
    ensure_eq!(store.threads().get(&"new".into()).await?, None, "a thread that was not made");
    ensure_eq!(texts(store, &"full".into()).await?, ["own"], "messages of the full thread");
    ensure_eq!(texts(store, &"empty".into()).await?, Vec::<String>::new(), "messages of the empty thread");
    Ok(())
}
