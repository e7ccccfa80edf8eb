//! The parent: starts the model server, then one process for each row, and prints what they say.

use std::{
    io::{BufRead, BufReader, Write as _},
    process::{Child, Command, Stdio},
};

use crate::{gauge, measure::Measure, row::Row, trouble::Trouble};

/// Measures everything, or what `only` names. Whether every row is within its limit.
pub(crate) fn play(only: Option<&str>, json: bool) -> Result<bool, Trouble> {
    let measures: Vec<&Measure> = Measure::all().iter().filter(|measure| only.is_none_or(|name| measure.rows.contains(&name))).collect();
    if measures.is_empty() {
        let names: Vec<&str> = Measure::all().iter().flat_map(|measure| measure.rows).copied().collect();
        return Err(Trouble::new(format!("there is no row of this name; there are {}", names.join(", "))));
    }
    let model = ModelServer::start()?;
    let mut holds = true;
    for measure in measures {
        for size in measure.sizes() {
            for row in rows(&model.url, measure, size)?.iter().filter(|row| only.is_none_or(|name| row.name == name)) {
                holds &= row.holds();
                show(row, json)?;
            }
        }
    }
    Ok(holds)
}

fn show(row: &Row, json: bool) -> Result<(), Trouble> {
    if json {
        writeln!(std::io::stdout(), "{}", serde_json::to_string(row)?)?;
        return Ok(());
    }
    let limit = row.limit().map_or_else(String::new, |limit| format!("{}{limit} {}", if row.holds() { "≤ " } else { "OVER " }, row.unit));
    writeln!(
        std::io::stdout(),
        "{:<14} n {:>6} {:>10.3} {:<3} {limit:<12} cpu {:>9.1} ms  resident {:>8} KB",
        row.name,
        row.n,
        row.value,
        row.unit,
        row.cpu_ms,
        row.rss_kb
    )?;
    Ok(())
}

/// Starts the measuring process as often as the measure says, and takes the middle one of each row.
fn rows(url: &str, measure: &Measure, size: usize) -> Result<Vec<Row>, Trouble> {
    let mut takes: Vec<Vec<Row>> = vec![];
    for _ in 0..measure.takes {
        takes.push(take(url, measure, size)?);
    }
    let mut out: Vec<Row> = vec![];
    while let Some(mut rows) = takes.iter_mut().map(Vec::pop).collect::<Option<Vec<Row>>>() {
        rows.sort_by(|a, b| a.value.total_cmp(&b.value));
        let middle = rows.len() / 2;
        out.push(rows.swap_remove(middle));
    }
    out.reverse();
    Ok(out)
}

fn take(url: &str, measure: &Measure, size: usize) -> Result<Vec<Row>, Trouble> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--row", measure.name, "--size", &size.to_string(), "--model-url", url]);
    command.args(["--born", &gauge::monotonic().to_string()]);
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(Trouble::new(format!("`{}` at {size} could not be measured ({})", measure.name, output.status)));
    }
    String::from_utf8_lossy(&output.stdout).lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

/// The model, in a process of its own, that ends with this value.
struct ModelServer {
    process: Child,
    url: String,
}

impl ModelServer {
    fn start() -> Result<Self, Trouble> {
        let mut process =
            Command::new(std::env::current_exe()?).arg("--serve-model").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut url = String::new();
        if let Some(out) = process.stdout.take() {
            BufReader::new(out).read_line(&mut url)?;
        }
        Ok(Self { process, url: url.trim().to_owned() })
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
