//! What happens to the child: it is killed, and it gets no processor.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use crate::world::{Dice, World};

/// Kills at moments that are spread over the deliveries.
pub(crate) async fn kill(world: Arc<World>) {
    let mut dice = Dice(world.plan.seed ^ 0x6b69_6c6c);
    for n in 1..=world.plan.kills {
        reach(&world, n, world.plan.kills, &mut dice).await;
        tokio::time::sleep(Duration::from_millis(dice.roll(120))).await;
        let killed = world.worker.kill();
        world.note(None, format!("killed ({n} of {})", world.plan.kills));
        tokio::time::sleep(Duration::from_millis(dice.roll(300))).await;
        let started = world.worker.start().await;
        world.stir();
        world.note(None, "another life takes deliveries".to_owned());
        println!("killed {n} of {} after {} deliveries", world.plan.kills, world.made.load(Ordering::Relaxed));
        if let Err(error) = killed.and(started) {
            world.log.lock().await.complaints.push((None, format!("the child did not come back: {error}")));
            world.give_up();
            return;
        }
    }
}

/// Stops the child for one to twenty seconds, at moments that are spread over the deliveries: as on a machine that has no time for it.
pub(crate) async fn pause(world: Arc<World>) {
    let mut dice = Dice(world.plan.seed ^ 0x0070_6175_7365);
    for n in 1..=world.plan.pauses {
        reach(&world, n, world.plan.pauses, &mut dice).await;
        let lasts = Duration::from_millis(1_000 + dice.roll(19_000));
        let Some(stopped) = world.worker.stop() else { continue };
        world.note(None, format!("stopped for {} ms", lasts.as_millis()));
        tokio::time::sleep(lasts).await;
        let went_on = world.worker.go_on(stopped);
        world.stir();
        world.note(None, if went_on { "goes on".to_owned() } else { "was killed while it was stopped".to_owned() });
    }
}

/// Waits until so many of all deliveries were made.
async fn reach(world: &World, n: u64, of: u64, dice: &mut Dice) {
    let every = world.plan.deliveries / (of + 1).max(1);
    let at = n * every + dice.roll((every / 4).max(1));
    while world.made.load(Ordering::Relaxed) < at {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
