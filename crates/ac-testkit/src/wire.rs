//! Recorded answers of model providers, served over a socket and read by the real adapters.
//!
//! A case is known to the reader by nothing but its bytes and headers; its protocol and path choose the adapter. What a client must make of
//! it is looked at by the judge alone, afterwards.

mod body;
mod judge;
mod options;
mod read;
mod serve;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use futures::{StreamExt, stream};
pub use judge::{Difference, judge};
pub use options::{Options, ParseOptionsError};
use serde_json::{Value, json};

/// One recorded answer.
#[derive(Clone, Debug)]
pub struct Case {
    /// `provider/case`.
    pub name: String,
    /// Which protocol it is of.
    pub api: String,
    /// The path it was recorded at.
    pub path: String,
    /// The status of the answer.
    pub status: u16,
    /// The headers worth keeping.
    pub headers: Vec<(String, String)>,
    /// `response.sse`, `response.json`, …
    pub file: String,
    /// The body.
    pub body: Vec<u8>,
    /// The recorded request, where there was one.
    pub request: Option<Value>,
    /// What a client must make of it; for the judge only.
    pub expect: Value,
    /// Fields of `expect` where another answer is acceptable.
    pub soft: Vec<String>,
    /// The conversation and the turn of it.
    pub sequence: Option<(String, u64)>,
}

/// What became of one case.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// `provider/case`.
    pub case: String,
    /// What the adapters made of it, in the judge's words.
    pub result: Value,
    /// Where that differs from what was expected.
    pub differences: Vec<Difference>,
}

impl Outcome {
    /// The line of a results file.
    pub fn line(&self) -> String {
        json!({"case": self.case, "result": self.result}).to_string()
    }
}

/// Where the shared corpus is, if it is there: `$AC_SHARED/wire/corpus`, else `../shared/wire/corpus` beside the checkout.
pub fn shared_corpus() -> Option<PathBuf> {
    let shared = std::env::var_os("AC_SHARED").map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    Some(shared.join("wire/corpus")).filter(|corpus| corpus.is_dir())
}

/// Every case below a folder, by name.
///
/// # Errors
/// When the folder or a case in it cannot be read.
pub fn load(folder: &Path) -> io::Result<Vec<Case>> {
    let mut cases = vec![];
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.file_name().is_some_and(|name| name == "meta.json") {
                cases.push(case(&folder, &fs::read(path)?).map_err(|error| io::Error::other(format!("{}: {error}", folder.display())))?);
            }
        }
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(cases)
}

fn case(folder: &Path, meta: &[u8]) -> io::Result<Case> {
    let meta: Value = serde_json::from_slice(meta)?;
    let text = |pointer: &str| meta.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let need = |pointer: &str| text(pointer).ok_or_else(|| io::Error::other(format!("no {pointer}")));
    let file = need("/response_file")?;
    let headers = meta.get("headers").and_then(Value::as_object).into_iter().flatten();
    let sequence = text("/sequence/group").zip(meta.pointer("/sequence/turn").and_then(Value::as_u64));
    Ok(Case {
        name: need("/case")?,
        api: need("/api")?,
        path: need("/request/path")?,
        status: meta.get("status").and_then(Value::as_u64).and_then(|status| u16::try_from(status).ok()).unwrap_or(200),
        headers: headers.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect(),
        body: fs::read(folder.join(&file))?,
        request: match text("/request/file") {
            Some(file) => serde_json::from_slice(&fs::read(folder.join(file))?).ok(),
            None => None,
        },
        file,
        expect: meta.get("expect").cloned().unwrap_or_default(),
        soft: meta
            .get("soft")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect(),
        sequence,
    })
}

/// The body of the request that goes on after `case`, made from its answer as it is stored, and which of the opaque texts that must go
/// back unchanged are missing in it. `None` where there is nothing to go on from.
pub fn next_request(case: &Case) -> Option<(Value, Vec<Value>)> {
    let body = read::next_request(case)?;
    let mut texts = vec![];
    read::collect(&body, &mut texts);
    let sent: Vec<String> = texts.iter().map(|text| judge::digest(text)).collect();
    let owed = case.expect.get("opaque").and_then(Value::as_array).cloned().unwrap_or_default();
    let missing = owed
        .into_iter()
        .filter(|owed| !owed.get("sha256_16").and_then(Value::as_str).is_some_and(|digest| sent.iter().any(|sent| sent == digest)));
    Some((body, missing.collect()))
}

/// How many cases are read at once.
const AT_ONCE: usize = 8;

/// Serves each case as `options` say and reads it with the adapter of its protocol. In the order of `cases`.
///
/// # Errors
/// When no socket can be opened or no HTTP client built.
pub async fn run(cases: &[Case], options: &Options) -> io::Result<Vec<Outcome>> {
    let server = serve::Server::start(cases.to_vec(), options.clone()).await?;
    let reader = read::Reader::new(server.address())?;
    let outcomes = stream::iter(cases.iter().enumerate())
        .map(|(number, case)| {
            let reader = &reader;
            async move {
                let result = reader.read(number, case).await;
                let differences = judge(&case.expect, &result, &case.soft);
                Outcome { case: case.name.clone(), result, differences }
            }
        })
        .buffered(AT_ONCE)
        .collect()
        .await;
    server.stop().await;
    Ok(outcomes)
}
