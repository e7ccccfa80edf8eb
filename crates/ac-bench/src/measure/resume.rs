//! How long a person's answer takes to reach its tool call.

use std::time::Instant;

use ac_core::EventBody;
use serde_json::json;

use crate::{
    desk::Desk,
    gauge::{Gauge, ms, percentile},
    row::Row,
    trouble::Trouble,
};

pub(super) async fn measure(url: &str, answers: usize) -> Result<Vec<Row>, Trouble> {
    let desk = Desk::durable(url, "ask").await?;
    let session = desk.controller.create_session("someone").await?;
    let mut times = vec![];
    let gauge = Gauge::start();
    for _ in 0..answers {
        session.send_message("Ask me.").await?;
        let mut events = session.subscribe();
        let asked = Instant::now();
        session.respond_to_tool_suspension(json!("8080"), None).await?;
        while let Some(event) = events.next_event().await {
            match &event.body {
                EventBody::ToolEnd { .. } => times.push(asked.elapsed()),
                EventBody::AgentEnd { .. } => break,
                _ => {}
            }
        }
    }
    let middle = gauge.row("resume", ms(percentile(&mut times, 50)), "ms", answers)?;
    let slow = gauge.row("resume_p99", ms(percentile(&mut times, 99)), "ms", answers)?;
    desk.controller.shutdown().await;
    if times.len() != answers {
        return Err(Trouble::new(format!("{} of {answers} answers reached their call", times.len())));
    }
    Ok(vec![middle, slow])
}
