//! `cargo xtask bench`: what the runtime costs, measured by `ac-bench`, as a table and a plot in `docs/benchmarks.md`.
//!
//! What was measured is kept in `docs/benchmarks.jsonl`; table and plot are made from it, and `tidy` checks that they are.

mod plot;

use std::{
    error::Error,
    fmt::Write as _,
    fs,
    path::Path,
    process::{Command, Stdio},
    time::SystemTime,
};

use serde::{Deserialize, Serialize};

use crate::{cargo, report::Verdict};

const RECORD: &str = "docs/benchmarks.jsonl";
const PLOT: &str = "docs/benchmarks.svg";

/// What `ac-bench --json` prints, as far as the page shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Row {
    name: String,
    value: f64,
    unit: String,
    n: u64,
}

/// A row of `crates/ac-bench/limits.json`.
#[derive(Debug, Deserialize)]
struct Limit {
    name: String,
    limit: f64,
    what: String,
}

/// The first line of the record.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    measured: String,
}

/// One line of the table: a figure at its size and, where it has one, at a tenth of it.
#[derive(Debug, PartialEq)]
struct Figure {
    name: String,
    what: String,
    unit: &'static str,
    limit: f64,
    size: u64,
    value: f64,
    tenth: Option<f64>,
}

impl Figure {
    /// The values that are over the limit, which holds at a tenth of the size too; with where.
    fn over(&self) -> impl Iterator<Item = (f64, &'static str)> {
        let both = [Some((self.value, "")), self.tenth.map(|value| (value, " at a tenth"))];
        both.into_iter().flatten().filter(|(value, _)| *value > self.limit)
    }
}

/// Measures, or takes the lines that `ac-bench --json` once printed into `from`, and writes record, table and plot.
pub(crate) fn run(root: &Path, from: Option<&str>) -> Result<Verdict, Box<dyn Error>> {
    let text = match from {
        Some(path) => fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?,
        None => measure(root)?,
    };
    // A record says when it was taken; of what `ac-bench` printed, the file does.
    let head = text.lines().next().and_then(|line| serde_json::from_str(line).ok());
    let head: Head = match (head, from) {
        (Some(head), _) => head,
        (None, Some(path)) => Head { measured: date(fs::metadata(path)?.modified()?)? },
        (None, None) => Head { measured: date(SystemTime::now())? },
    };
    let rows = read(&text)?;
    let figures = figures(&rows, &limits(root)?)?;
    let mut record = serde_json::to_string(&head)?;
    for row in &rows {
        write!(record, "\n{}", serde_json::to_string(row)?)?;
    }
    fs::write(root.join(RECORD), record + "\n")?;
    let metadata = cargo::metadata(root)?;
    crate::page::write(root, &crate::source::read(root)?, &metadata)?;
    fs::write(root.join(PLOT), plot::draw(&figures))?;
    let found = over(&figures);
    let measured = figures.len() + figures.iter().filter(|figure| figure.tenth.is_some()).count();
    Ok(Verdict { passed: (measured - found.len()) as u64, failed: found.len() as u64, found, skipped: false })
}

fn over(figures: &[Figure]) -> Vec<String> {
    let said = |figure: &Figure, value, place| {
        format!("{}{place}: {}, {} are allowed", figure.name, amount(value, figure.unit), amount(figure.limit, figure.unit))
    };
    figures.iter().flat_map(|figure| figure.over().map(move |(value, place)| said(figure, value, place))).collect()
}

/// `1 December 2026`.
fn date(at: SystemTime) -> Result<String, Box<dyn Error>> {
    const MONTHS: [&str; 12] =
        ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
    let text = httpdate::fmt_http_date(at);
    let mut words = text.split_whitespace().skip(1);
    let (Some(day), Some(month), Some(year)) = (words.next(), words.next(), words.next()) else { return Err("no date".into()) };
    let month = MONTHS.iter().find(|name| name.starts_with(month)).ok_or("no month")?;
    Ok(format!("{} {month} {year}", day.trim_start_matches('0')))
}

/// Everything that `ac-bench` prints. It fails where a row is over its limit; the rows are there all the same.
fn measure(root: &Path) -> Result<String, Box<dyn Error>> {
    let built = cargo::run(&mut cargo::command(root, &["build", "--release", "-p", "ac-bench"]))?;
    if !built.success {
        return Err("ac-bench does not build".into());
    }
    let program = cargo::target_dir().join("release").join(format!("ac-bench{}", std::env::consts::EXE_SUFFIX));
    println!("    measuring takes some minutes; nothing else should run meanwhile");
    let out = Command::new(program).arg("--json").stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    match out.status.code() {
        Some(0 | 1) => Ok(String::from_utf8(out.stdout)?),
        _ => Err(format!("ac-bench: {}", out.status).into()),
    }
}

fn limits(root: &Path) -> Result<Vec<Limit>, Box<dyn Error>> {
    Ok(serde_json::from_str(&fs::read_to_string(root.join("crates/ac-bench/limits.json"))?)?)
}

/// The rows of a record, or of what `ac-bench` printed; lines of other programs are left out.
fn read(text: &str) -> Result<Vec<Row>, Box<dyn Error>> {
    let lines = text.lines().filter(|line| line.starts_with("{\"name\""));
    Ok(lines.map(serde_json::from_str).collect::<Result<_, _>>()?)
}

/// Every figure that has a limit, in the order of the limits.
fn figures(rows: &[Row], limits: &[Limit]) -> Result<Vec<Figure>, Box<dyn Error>> {
    let mut out = Vec::new();
    for limit in limits {
        let mut own: Vec<&Row> = rows.iter().filter(|row| row.name == limit.name).collect();
        own.sort_by_key(|row| std::cmp::Reverse(row.n));
        let row = own.first().ok_or_else(|| format!("`{}` was not measured", limit.name))?;
        out.push(Figure {
            name: limit.name.clone(),
            what: limit.what.clone(),
            unit: match row.unit.as_str() {
                "ms" => "ms",
                "us" => "µs",
                "KB" => "KB",
                "MB" => "MB",
                other => return Err(format!("`{}` is measured in `{other}`, which the page does not know", row.name).into()),
            },
            limit: limit.limit,
            size: row.n,
            value: row.value,
            tenth: own.get(1).map(|row| row.value),
        });
    }
    Ok(out)
}

/// Three digits, where there are so many, and the unit.
fn amount(value: f64, unit: &str) -> String {
    let digits = match value {
        value if value.fract() == 0.0 || value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$} {unit}")
}

/// The table of `docs/benchmarks.md`.
pub(crate) fn table(root: &Path) -> Result<String, Box<dyn Error>> {
    let record = fs::read_to_string(root.join(RECORD))?;
    let head: Head = serde_json::from_str(record.lines().next().unwrap_or_default())?;
    Ok(markdown(&head.measured, &figures(&read(&record)?, &limits(root)?)?))
}

fn markdown(measured: &str, figures: &[Figure]) -> String {
    let mut out = format!(
        "Measured on {measured}. Bold is over the limit.\n\n| row | what | limit | size | measured | at a tenth |\n|---|---|---|---|---|---|\n"
    );
    for figure in figures {
        let cell = |value: f64| {
            let text = amount(value, figure.unit);
            if value > figure.limit { format!("**{text}**") } else { text }
        };
        let size = if figure.size > 1 { figure.size.to_string() } else { String::new() };
        let tenth = figure.tenth.map(cell).unwrap_or_default();
        let limit = amount(figure.limit, figure.unit);
        writeln!(out, "| `{}` | {} | {limit} | {size} | {} | {tenth} |", figure.name, figure.what, cell(figure.value)).ok();
    }
    out
}

/// Whether the plot is that of the record.
pub(crate) fn stale(root: &Path) -> Result<Option<String>, Box<dyn Error>> {
    let drawn = plot::draw(&figures(&read(&fs::read_to_string(root.join(RECORD))?)?, &limits(root)?)?);
    let stale = fs::read_to_string(root.join(PLOT)).ok().as_ref() != Some(&drawn);
    Ok(stale.then(|| format!("{PLOT}: not what {RECORD} says; run `cargo xtask bench --from {RECORD}`")))
}

#[cfg(test)]
mod tests;
