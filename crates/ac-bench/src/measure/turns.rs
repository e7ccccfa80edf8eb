//! What one turn costs.

use std::time::Duration;

use ac_controller::{Session, Settlement};
use ac_core::{EventBody, event::MessageUpdate};
use futures::future::try_join_all;

use crate::{
    desk::Desk,
    gauge::{self, Gauge, ms, percentile},
    row::Row,
    trouble::Trouble,
};

/// Turns of one session.
const EACH: usize = 3;

/// Many sessions at once, three turns each, each turn one tool call and an answer.
pub(super) async fn with_tools(url: &str, turns: usize) -> Result<Vec<Row>, Trouble> {
    let desk = Desk::durable(url, "tool").await?;
    let sessions = try_join_all((0..turns / EACH).map(|n| {
        let controller = desk.controller.clone();
        async move { controller.create_session(format!("person-{n}").as_str()).await }
    }))
    .await?;
    // Connections and the like.
    turn(&sessions.first().cloned().ok_or_else(|| Trouble::new("no session"))?).await?;
    let gauge = Gauge::start();
    let work = sessions.into_iter().map(|session| {
        tokio::spawn(async move {
            for _ in 0..EACH {
                turn(&session).await?;
            }
            Ok::<(), Trouble>(())
        })
    });
    for done in try_join_all(work).await? {
        done?;
    }
    let row = gauge.row("tool_turns", gauge.cpu_ms() / turns as f64, "ms", turns)?;
    desk.controller.shutdown().await;
    Ok(vec![row])
}

/// One turn that must end well.
pub(super) async fn turn(session: &Session) -> Result<(), Trouble> {
    match session.send_message("Go on.").await?.settlement {
        Settlement::Complete => Ok(()),
        other => Err(Trouble::new(format!("a turn ended as {other:?}"))),
    }
}

/// One turn after the other in one session: from the first byte that the model wrote to the last event.
pub(super) async fn plain(url: &str, turns: usize) -> Result<Vec<Row>, Trouble> {
    let desk = Desk::durable(url, "clock").await?;
    let session = desk.controller.create_session("someone").await?;
    let mut events = session.subscribe();
    let mut times = vec![];
    let gauge = Gauge::start();
    for _ in 0..turns {
        session.submit("Go on.").await?;
        let mut written = None;
        while let Some(event) = events.next_event().await {
            match &event.body {
                EventBody::MessageUpdate { update: MessageUpdate::TextDelta(text), .. } => written = text.parse::<u64>().ok(),
                EventBody::AgentEnd { .. } => break,
                _ => {}
            }
        }
        let written = written.ok_or_else(|| Trouble::new("the model's clock was not read"))?;
        times.push(Duration::from_nanos(gauge::monotonic().saturating_sub(written)));
    }
    let row = gauge.row("turn", ms(percentile(&mut times, 50)), "ms", turns)?;
    desk.controller.shutdown().await;
    Ok(vec![row])
}
