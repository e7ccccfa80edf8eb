//! What one more session weighs.

use futures::{StreamExt, TryStreamExt, stream};

use crate::{
    desk::Desk,
    gauge::{self, Gauge},
    row::Row,
    trouble::Trouble,
};

pub(super) async fn in_memory(url: &str, count: usize) -> Result<Vec<Row>, Trouble> {
    measure(Desk::volatile(url, "text")?, "sessions_mem", count).await
}

pub(super) async fn on_sled(url: &str, count: usize) -> Result<Vec<Row>, Trouble> {
    measure(Desk::durable(url, "text").await?, "sessions_sled", count).await
}

async fn measure(desk: Desk, name: &str, count: usize) -> Result<Vec<Row>, Trouble> {
    desk.controller.init().await?;
    // What the first thousand sessions bring into being, above all the store's caches, is no session's own.
    open(&desk, "early", 1000).await?;
    let gauge = Gauge::start();
    let before = gauge::resident()?;
    open(&desk, "person", count).await?;
    let grown = gauge::resident()?.saturating_sub(before);
    let row = gauge.row(name, grown as f64 / 1024.0 / count as f64, "KB", count)?;
    desk.controller.shutdown().await;
    Ok(vec![row])
}

/// The controller keeps them.
async fn open(desk: &Desk, who: &'static str, count: usize) -> Result<(), Trouble> {
    stream::iter(0..count)
        .map(|n| async move { desk.controller.create_session(format!("{who}-{n}").as_str()).await })
        .buffer_unordered(64)
        .try_for_each(|_| async { Ok(()) })
        .await?;
    Ok(())
}
