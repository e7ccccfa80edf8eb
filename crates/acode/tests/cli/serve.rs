use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use crate::harness::{Home, Live};

/// The address that a server says it listens on.
fn address(live: &mut Live) -> String {
    live.wait("listening on http://").wait("/api\n");
    let shown = live.shown();
    shown.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned()
}

fn ask(address: &str, request: &str) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

fn get(address: &str, path: &str, header: &str) -> String {
    ask(address, &format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{header}\r\n"))
}

#[test]
fn a_project_is_served_on_loopback_until_it_is_told_to_end() {
    let home = Home::new();
    let mut live = home.start(&["serve", "--listen", "127.0.0.1:0"]);
    let address = address(&mut live);
    assert!(get(&address, "/health", "").starts_with("HTTP/1.1 200"));
    assert!(get(&address, "/api/agent-controller", "").contains(r#"{"agentControllers":[{"id":"acode"}]}"#));
    // A name that only leads here by somebody else's doing.
    let rebound = ask(&address, "GET /api/agent-controller HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n");
    assert!(rebound.starts_with("HTTP/1.1 421"), "{rebound}");
    live.signal("-TERM");
    live.end().exits(0);
}

#[test]
fn nobody_is_let_in_from_elsewhere_without_a_token() {
    let home = Home::new();
    let refused = home.run(&["serve", "--listen", "0.0.0.0:0"], "").exits(64);
    assert!(refused.err.contains("--auth"), "{}", refused.err);
    home.run(&["token", "add", "two words"], "").exits(64);
    home.run(&["token", "add", "ada", "--rights", "root"], "").exits(64);
    let added = home.run(&["token", "add", "ada", "--auth", "../tokens"], "").exits(0);
    let token = added.out.trim();
    assert!(!home.read("../tokens").contains(token));
    let mut live = home.start(&["serve", "--listen", "127.0.0.1:0", "--auth", "../tokens"]);
    let address = address(&mut live);
    assert!(get(&address, "/api/agent-controller", "").starts_with("HTTP/1.1 401"));
    assert!(get(&address, "/api/agent-controller", &format!("authorization: Bearer {token}\r\n")).starts_with("HTTP/1.1 200"));
    live.signal("-TERM");
    live.end().exits(0);
}
