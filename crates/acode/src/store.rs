//! Looking after the store itself: checking, mending, making it smaller.

use std::time::{SystemTime, UNIX_EPOCH};

use agent_controller::{
    core::Timestamp,
    storage::{
        StorageError, VerifyReport,
        sled_kv::{SledOptions, SledStorage, set_aside},
    },
};
use serde_json::{Value, json};

use crate::{
    app,
    args::{Options, StoreCommand},
    exit::{Exit, Failure},
    files::Files,
    project::Project,
    safe::Line,
    screen::Screen,
    sink::Sink as _,
};

/// Problems that a person is shown; `--json` has all.
const SHOWN: usize = 20;

/// Does it. Needs the store for itself.
///
/// # Errors
/// When another process holds the store, or it cannot be read.
pub(crate) async fn store(project: &Project, command: StoreCommand, options: &Options) -> Result<Exit, Failure> {
    let mut screen = Screen::new(options.json, Files::new(|_| async { Err("this command shows no files".to_owned()) }));
    if !project.store().exists() {
        let shown = match screen.is_text() {
            true => screen.painter().plain("No conversations yet."),
            false => screen.put(&Value::Null).await,
        };
        return Ok(if shown.is_ok() { Exit::Complete } else { Exit::Failed });
    }
    let failed = |error: StorageError| app::not_opened(&error, project);
    let (said, value, exit) = match command {
        StoreCommand::Check => {
            let storage = SledStorage::open(project.store()).await.map_err(failed)?;
            let report = storage.verify().await.map_err(failed)?;
            storage.close().await.map_err(failed)?;
            found(&report, "acode store repair mends what other rows tell how to mend.")
        }
        StoreCommand::Repair { accept_loss } => {
            let storage = SledOptions::new(project.store()).accept_loss(accept_loss).open().await.map_err(failed)?;
            let before = storage.verify().await.map_err(failed)?.problems.len();
            let report = storage.repair().await.map_err(failed)?;
            storage.close().await.map_err(failed)?;
            let (mut said, mut value, exit) = found(&report, "What is left cannot be derived from other rows; nothing of it was touched.");
            let mended = before.saturating_sub(report.problems.len());
            if mended > 0 {
                said.insert(0, format!("Mended {mended}."));
            }
            if let Some(fields) = value.as_object_mut() {
                fields.insert("mended".into(), mended.into());
            }
            (said, value, exit)
        }
        StoreCommand::Compact => {
            let report = SledOptions::new(project.store()).compact().await.map_err(failed)?;
            let said = format!("{} KiB before, {} KiB now; {} rows, all kept.", report.before / 1024, report.after / 1024, report.rows);
            let value =
                json!({ "before": report.before, "after": report.after, "rows": report.rows, "filesRemoved": report.files_removed });
            (vec![said], value, Exit::Complete)
        }
        StoreCommand::SetAside => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
            let moved = set_aside(&project.store(), Timestamp::from_millis(now)).map_err(failed)?;
            let said = format!("The conversations are in {} now, as they were; the next one begins a new store.", moved.display());
            (vec![said], json!({ "movedTo": moved }), Exit::Complete)
        }
    };
    let shown = if screen.is_text() { said.iter().try_for_each(|line| screen.painter().plain(line)) } else { screen.put(&value).await };
    Ok(if shown.is_ok() { exit } else { Exit::Failed })
}

/// A report, for people and for programs.
fn found(report: &VerifyReport, advice: &str) -> (Vec<String>, Value, Exit) {
    let problems: Vec<_> =
        report.problems.iter().map(|problem| json!({ "key": problem.key, "what": problem.what, "mendable": problem.mendable })).collect();
    let value = json!({ "rows": report.rows, "problems": problems });
    if report.is_sound() {
        return (vec![format!("{} rows, nothing is wrong.", report.rows)], value, Exit::Complete);
    }
    let mut said: Vec<_> =
        report.problems.iter().take(SHOWN).map(|problem| format!("{}  {}", Line(&problem.key, 80), Line(&problem.what, 200))).collect();
    if report.problems.len() > SHOWN {
        said.push(format!("… and {} more (--json lists all)", report.problems.len() - SHOWN));
    }
    said.push(format!("{} rows, {} problems. {advice}", report.rows, report.problems.len()));
    (said, value, Exit::Failed)
}
