//! The published servers of the protocol's authors, as `tests/npm/package-lock.json` pins them, over standard input and output and over HTTP.
//!
//! Asks the npm registry, so it runs only with `AC_MCP_NPM=1`, and where Node is.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::print_stdout)]

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use ac_core::{
    CancelToken, Tool, ToolContext, ToolError, ToolErrorKind, ToolOutcome,
    tool::{Capabilities, NoProgress, ToolContextParts, ToolList},
};
use ac_mcp::{McpConfig, McpServer, McpTransport};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Where the servers are installed; `None` where they are not asked for or Node is missing.
fn installed() -> Option<PathBuf> {
    static FOLDER: OnceLock<Option<TempDir>> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        if std::env::var_os("AC_MCP_NPM").is_none() {
            println!("skipped: set AC_MCP_NPM=1 to use the MCP servers of the npm registry");
            return None;
        }
        if !Command::new("node").arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success()) {
            println!("skipped: there is no Node here");
            return None;
        }
        let folder = TempDir::new().unwrap();
        for name in ["package.json", "package-lock.json"] {
            fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/npm").join(name), folder.path().join(name)).unwrap();
        }
        let npm = Command::new("npm").args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(folder.path()).status();
        assert!(npm.unwrap().success(), "npm ci failed");
        Some(folder)
    });
    folder.as_ref().map(|folder| folder.path().join("node_modules/.bin"))
}

fn stdio(bin: &Path, server: &str, args: &[&str]) -> McpConfig {
    let program = bin.join(server).to_str().unwrap().to_owned();
    let mut config = McpConfig::new("npm", McpTransport::stdio(program, args.iter().copied()));
    config.connect_timeout = Duration::from_secs(60);
    config
}

async fn call(tools: &ToolList, name: &str, args: Value) -> Result<String, ToolError> {
    let wanted = format!("npm__{name}");
    let tool: &Arc<dyn Tool> = tools.iter().find(|tool| tool.definition().name == wanted).unwrap_or_else(|| panic!("there is no {name}"));
    let cx = ToolContext::new(ToolContextParts {
        run: "run-1".into(),
        thread: "thread-1".into(),
        resource: "resource-1".into(),
        call: "call-1".into(),
        tool: wanted,
        attempt: 1,
        cancel: CancelToken::new(),
        progress: Arc::new(NoProgress),
        capabilities: Capabilities::new(),
        request_context: Arc::default(),
    });
    match tool.call(args, &cx).await? {
        ToolOutcome::Done(output) => Ok(output.model_text()),
        other => panic!("expected a result, got {other:?}"),
    }
}

#[tokio::test]
async fn the_server_with_everything_is_used_over_standard_input_and_output() {
    let Some(bin) = installed() else { return };
    let server = McpServer::connect(stdio(&bin, "mcp-server-everything", &[])).await.unwrap();
    let tools = server.tools();
    assert!(call(&tools, "echo", json!({"message": "hello"})).await.unwrap().contains("hello"));
    assert!(call(&tools, "get-sum", json!({"a": 2, "b": 40})).await.unwrap().contains("42"));
    // Arguments that do not fit are the server's to refuse, and a failed result.
    assert_eq!(call(&tools, "get-sum", json!({"a": "two"})).await.unwrap_err().kind(), ToolErrorKind::Failed);
    server.close().await;
}

#[tokio::test]
async fn the_server_with_everything_is_used_over_http() {
    let Some(bin) = installed() else { return };
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut process = Command::new(bin.join("mcp-server-everything"))
        .arg("streamableHttp")
        .env("PORT", port.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    let server = loop {
        let mut config = McpConfig::new("npm", McpTransport::http(format!("http://127.0.0.1:{port}/mcp")));
        config.connect_timeout = Duration::from_secs(10);
        match McpServer::connect(config).await {
            Ok(server) => break server,
            Err(error) => assert!(Instant::now() < until, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    let tools = server.tools();
    assert!(call(&tools, "echo", json!({"message": "over http"})).await.unwrap().contains("over http"));
    // The server dies: the call fails, and nothing else does.
    process.kill().unwrap();
    process.wait().unwrap();
    assert_eq!(call(&tools, "echo", json!({"message": "again"})).await.unwrap_err().kind(), ToolErrorKind::Failed);
    server.close().await;
}

#[tokio::test]
async fn the_server_of_files_reads_its_folder_and_no_other() {
    let Some(bin) = installed() else { return };
    let folder = TempDir::new().unwrap();
    let path = folder.path().canonicalize().unwrap();
    fs::write(path.join("note"), "the note").unwrap();
    let server = McpServer::connect(stdio(&bin, "mcp-server-filesystem", &[path.to_str().unwrap()])).await.unwrap();
    let tools = server.tools();
    assert!(call(&tools, "read_text_file", json!({"path": path.join("note")})).await.unwrap().contains("the note"));
    call(&tools, "write_file", json!({"path": path.join("new"), "content": "written"})).await.unwrap();
    assert_eq!(fs::read_to_string(path.join("new")).unwrap(), "written");
    assert_eq!(call(&tools, "read_text_file", json!({"path": "/etc/passwd"})).await.unwrap_err().kind(), ToolErrorKind::Failed);
    server.close().await;
}
