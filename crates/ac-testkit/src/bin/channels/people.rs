//! The parent: people who write, press and look.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use ac_testkit::platforms::{
    Platforms, Shown,
    sign::{self, Delivery},
};

use crate::{
    Failure, Plan, fate,
    life::Worker,
    tally,
    world::{Dice, World},
};

/// The pause before a platform delivers again.
const AGAIN: Duration = Duration::from_millis(150);
/// How long a platform waits for its answer; then it delivers again.
const HANGS_UP: Duration = Duration::from_secs(3);

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn run(plan: &Plan) -> Result<bool, Failure> {
    let folder = tempfile::tempdir()?;
    let platforms = Platforms::start()?;
    platforms.behave(|manners| {
        manners.too_fast_every = 211;
        manners.pause = Duration::from_millis(400);
    });
    let worker = Worker::new(folder.path().to_owned(), &platforms, plan.forgetful);
    worker.start().await?;
    let world = Arc::new(World::new(platforms, worker, plan.clone()));
    let people: Vec<_> = (0..plan.conversations).map(|n| tokio::spawn(Person::new(n, world.clone()).live())).collect();
    let (killer, pauser) = (tokio::spawn(fate::kill(world.clone())), tokio::spawn(fate::pause(world.clone())));
    for person in people {
        person.await?;
    }
    killer.abort();
    pauser.abort();
    world.worker.wake();
    // A late redelivery may still be on its way through the conversation.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let ended = world.worker.finish()?;
    tally::report(&world, folder.path(), ended).await
}

struct Person {
    n: u64,
    world: Arc<World>,
    dice: Dice,
    channel: String,
    /// Counts everything that this person sends.
    count: u64,
    /// Made once; to be made again later.
    later: Vec<Delivery>,
    /// Cards of calls in doubt that were pressed. Once is enough.
    pressed: Vec<String>,
}

impl Person {
    fn new(n: u64, world: Arc<World>) -> Self {
        let dice = Dice(world.plan.seed.wrapping_mul(1_000_003).wrapping_add(n));
        let channel = match (n % 3, n % 2) {
            (0, 0) => format!("D{n}"),
            (0, _) => format!("C{n}"),
            (1, 0) => format!("{}", 5_000 + n),
            (1, _) => format!("-{}", 5_000 + n),
            _ => format!("{}", 70_000 + n),
        };
        Self { n, world, dice, channel, count: 0, later: vec![], pressed: vec![] }
    }

    fn user(&self) -> String {
        match self.n % 3 {
            0 => format!("U{}", self.n),
            _ => format!("{}", 1_000 + self.n),
        }
    }

    fn group(&self) -> bool {
        self.n % 2 == 1
    }

    /// A message as this person's platform delivers it.
    fn message(&mut self, text: &str) -> Delivery {
        self.count += 1;
        let (user, count, at) = (self.user(), self.count, now());
        let number = i64::try_from(self.n * 100_000 + count).unwrap_or(i64::MAX);
        match self.n % 3 {
            0 if self.group() => {
                let root = format!("17.{:06}", self.n);
                let thread = (count > 1).then_some(root.as_str());
                let ts = if count > 1 { format!("18.{number:012}") } else { root.clone() };
                let text = format!("<@{}> {text}", sign::SLACK_BOT);
                sign::slack_message(&format!("Ev{number}"), &self.channel, thread, &user, &text, &ts, at)
            }
            0 => sign::slack_message(&format!("Ev{number}"), &self.channel, None, &user, text, &format!("18.{number:012}"), at),
            1 => {
                let text = if self.group() { format!("@{} {text}", sign::TELEGRAM_BOT) } else { text.to_owned() };
                let (chat, user) = (self.channel.parse().unwrap_or(0), user.parse().unwrap_or(0));
                sign::telegram_message(number, chat, user, &text, 1_000_000_000 + number, at)
            }
            _ => sign::discord_ask(&format!("I{number}"), &self.channel, self.group(), &user, text, at),
        }
    }

    fn press(&mut self, card: &Shown, user: &str, value: &str) -> Delivery {
        self.count += 1;
        let (count, at) = (self.count, now());
        let number = i64::try_from(self.n * 100_000 + count).unwrap_or(i64::MAX);
        match self.n % 3 {
            0 => sign::slack_press(&format!("T{number}"), &self.channel, card.thread.as_deref(), &card.id, user, value, at),
            1 => {
                let (chat, user) = (self.channel.parse().unwrap_or(0), user.parse().unwrap_or(0));
                sign::telegram_press(number, chat, user, card.id.parse().unwrap_or(0), value)
            }
            _ => sign::discord_press(&format!("I{number}"), &self.channel, self.group(), user, &card.id, value, at),
        }
    }

    /// Delivers until the platform gets its answer, and now and then once more.
    async fn deliver(&mut self, delivery: Delivery) {
        let mut tries = 0;
        loop {
            self.world.made.fetch_add(1, Ordering::Relaxed);
            self.world.stir();
            let answered = tokio::time::timeout(HANGS_UP, self.world.worker.deliver(&delivery)).await;
            self.world.stir();
            match answered {
                Ok(Some(answered)) if answered.status == 200 => {
                    self.note(format!("taken after {} ms, {tries} tries before", answered.millis));
                    break;
                }
                Ok(Some(answered)) if answered.status != 503 => {
                    self.complain(format!("a genuine delivery was refused with {}", answered.status)).await;
                    return;
                }
                // The process died over it, is not there, or does not answer in time: it comes again.
                _ => tokio::time::sleep(AGAIN).await,
            }
            tries += 1;
            if tries > 600 {
                self.complain("a delivery was never taken".to_owned()).await;
                return;
            }
        }
        if self.dice.roll(100) < self.world.plan.duplicates {
            if self.dice.roll(2) == 0 {
                self.again(&delivery).await;
            } else {
                self.later.push(delivery);
            }
        }
        // Late, and out of order.
        if self.later.len() > 2 {
            let at = usize::try_from(self.dice.roll(2)).unwrap_or(0);
            let delivery = self.later.remove(at);
            self.again(&delivery).await;
        }
    }

    async fn again(&self, delivery: &Delivery) {
        self.world.made.fetch_add(1, Ordering::Relaxed);
        // A duplicate that a kill swallows is none.
        let _ = tokio::time::timeout(HANGS_UP, self.world.worker.deliver(delivery)).await;
    }

    fn note(&self, what: String) {
        self.world.note(Some(&self.channel), what);
    }

    async fn complain(&self, what: String) {
        self.note(format!("COMPLAINS: {what}"));
        self.world.log.lock().await.complaints.push((Some(self.channel.clone()), format!("{}: {what}", self.channel)));
    }

    async fn live(mut self) {
        let share = self.world.plan.deliveries / self.world.plan.conversations.max(1);
        let mut k = 0;
        while self.world.made.load(Ordering::Relaxed) < self.world.plan.deliveries && k < share {
            let mut ids = vec![];
            // Now and then somebody writes twice without waiting.
            for _ in 0..=u64::from(self.dice.roll(6) == 0) {
                k += 1;
                let id = format!("{}-{k}", self.n);
                // A message on top of an open approval declines it, so who waits for a decision writes alone.
                let writes = ids.is_empty() && self.dice.roll(4) == 0;
                let text = if writes { format!("msg:{id}. write") } else { format!("msg:{id}. say") };
                let delivery = self.message(&text);
                self.world.log.lock().await.said.push((self.channel.clone(), id.clone()));
                self.note(format!("says {text}"));
                self.deliver(delivery).await;
                ids.push((id, writes));
                if writes {
                    break;
                }
            }
            for (id, writes) in &ids {
                if *writes && !self.decide(id).await {
                    return;
                }
            }
            for (id, _) in &ids {
                if !self.await_answer(id).await {
                    self.complain(format!("no answer to {id}")).await;
                    return;
                }
            }
        }
        for delivery in std::mem::take(&mut self.later) {
            self.again(&delivery).await;
        }
    }

    async fn await_answer(&mut self, id: &str) -> bool {
        let wanted = format!("answer:{id}.");
        let begun = self.world.since();
        loop {
            if self.shown().iter().any(|shown| shown.text.contains(&wanted)) {
                self.note(format!("sees the answer to {id}"));
                return true;
            }
            // A call that was running when the process died asks what is to become of it.
            if let Some(card) = self.card("Record as failed").filter(|card| !self.pressed.contains(&card.id)) {
                self.pressed.push(card.id.clone());
                self.world.log.lock().await.doubted.push(id.to_owned());
                let value = value_of(&card, "Record as failed");
                let user = self.user();
                self.note(format!("records as failed: {}", card.id));
                let press = self.press(&card, &user, &value);
                self.deliver(press).await;
            }
            if self.world.in_vain(begun) {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn shown(&self) -> Vec<Shown> {
        self.world.platforms.shown_in(&self.channel)
    }

    /// The newest message with such a button.
    fn card(&self, label: &str) -> Option<Shown> {
        self.shown().into_iter().rev().find(|shown| shown.buttons.iter().any(|(known, _)| known == label))
    }

    /// Waits for the card and presses, sometimes after a stranger, sometimes twice.
    async fn decide(&mut self, id: &str) -> bool {
        let begun = self.world.since();
        let card = loop {
            if let Some(card) = self.card("Approve").filter(|card| card.text.contains(id)) {
                break card;
            }
            if self.world.in_vain(begun) {
                self.complain(format!("no card for {id}")).await;
                return false;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        let (approve, decline) = (value_of(&card, "Approve"), value_of(&card, "Decline"));
        let user = self.user();
        if self.group() && self.dice.roll(3) == 0 {
            let press = self.press(&card, "99999", &approve);
            self.deliver(press).await;
        }
        let yes = self.dice.roll(4) > 0;
        {
            let mut log = self.world.log.lock().await;
            if yes { log.approved.push(id.to_owned()) } else { log.declined.push(id.to_owned()) }
        }
        self.note(format!("{} {id}: {}", if yes { "approves" } else { "declines" }, card.id));
        let press = self.press(&card, &user, if yes { &approve } else { &decline });
        self.deliver(press).await;
        if self.dice.roll(3) == 0 {
            // The other button, too late.
            let press = self.press(&card, &user, if yes { &decline } else { &approve });
            self.deliver(press).await;
        }
        true
    }
}

fn value_of(card: &Shown, label: &str) -> String {
    card.buttons.iter().find(|(known, _)| known == label).map(|(_, value)| value.clone()).unwrap_or_default()
}
