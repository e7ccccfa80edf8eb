//! What a long thread costs those who look at it.

use std::time::Instant;

use ac_storage::domain::MessageQuery;

use super::turns::turn;
use crate::{
    desk::Desk,
    gauge::{Gauge, ms, percentile},
    row::Row,
    trouble::Trouble,
};

/// How often each is done; the middle one counts.
const TIMES: usize = 11;

pub(super) async fn measure(url: &str, messages: usize) -> Result<Vec<Row>, Trouble> {
    let desk = Desk::durable(url, "text").await?;
    let session = desk.controller.create_session("someone").await?;
    // A message of the person and one of the model.
    for _ in 0..messages / 2 {
        turn(&session).await?;
    }
    let long = session.thread_id().ok_or_else(|| Trouble::new("the session has no thread"))?;
    let mut rows = vec![];

    let gauge = Gauge::start();
    let mut times = vec![];
    for _ in 0..TIMES {
        let started = Instant::now();
        let page = session.messages(Some(&long), MessageQuery::default()).await?;
        times.push(started.elapsed());
        if page.items.len() != messages {
            return Err(Trouble::new(format!("the thread has {} of {messages} messages", page.items.len())));
        }
    }
    rows.push(gauge.row("thread_list", ms(percentile(&mut times, 50)), "ms", messages)?);

    let gauge = Gauge::start();
    times.clear();
    for _ in 0..TIMES {
        let started = Instant::now();
        session.messages(Some(&long), MessageQuery { newest_first: true, limit: 50, ..MessageQuery::default() }).await?;
        times.push(started.elapsed());
    }
    rows.push(gauge.row("thread_page", ms(percentile(&mut times, 50)), "ms", messages)?);

    let short = session.create_thread(None, "short").await?.id;
    let gauge = Gauge::start();
    times.clear();
    for _ in 0..TIMES {
        let started = Instant::now();
        session.switch_thread(&long).await?;
        times.push(started.elapsed());
        session.switch_thread(&short).await?;
    }
    rows.push(gauge.row("thread_switch", ms(percentile(&mut times, 50)), "ms", messages)?);

    let gauge = Gauge::start();
    times.clear();
    for _ in 0..TIMES {
        let started = Instant::now();
        session.clone_thread(Some(&long), None, None).await?;
        times.push(started.elapsed());
    }
    rows.push(gauge.row("thread_clone", ms(percentile(&mut times, 50)), "ms", messages)?);
    desk.controller.shutdown().await;
    Ok(rows)
}
