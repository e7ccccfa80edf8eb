//! What commands see of the host's environment.

/// Names that say where programs are, who works, and in which language. None of them holds a secret.
const HARMLESS: [&str; 8] = ["PATH", "HOME", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"];

/// Nobody sits at a terminal: no pagers, no prompts, no colours by terminal type.
const FIXED: [(&str, &str); 4] = [("TERM", "dumb"), ("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0")];

pub(super) fn inherited(also: &[String]) -> Vec<(String, std::ffi::OsString)> {
    let names = HARMLESS.iter().copied().chain(also.iter().map(String::as_str));
    let mut env: Vec<_> = names.filter_map(|name| Some((name.to_owned(), std::env::var_os(name)?))).collect();
    env.extend(FIXED.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())));
    env
}
