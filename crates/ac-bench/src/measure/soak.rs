//! Whether a session that goes on and on grows.

use super::turns::turn;
use crate::{
    desk::Desk,
    gauge::{self, Gauge},
    row::Row,
    trouble::Trouble,
};

/// The growth from a sixth of the turns to their end.
pub(super) async fn measure(url: &str, turns: usize) -> Result<Vec<Row>, Trouble> {
    let desk = Desk::durable(url, "text").await?;
    let session = desk.controller.create_session("someone").await?;
    let warm = turns / 6;
    for _ in 0..warm {
        turn(&session).await?;
    }
    let gauge = Gauge::start();
    let before = gauge::resident()?;
    for _ in warm..turns {
        turn(&session).await?;
    }
    let grown = gauge::resident()?.saturating_sub(before);
    let row = gauge.row("soak", grown as f64 / 1024.0, "KB", turns)?;
    desk.controller.shutdown().await;
    Ok(vec![row])
}
