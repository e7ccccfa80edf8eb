//! What one piece of a streamed reply costs, from the socket to a subscriber.

use ac_core::{EventBody, event::MessageUpdate};

use super::turns::turn;
use crate::{desk::Desk, gauge::Gauge, row::Row, trouble::Trouble};

pub(super) async fn measure(url: &str, count: usize) -> Result<Vec<Row>, Trouble> {
    let desk = Desk::durable(url, "text").await?;
    let session = desk.controller.create_session("someone").await?;
    // What a first turn brings into being, above all its connection, is no delta's own.
    turn(&session).await?;
    session.switch_model(format!("bench/deltas-{count}").as_str()).await?;
    let mut events = session.subscribe();
    let gauge = Gauge::start();
    let reader = tokio::spawn(async move {
        let mut pieces = 0;
        while let Some(event) = events.next_event().await {
            match &event.body {
                EventBody::MessageUpdate { update: MessageUpdate::TextDelta(_), .. } => pieces += 1,
                EventBody::AgentEnd { .. } => break,
                _ => {}
            }
        }
        pieces
    });
    session.send_message("Go.").await?;
    let pieces = reader.await?;
    let row = gauge.row("deltas", gauge.cpu_ms() * 1e3 / count as f64, "us", count)?;
    desk.controller.shutdown().await;
    if pieces != count {
        return Err(Trouble::new(format!("the subscriber read {pieces} of {count} deltas")));
    }
    Ok(vec![row])
}
