//! Search with the engine behind ripgrep, over files opened by the walk.

use std::{
    io,
    path::PathBuf,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use ac_core::CancelToken;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};

use super::{Inner, walker::Walk};
use crate::{FileKind, SearchHit, SearchQuery, SearchResult, WorkspaceError, WorkspaceErrorKind as Kind, walk::WalkQuery};

/// A longer pattern is a mistake.
const LONGEST_PATTERN: usize = 4096;
/// A longer line ends the search of its file.
const LONGEST_LINE: usize = 32 << 20;

pub(super) fn search(inner: &Inner, query: &SearchQuery, cancel: &CancelToken) -> Result<SearchResult, WorkspaceError> {
    let matcher = matcher(query)?;
    let files = WalkQuery { dirs: false, ..query.files.clone() };
    let walk = Walk::new(inner, &files, cancel)?;
    let (all, idle) = (Mutex::new(Vec::new()), Mutex::new(Vec::<Searcher>::new()));
    let (kept, with_hit) = (AtomicUsize::new(0), AtomicUsize::new(0));
    // More is gathered than is shown, so that the shown ones are the first by path where there are few.
    let enough = query.limit.saturating_mul(8).max(query.limit);
    let truncated = std::sync::atomic::AtomicBool::new(false);
    walk.run(|found| {
        if found.kind != FileKind::File {
            return;
        }
        let Some(file) = walk.open(&found) else { return };
        let mut lines = Lines { hits: Vec::new(), max_line: query.max_line, left: query.limit, cancel, cut: false };
        // Each thread takes one, so there are as many as threads: what they allocate is used again.
        let lock = || idle.lock().unwrap_or_else(PoisonError::into_inner);
        let mut searcher = { lock().pop() }.unwrap_or_else(|| searcher(query));
        let ended = searcher.search_file(&matcher, &file, &mut lines);
        lock().push(searcher);
        if ended.is_err() || lines.cut {
            truncated.store(true, Ordering::Relaxed);
        }
        let hits = lines.hits.iter().filter(|hit| !hit.context).count();
        if hits == 0 {
            return;
        }
        with_hit.fetch_add(1, Ordering::Relaxed);
        let path = walk.shown(&found.rel);
        for hit in &mut lines.hits {
            hit.path.clone_from(&path);
        }
        all.lock().unwrap_or_else(PoisonError::into_inner).append(&mut lines.hits);
        if kept.fetch_add(hits, Ordering::Relaxed) + hits > enough {
            truncated.store(true, Ordering::Relaxed);
            walk.stop();
        }
    })?;
    let mut hits = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    hits.sort_unstable();
    let mut shown = 0;
    let end = hits.iter().position(|hit| {
        shown += usize::from(!hit.context);
        shown > query.limit
    });
    if let Some(end) = end {
        hits.truncate(end);
        truncated.store(true, Ordering::Relaxed);
    }
    Ok(SearchResult { hits, truncated: truncated.into_inner(), files: with_hit.into_inner() })
}

fn matcher(query: &SearchQuery) -> Result<RegexMatcher, WorkspaceError> {
    let invalid = |why: String| WorkspaceError::new(Kind::Invalid, why);
    if query.pattern.is_empty() || query.pattern.len() > LONGEST_PATTERN {
        return Err(invalid(format!("the pattern must have 1 to {LONGEST_PATTERN} bytes")));
    }
    RegexMatcherBuilder::new()
        .case_insensitive(query.ignore_case)
        .fixed_strings(query.literal)
        .line_terminator(Some(b'\n'))
        .build(&query.pattern)
        .map_err(|error| invalid(format!("the pattern is no regular expression: {error}")).with_source(error))
}

fn searcher(query: &SearchQuery) -> Searcher {
    SearcherBuilder::new()
        .line_number(true)
        .before_context(query.context)
        .after_context(query.context)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(LONGEST_LINE))
        .build()
}

struct Lines<'a> {
    /// Their path is set when there are any.
    hits: Vec<SearchHit>,
    max_line: usize,
    left: usize,
    cancel: &'a CancelToken,
    cut: bool,
}

impl Lines<'_> {
    fn keep(&mut self, line: Option<u64>, bytes: &[u8], context: bool) {
        let text = cut(bytes, self.max_line);
        self.hits.push(SearchHit { path: PathBuf::new(), line: line.unwrap_or_default(), text, context });
    }
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, hit: &SinkMatch<'_>) -> Result<bool, io::Error> {
        if self.left == 0 {
            self.cut = true;
            return Ok(false);
        }
        self.left -= 1;
        self.keep(hit.line_number(), hit.bytes(), false);
        Ok(!self.cancel.is_cancelled())
    }

    fn context(&mut self, _: &Searcher, near: &SinkContext<'_>) -> Result<bool, io::Error> {
        self.keep(near.line_number(), near.bytes(), true);
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, io::Error> {
        self.hits.clear();
        Ok(false)
    }
}

/// A line without its end, at most `max` bytes of it, never half a character.
fn cut(bytes: &[u8], max: usize) -> String {
    let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let head = line.get(..max.saturating_add(4)).unwrap_or(line);
    let mut text = String::from_utf8_lossy(head).into_owned();
    if line.len() > max {
        let end = (0..=max).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
        text.truncate(end);
        text.push_str(" […]");
    }
    text
}
