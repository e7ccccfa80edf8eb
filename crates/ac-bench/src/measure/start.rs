//! From nothing to a session, and what it weighs.

use std::time::Duration;

use crate::{
    desk::Desk,
    gauge::{self, Gauge},
    row::Row,
    trouble::Trouble,
};

pub(super) async fn measure(url: &str, born: Option<u64>) -> Result<Vec<Row>, Trouble> {
    let gauge = Gauge::start();
    let desk = Desk::durable(url, "text").await?;
    desk.controller.init().await?;
    let session = desk.controller.create_session("someone").await?;
    let born = born.ok_or_else(|| Trouble::new("the parent did not say when it started this process"))?;
    let startup = gauge.row("startup", (gauge::monotonic() - born) as f64 / 1e6, "ms", 1)?;
    // Idle, not just ready: background work of the beginning is over.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let idle = gauge.row("idle_rss", gauge::resident()? as f64 / f64::from(1 << 20), "MB", 1)?;
    drop(session);
    desk.controller.shutdown().await;
    Ok(vec![startup, idle])
}
