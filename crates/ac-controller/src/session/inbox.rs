//! The inbox of a thread: notifications, whether they were told or wait to be.

use ac_core::{Message, MessageId, ThreadId};
use serde::{Deserialize, Serialize};

use super::{Session, kept::Kept};
use crate::{
    ControllerError, ControllerErrorKind, InboxItem, Notification, NotificationDecision, NotificationRoute, NotificationSent,
    NotificationStatus, SignalAction, WhenActive, WhenIdle, notification::summary,
};

/// The name under which the inbox is kept with its thread.
pub(crate) const STATE: &str = "notifications";

/// How many items an inbox holds. What was seen to goes first, then the oldest.
const ITEMS: usize = 100;

/// The most that one notification may be, as JSON, in bytes.
const LARGEST: usize = 16 * 1024;

/// The inbox as it is stored: oldest first.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Inbox {
    items: Vec<InboxItem>,
}

/// What an arrival came to.
#[derive(Clone)]
enum Arrived {
    /// It repeats this one.
    Repeats(String),
    /// It is this item now.
    Item(Box<InboxItem>),
}

impl Inbox {
    /// Takes a notification in: one that repeats an earlier one is no other, one that can be joined with one that waits is.
    fn take(&mut self, id: &str, notification: &Notification, now: ac_core::Timestamp) -> Arrived {
        let same = |ours: &Option<String>, other: &Option<String>| ours.is_some() && ours == other;
        let of_source = |item: &InboxItem| item.notification.source == notification.source;
        let repeats = |item: &&InboxItem| of_source(item) && same(&notification.dedupe_key, &item.notification.dedupe_key);
        if let Some(known) = self.items.iter().find(repeats) {
            return Arrived::Repeats(known.id.clone());
        }
        let joins = |item: &&mut InboxItem| {
            let waits = item.status == NotificationStatus::Pending;
            waits && of_source(item) && same(&notification.coalesce_key, &item.notification.coalesce_key)
        };
        if let Some(known) = self.items.iter_mut().find(joins) {
            known.notification = notification.clone();
            known.count = known.count.saturating_add(1);
            known.updated_at = now;
            return Arrived::Item(Box::new(known.clone()));
        }
        let status = NotificationStatus::Pending;
        let item = InboxItem { id: id.to_owned(), notification: notification.clone(), status, count: 1, created_at: now, updated_at: now };
        self.items.push(item.clone());
        while self.items.len() > ITEMS {
            let seen_to = self.items.iter().position(|item| item.status != NotificationStatus::Pending);
            self.items.remove(seen_to.unwrap_or(0));
        }
        Arrived::Item(Box::new(item))
    }

    fn waiting(&self) -> Vec<InboxItem> {
        self.items.iter().filter(|item| item.status == NotificationStatus::Pending).cloned().collect()
    }

    /// Says how far items are; whether that is news.
    fn mark(&mut self, ids: &[String], status: NotificationStatus, now: ac_core::Timestamp) -> usize {
        let mut changed = 0;
        for item in self.items.iter_mut().filter(|item| ids.contains(&item.id) && item.status != status) {
            item.status = status;
            item.updated_at = now;
            changed += 1;
        }
        changed
    }
}

impl Session {
    /// Takes something from outside: the model is told now, with its next run, or in a summary, as its priority and the host's policy say.
    /// Repeated ones and those that can be joined with one that waits are told once. Declines nothing.
    ///
    /// # Errors
    /// [`InvalidNotification`](ControllerErrorKind::InvalidNotification) without source, kind or summary;
    /// [`TooLarge`](ControllerErrorKind::TooLarge) above 16 KiB of JSON; [`NoModel`](ControllerErrorKind::NoModel) where it would start a
    /// run; when the store does not answer.
    pub async fn send_notification(&self, notification: Notification) -> Result<NotificationSent, ControllerError> {
        check(&notification)?;
        let _turn = self.turn().await?;
        let thread = self.bound_thread().await?;
        let active = self.close_finished(&thread).await?.is_some();
        let route = match &self.shared().config.notifications {
            Some(policy) => policy(&notification, active),
            None => NotificationRoute::by_priority(notification.priority, active),
        };
        let sent = |decision, notification_id| NotificationSent { accepted: false, notification_id, decision, run_id: None };
        if route == NotificationRoute::Discard {
            return Ok(sent(NotificationDecision::Discard, None));
        }
        let (id, now) = (self.shared().ids.fresh("notification"), self.shared().clock.now());
        // What is to be told waits in the inbox until it stands in the thread: a process that ends in between loses nothing.
        let arrived = self
            .shared()
            .change_kept(&thread, STATE, |inbox: Option<Inbox>| {
                let mut inbox = inbox.unwrap_or_default();
                let arrived = inbox.take(&id, &notification, now);
                Ok(match &arrived {
                    Arrived::Repeats(_) => Kept::Same(arrived),
                    Arrived::Item(_) => Kept::Put(inbox, arrived.clone()),
                })
            })
            .await?;
        let item = match arrived {
            Arrived::Repeats(known) => return Ok(sent(NotificationDecision::Discard, Some(known))),
            Arrived::Item(item) => item,
        };
        if route == NotificationRoute::Summarize {
            return Ok(sent(NotificationDecision::Summarize, Some(item.id)));
        }
        let message = item.signal(NotificationStatus::Delivered).into_message(told_as(&item), now);
        let if_idle = if route == NotificationRoute::Wake { WhenIdle::Wake } else { WhenIdle::Persist };
        let action = self.signal_in_turn(&thread, message, WhenActive::Deliver, if_idle).await?;
        self.mark(&thread, std::slice::from_ref(&item.id), NotificationStatus::Delivered).await?;
        let run_id = match action {
            SignalAction::Delivered { run } | SignalAction::Woke { run } => Some(run),
            SignalAction::Persisted | SignalAction::Discarded => None,
        };
        Ok(NotificationSent { accepted: true, notification_id: Some(item.id), decision: NotificationDecision::Deliver, run_id })
    }

    /// The inbox of the bound thread, oldest first.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn notifications(&self) -> Result<Vec<InboxItem>, ControllerError> {
        let Some(thread) = self.thread_id() else { return Ok(vec![]) };
        Ok(self.shared().kept::<Inbox>(&thread, STATE).await?.unwrap_or_default().items)
    }

    /// Says that somebody has seen to notifications of the bound thread; the model is not told of those that still waited. How many that
    /// changed; ids that are not there any more do not count.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn acknowledge_notifications(&self, ids: &[String]) -> Result<usize, ControllerError> {
        let _turn = self.turn().await?;
        let Some(thread) = self.thread_id() else { return Ok(0) };
        self.mark(&thread, ids, NotificationStatus::Acknowledged).await
    }

    /// One message for everything that waits on a thread, for a run that starts there from message `start`.
    pub(crate) async fn waiting_notifications(
        &self,
        thread: &ThreadId,
        start: &MessageId,
    ) -> Result<Option<(Message, Vec<String>)>, ControllerError> {
        let mut waiting = vec![];
        for item in self.shared().kept::<Inbox>(thread, STATE).await?.unwrap_or_default().waiting() {
            let told = told_as(&item);
            if told == *start {
                continue;
            }
            // Told by a process that ended before it could remember that.
            if self.shared().storage.messages().get(thread, &told).await?.is_some() {
                self.mark(thread, std::slice::from_ref(&item.id), NotificationStatus::Delivered).await?;
                continue;
            }
            waiting.push(item);
        }
        if waiting.is_empty() {
            return Ok(None);
        }
        let ids = waiting.iter().map(|item| item.id.clone()).collect();
        let id = self.shared().ids.fresh("message");
        Ok(Some((summary(&waiting).into_message(id, self.shared().clock.now()), ids)))
    }

    /// Remembers how far notifications are.
    pub(crate) async fn mark(&self, thread: &ThreadId, ids: &[String], status: NotificationStatus) -> Result<usize, ControllerError> {
        let now = self.shared().clock.now();
        self.shared()
            .change_kept(thread, STATE, |inbox: Option<Inbox>| {
                let mut inbox = inbox.unwrap_or_default();
                Ok(match inbox.mark(ids, status, now) {
                    0 => Kept::Same(0),
                    changed => Kept::Put(inbox, changed),
                })
            })
            .await
    }
}

/// The message that a notification becomes: the same one, however often it is tried; another one when more was joined to it.
fn told_as(item: &InboxItem) -> MessageId {
    match item.count {
        1 => format!("notification/{}", item.id).into(),
        n => format!("notification/{}/{n}", item.id).into(),
    }
}

fn check(notification: &Notification) -> Result<(), ControllerError> {
    let Notification { source, kind, summary, .. } = notification;
    if [source, kind, summary].into_iter().any(|text| text.trim().is_empty()) {
        let message = "a notification needs a source, a kind and a summary";
        return Err(ControllerError::new(ControllerErrorKind::InvalidNotification, message));
    }
    if serde_json::to_vec(notification).map_or(usize::MAX, |json| json.len()) > LARGEST {
        let message = "a notification may be at most 16 KiB of JSON; keep the rest where it comes from";
        return Err(ControllerError::new(ControllerErrorKind::TooLarge, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
