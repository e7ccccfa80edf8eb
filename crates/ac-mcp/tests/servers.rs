//! Tools of MCP servers, good ones and bad ones. The servers here are shell scripts that speak the protocol line by line; `published.rs` uses
//! the published ones.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::{
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use ac_core::{
    CancelToken, Tool, ToolCategory, ToolContext, ToolErrorKind, ToolOutcome,
    tool::{Capabilities, NoProgress, ToolContextParts, ToolList},
};
use ac_mcp::{McpConfig, McpErrorKind, McpServer, McpTransport};
use serde_json::{Value, json};
use tempfile::TempDir;

/// `hello`, `list` and `call` are shell commands that answer a request whose id is `$id`.
fn script(folder: &TempDir, call: &str) -> McpConfig {
    let text = format!(
        r#"echo $$ >> {pids}
answer() {{ printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" "$1"; }}
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) answer '{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"fake","version":"1"}}}}' ;;
    *'"tools/list"'*) answer '{{"tools":[{{"name":"do.it","description":"Does it.","inputSchema":{{"type":"object"}}}},{{"name":"other","inputSchema":{{"type":"object"}}}}]}}' ;;
    *'"tools/call"'*) {call} ;;
    *'"id"'*) printf '{{"jsonrpc":"2.0","id":%s,"error":{{"code":-32601,"message":"unknown"}}}}\n' "$id" ;;
  esac
done
"#,
        pids = folder.path().join("pids").display(),
    );
    let path = folder.path().join("server.sh");
    fs::write(&path, text).unwrap();
    let mut config = McpConfig::new("fake", McpTransport::stdio("/bin/sh", [path.to_str().unwrap()]));
    config.call_timeout = Duration::from_secs(2);
    config.connect_timeout = Duration::from_secs(15);
    config
}

const OK: &str = r#"answer '{"content":[{"type":"text","text":"done"}]}'"#;

fn context(cancel: &CancelToken) -> ToolContext {
    ToolContext::new(ToolContextParts {
        run: "run-1".into(),
        thread: "thread-1".into(),
        resource: "resource-1".into(),
        call: "call-1".into(),
        tool: "fake__do_it".into(),
        attempt: 1,
        cancel: cancel.clone(),
        progress: Arc::new(NoProgress),
        capabilities: Capabilities::new(),
        request_context: Arc::default(),
    })
}

async fn call(tools: &ToolList, args: Value) -> Result<String, (ToolErrorKind, String)> {
    let tool: &Arc<dyn Tool> = &tools[0];
    match tool.call(args, &context(&CancelToken::new())).await {
        Ok(ToolOutcome::Done(output)) => Ok(output.model_text()),
        Ok(other) => panic!("expected a result, got {other:?}"),
        Err(error) => Err((error.kind(), error.to_string())),
    }
}

fn alive(folder: &TempDir) -> usize {
    let pids = fs::read_to_string(folder.path().join("pids")).unwrap_or_default();
    let running = |pid: &&str| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    };
    pids.split_whitespace().filter(running).count()
}

async fn until_none_is_alive(folder: &TempDir) {
    let started = Instant::now();
    while alive(folder) > 0 {
        assert!(started.elapsed() < Duration::from_secs(8), "the server still runs");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn the_tools_of_a_server_are_tools() {
    let folder = TempDir::new().unwrap();
    let server = McpServer::connect(script(&folder, OK)).await.unwrap();
    let tools = server.tools();
    let definition = tools[0].definition();
    assert_eq!((definition.name.as_str(), definition.description.as_str()), ("fake__do_it", "Does it."));
    assert_eq!(definition.category, ToolCategory::Mcp);
    assert_eq!(tools.len(), 2);
    assert_eq!(call(&tools, json!({"a": 1})).await.unwrap(), "done");
    assert_eq!(alive(&folder), 1);
    drop(tools);
    server.close().await;
    until_none_is_alive(&folder).await;
}

/// B-133, B-135.
#[tokio::test]
async fn a_server_that_dies_in_a_call_is_started_again_by_the_next() {
    let folder = TempDir::new().unwrap();
    let once = folder.path().join("once");
    let dies = format!("if [ -e {0} ]; then {OK}; else touch {0}; exit 1; fi", once.display());
    let server = McpServer::connect(script(&folder, &dies)).await.unwrap();
    let tools = server.tools();
    let started = Instant::now();
    let (kind, why) = call(&tools, json!({})).await.unwrap_err();
    assert_eq!(kind, ToolErrorKind::Failed);
    assert!(why.starts_with("fake: ") && started.elapsed() < Duration::from_secs(3), "{why}");
    assert_eq!(call(&tools, json!({})).await.unwrap(), "done");
    assert_eq!(alive(&folder), 1, "one process, not two");
    drop(tools);
    server.close().await;
    until_none_is_alive(&folder).await;
}

/// B-133.
#[tokio::test]
async fn a_server_that_never_answers_costs_one_call() {
    let folder = TempDir::new().unwrap();
    let once = folder.path().join("once");
    let hangs = format!("if [ -e {0} ]; then {OK}; else touch {0}; sleep 300; fi", once.display());
    let server = McpServer::connect(script(&folder, &hangs)).await.unwrap();
    let tools = server.tools();
    let started = Instant::now();
    let (_, why) = call(&tools, json!({})).await.unwrap_err();
    assert!(why.contains("no answer within 2 s") && started.elapsed() < Duration::from_secs(4), "{why}");
    assert_eq!(call(&tools, json!({})).await.unwrap(), "done");
}

#[tokio::test]
async fn a_call_ends_at_once_when_it_is_cancelled() {
    let folder = TempDir::new().unwrap();
    let server = McpServer::connect(script(&folder, "sleep 300")).await.unwrap();
    let tools = server.tools();
    let cancel = CancelToken::new();
    let cx = context(&cancel);
    let stop = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        cancel.cancel();
        Instant::now()
    };
    let (result, stopped) = tokio::join!(tools[0].call(json!({}), &cx), stop);
    assert!(stopped.elapsed() < Duration::from_millis(500));
    assert_eq!(result.unwrap_err().kind(), ToolErrorKind::Cancelled);
}

/// B-82, B-136.
#[tokio::test]
async fn a_flood_is_cut_and_an_error_is_a_failed_result() {
    let folder = TempDir::new().unwrap();
    let flood = r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"' "$id"; head -c 5000000 /dev/zero | tr '\0' 'x'; printf '"}]}}\n'"#;
    let server = McpServer::connect(script(&folder, flood)).await.unwrap();
    let text = call(&server.tools(), json!({})).await.unwrap();
    assert!(text.len() < 70 << 10 && text.ends_with("of 5000000 bytes]"));

    let folder = TempDir::new().unwrap();
    let fails = r#"answer '{"content":[{"type":"text","text":"no such thing"}],"isError":true}'"#;
    let server = McpServer::connect(script(&folder, fails)).await.unwrap();
    assert_eq!(call(&server.tools(), json!({})).await.unwrap_err(), (ToolErrorKind::Failed, "no such thing".into()));

    let folder = TempDir::new().unwrap();
    let refuses = r#"printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"broken inside"}}\n' "$id""#;
    let server = McpServer::connect(script(&folder, refuses)).await.unwrap();
    assert!(call(&server.tools(), json!({})).await.unwrap_err().1.contains("broken inside"));

    let folder = TempDir::new().unwrap();
    let noisy = format!("echo 'this is no protocol'; echo '{{\"x\":1}}'; {OK}");
    let server = McpServer::connect(script(&folder, &noisy)).await.unwrap();
    assert_eq!(call(&server.tools(), json!({})).await.unwrap(), "done");
}

#[tokio::test]
async fn a_server_that_is_none_is_an_error_in_time() {
    let connect = |program: &str, args: &[&str]| {
        let mut config = McpConfig::new("fake", McpTransport::stdio(program, args.iter().copied()));
        config.connect_timeout = Duration::from_secs(1);
        async move {
            let started = Instant::now();
            let error = McpServer::connect(config).await.unwrap_err();
            assert!(started.elapsed() < Duration::from_secs(5), "{error}");
            error.kind()
        }
    };
    assert_eq!(connect("/no/such/program", &[]).await, McpErrorKind::Connect);
    assert_eq!(connect("/bin/sh", &["-c", "exit 3"]).await, McpErrorKind::Connect);
    assert_eq!(connect("/bin/sh", &["-c", "sleep 300"]).await, McpErrorKind::Timeout);
    assert_eq!(connect("/bin/sh", &["-c", "yes garbage"]).await, McpErrorKind::Timeout);
    let name = McpServer::connect(McpConfig::new("a b", McpTransport::stdio("x", [""; 0]))).await.unwrap_err();
    assert_eq!((name.kind(), name.code()), (McpErrorKind::Name, "mcp.name"));
    let mut config = McpConfig::new("fake", McpTransport::http("http://127.0.0.1:1/mcp"));
    config.connect_timeout = Duration::from_secs(5);
    assert!(matches!(McpServer::connect(config).await.unwrap_err().kind(), McpErrorKind::Connect | McpErrorKind::Timeout));
}

/// What a launcher launched ends with the server, also when the launcher is gone by itself.
#[tokio::test]
async fn what_a_server_started_ends_with_it() {
    for call in [OK, "exit 1"] {
        let folder = TempDir::new().unwrap();
        let mut config = script(&folder, call);
        let McpTransport::Stdio { args, .. } = &mut config.transport else { panic!("a script") };
        let helper = format!("sleep 300 & echo $! >> {}; . {}", folder.path().join("pids").display(), args[0]);
        *args = vec!["-c".to_owned(), helper];
        let server = McpServer::connect(config).await.unwrap();
        assert_eq!(alive(&folder), 2);
        let tools = server.tools();
        let called = call_in_time(&tools).await;
        assert_eq!(called.is_ok(), call == OK);
        drop(tools);
        server.close().await;
        until_none_is_alive(&folder).await;
    }
}

async fn call_in_time(tools: &ToolList) -> Result<String, (ToolErrorKind, String)> {
    tokio::time::timeout(Duration::from_secs(5), call(tools, json!({}))).await.unwrap()
}

/// A server that hangs in one call costs that call, and none that it still serves.
#[tokio::test]
async fn a_call_that_takes_too_long_ends_no_other_one() {
    let folder = TempDir::new().unwrap();
    // Answers the second call after the first one has run into its limit.
    let late = format!(r#"if [ -e {0}/one ]; then (sleep 1.5; {OK}) & else touch {0}/one; fi"#, folder.path().display());
    let server = McpServer::connect(script(&folder, &late)).await.unwrap();
    let tools = server.tools();
    let first = call(&tools, json!({}));
    let second = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        call(&tools, json!({})).await
    };
    let (first, second) = tokio::join!(first, second);
    assert!(first.unwrap_err().1.contains("no answer within 2 s"));
    assert_eq!(second.unwrap(), "done");
    server.close().await;
}

#[tokio::test]
async fn a_server_that_was_closed_stays_closed() {
    let folder = TempDir::new().unwrap();
    let server = McpServer::connect(script(&folder, OK)).await.unwrap();
    let tools = server.tools();
    server.close().await;
    assert!(call(&tools, json!({})).await.unwrap_err().1.contains("was closed"));
    until_none_is_alive(&folder).await;
}

/// Who waited for a server that cannot be started is told so with the one who started it.
#[tokio::test]
async fn calls_that_wait_for_one_start_share_its_failure() {
    let folder = TempDir::new().unwrap();
    let mut config = script(&folder, "exit 1");
    config.connect_timeout = Duration::from_secs(1);
    let server = McpServer::connect(config).await.unwrap();
    let tools = server.tools();
    let _ended = call(&tools, json!({})).await;
    fs::write(folder.path().join("server.sh"), "sleep 300").unwrap();
    let started = Instant::now();
    let calls = (0..6).map(|_| call(&tools, json!({})));
    for called in futures::future::join_all(calls).await {
        assert!(called.unwrap_err().1.contains("was not ready within 1 s"));
    }
    assert!(started.elapsed() < Duration::from_secs(3), "each waited for a start of its own");
    server.close().await;
}

/// An address may hold a key, and so may a header.
#[tokio::test]
async fn what_cannot_be_reached_is_not_told_with_its_address() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut transport = McpTransport::http(format!("http://{address}/mcp?apiKey=geheim"));
    let McpTransport::Http { headers, .. } = &mut transport else { panic!("an address") };
    headers.insert("authorization".into(), "Bearer topsecret".into());
    let error = McpServer::connect(McpConfig::new("far", transport)).await.unwrap_err();
    assert_eq!(error.kind(), McpErrorKind::Connect);
    let mut told = vec![error.to_string(), format!("{error:?}")];
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        told.extend([error.to_string(), format!("{error:?}")]);
        cause = error.source();
    }
    for text in told {
        assert!(!text.contains("geheim") && !text.contains("topsecret"), "{text}");
    }
}
