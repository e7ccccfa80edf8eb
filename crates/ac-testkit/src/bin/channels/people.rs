//! The parent: people who write, press and look.

use std::{
    sync::{
        Arc, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use ac_testkit::platforms::{
    Platforms, Shown,
    sign::{self, Delivery},
};
use tokio::sync::Mutex;

use crate::{Failure, Plan, life::Worker, tally};

/// How long a person waits for what should have come long ago.
const PATIENCE: Duration = Duration::from_secs(90);
/// And how long when nothing at all happens in the world any more: many times as long as a dead life's lease, or a platform's pause, holds
/// anything up.
const QUIET: Duration = Duration::from_secs(8);
/// The pause before a platform delivers again.
const AGAIN: Duration = Duration::from_millis(150);

/// Everything that the people share.
pub(crate) struct World {
    pub(crate) platforms: Platforms,
    pub(crate) worker: Worker,
    pub(crate) plan: Plan,
    /// Deliveries that were made.
    made: AtomicU64,
    /// When a delivery was last made or answered, or a life began.
    stirred: std::sync::Mutex<Instant>,
    /// What became of what was sent.
    pub(crate) log: Mutex<Log>,
}

impl World {
    fn stir(&self) {
        *self.stirred.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Whether a person who waits since then waits in vain.
    fn in_vain(&self, since: Instant) -> bool {
        let stirred = *self.stirred.lock().unwrap_or_else(PoisonError::into_inner);
        let last = self.platforms.last_called().map_or(stirred, |called| called.max(stirred)).max(since);
        since.elapsed() > PATIENCE || (last.elapsed() > QUIET && self.worker.lives())
    }
}

/// What people did, and what they missed.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// Channel and name of each message.
    pub(crate) said: Vec<(String, String)>,
    /// Names of messages whose call was approved, and of those whose call was declined.
    pub(crate) approved: Vec<String>,
    pub(crate) declined: Vec<String>,
    /// Calls that were in doubt after a kill.
    pub(crate) doubted: Vec<String>,
    pub(crate) complaints: Vec<String>,
    pub(crate) slowest_ms: u64,
}

/// Repeatable chance.
#[derive(Clone, Copy)]
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides.max(1)
    }
}

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
    let world = Arc::new(World {
        platforms,
        worker,
        plan: plan.clone(),
        made: AtomicU64::new(0),
        stirred: Instant::now().into(),
        log: Mutex::default(),
    });
    let people: Vec<_> = (0..plan.conversations).map(|n| tokio::spawn(Person::new(n, world.clone()).live())).collect();
    let killer = tokio::spawn(kill(world.clone()));
    for person in people {
        person.await?;
    }
    killer.abort();
    // A late redelivery may still be on its way through the conversation.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let ended = world.worker.finish()?;
    let written = std::fs::read_to_string(folder.path().join("written.txt")).unwrap_or_default();
    tally::report(&world, &written, ended).await
}

/// Kills at moments that are spread over the deliveries.
async fn kill(world: Arc<World>) {
    let mut dice = Dice(world.plan.seed ^ 0x6b69_6c6c);
    let every = world.plan.deliveries / (world.plan.kills + 1).max(1);
    for n in 1..=world.plan.kills {
        let at = n * every + dice.roll((every / 4).max(1));
        while world.made.load(Ordering::Relaxed) < at {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(dice.roll(120))).await;
        let killed = world.worker.kill();
        tokio::time::sleep(Duration::from_millis(dice.roll(300))).await;
        let started = world.worker.start().await;
        world.stir();
        println!("killed {n} of {} after {} deliveries", world.plan.kills, world.made.load(Ordering::Relaxed));
        if let Err(error) = killed.and(started) {
            world.log.lock().await.complaints.push(format!("the child did not come back: {error}"));
            return;
        }
    }
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
        Self { n, world, dice, channel, count: 0, later: vec![] }
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
            let answered = self.world.worker.deliver(&delivery).await;
            self.world.stir();
            match answered {
                Some(answered) if answered.status == 200 => {
                    let mut log = self.world.log.lock().await;
                    log.slowest_ms = log.slowest_ms.max(answered.millis);
                    break;
                }
                Some(answered) if answered.status != 503 => {
                    self.complain(format!("a genuine delivery was refused with {}", answered.status)).await;
                    return;
                }
                // The process died over it, or is not there: it comes again.
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
        self.world.worker.deliver(delivery).await;
    }

    async fn complain(&self, what: String) {
        self.world.log.lock().await.complaints.push(format!("{}: {what}", self.channel));
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
        let begun = Instant::now();
        loop {
            if self.shown().iter().any(|shown| shown.text.contains(&wanted)) {
                return true;
            }
            // A call that was running when the process died asks what is to become of it.
            if let Some(card) = self.card("Record as failed") {
                self.world.log.lock().await.doubted.push(id.to_owned());
                let value = value_of(&card, "Record as failed");
                let (user, card) = (self.user(), card);
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
        let begun = Instant::now();
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
