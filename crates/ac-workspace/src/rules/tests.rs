use serde_json::json;

use super::*;

fn rules(list: &[(&str, Policy)]) -> ToolRules {
    list.iter().fold(ToolRules::new(), |rules, (pattern, policy)| rules.with(pattern, *policy).unwrap())
}

fn command(rules: &ToolRules, command: &str) -> Option<Policy> {
    rules.judge("execute_command", &json!({ "command": command }))
}

/// B-91: none of these runs by itself.
#[test]
fn nothing_rides_along_behind_an_allowed_command() {
    let rules = rules(&[("execute_command(cat *)", Policy::Allow)]);
    assert_eq!(command(&rules, "cat a"), Some(Policy::Allow));
    for smuggled in [
        "cat a && rm -rf x",
        "cat a; rm x",
        "cat a | sh",
        "cat a & rm x",
        "cat a\nrm x",
        "cat a\r\nrm x",
        "cat $(rm x)",
        "cat `rm x`",
        "cat \"$(rm x)\"",
        "cat \"`rm x`\"",
        "cat <(rm x)",
        "cat >(rm x)",
        "cat a > /etc/x",
        "cat a >> x",
        "cat a >| x",
        "cat a &> x",
        "cat a <> x",
        "bash -c 'rm x'",
        "env rm x",
        "FOO=1 rm x",
        "FOO=1 cat x",
        "LD_PRELOAD=./x.so cat a",
        "cat a || rm x",
        "cat a |& rm x",
        "! rm x",
        "{ cat a; rm x; }",
        "(cat a; rm x)",
        "if cat a; then rm x; fi",
        "for i in 1; do rm x; done",
        "while cat a; do rm x; done",
        "case a in a) rm x;; esac",
        "cat() { rm x; }; cat a",
        "cat a <<EOF\n$(rm x)\nEOF",
        "cat <<< $(rm x)",
        "cat ${x:-$(rm x)}",
        "cat $((`rm x`))",
        "cat $x",
        "cat a #\nrm x",
        "cat a \\\n; rm x",
        "cat 'a\n' ; rm x",
        "cat a;rm x",
        "cat a&&rm x",
        "cat a\u{2028}; rm x",
        "c\\at a; rm x",
        "'cat' a; rm x",
        "cat $'a\\n'; rm x",
        "eval cat a",
        ". ./x",
        "time cat a",
        "coproc cat a",
        "[[ -n $(rm x) ]]",
        "cat a \"",
        "cat '",
        "cat a; ; rm",
        "",
        "# cat a",
        "cat",
        "catx a",
        "/tmp/cat a",
        "{cat,rm} a",
        "c?t a",
        "~/cat a",
    ] {
        assert_ne!(command(&rules, smuggled), Some(Policy::Allow), "{smuggled:?}");
    }
    for fine in [
        "cat a b",
        "cat 'a b'",
        "  cat   a  ",
        "'cat' a",
        "c\\at a",
        "cat a | cat -",
        "cat a && cat b",
        "cat a 2>/dev/null",
        "cat a 2>&1",
        "cat *.rs",
        "cat \"a; rm x\"",
        "cat -- a",
    ] {
        assert_eq!(command(&rules, fine), Some(Policy::Allow), "{fine:?}");
    }
}

/// B-91, the other way around: a rule that denies finds its command wherever it hides.
#[test]
fn a_denied_command_is_found_wherever_it_hides() {
    let rules = rules(&[("execute_command(rm *)", Policy::Deny), ("execute_command(*)", Policy::Allow)]);
    for hidden in [
        "rm x",
        "rm",
        "cat a && rm -rf x",
        "cat a | rm",
        "cat $(rm x)",
        "cat `rm x`",
        "cat <(rm x)",
        "bash -c 'rm x'",
        "bash -c \"cat a; rm x\"",
        "sh -ec 'sh -c \"rm x\"'",
        "eval 'rm x'",
        "eval rm x",
        "env rm x",
        "env FOO=1 -i rm x",
        "sudo -u root rm x",
        "nohup timeout 5 nice -n 3 rm x",
        "xargs -0 rm",
        "find . -exec rm {} +",
        "find . -name x -execdir sh -c 'rm x' \\;",
        "FOO=1 rm x",
        "/bin/rm x",
        "../../bin/rm x",
        "\\rm x",
        "'rm' x",
        "r''m x",
        "\"r\"m x",
        "RM x",
        "{ rm x; }",
        "(rm x)",
        "if true; then rm x; fi",
        "for i in $(rm x); do :; done",
        "f() { rm x; }; f",
        "rm x >/dev/null",
        "exec rm x",
        "command rm x",
        "busybox rm x",
        "[[ -n $(rm x) ]]",
        "cat $(( $(rm x) ))",
        "echo ${x:-$(rm x)}",
        "case a in a) rm x;; esac",
        "if a; then b; else rm x; fi",
        "! rm x",
        "a=$(rm x)",
        "cat > $(rm x)",
    ] {
        assert_eq!(command(&rules, hidden), Some(Policy::Deny), "{hidden:?}");
    }
    // What is nested deeper than it is read is not searched for the denied word: it asks, and never runs unasked.
    assert_eq!(command(&rules, "cat \"$(cat $(rm x))\""), Some(Policy::Ask));
    assert_eq!(command(&rules, "echo rm"), Some(Policy::Allow));
    assert_eq!(command(&rules, "farm x"), Some(Policy::Allow));
    // What cannot be seen asks where something is denied.
    for unseen in ["$x y", "echo 'a' ; rm x 'unclosed", "cat 'a"] {
        assert_eq!(command(&rules, unseen), Some(Policy::Ask), "{unseen:?}");
    }
    assert_eq!(command(&rules, "`echo r``echo m` x"), Some(Policy::Ask));
}

/// Where everything else is allowed, a line in which a denied command may hide is not.
#[test]
fn what_a_denial_may_mean_is_told_apart_from_what_it_cannot_mean() {
    let rules = rules(&[("execute_command(rm *)", Policy::Deny), ("execute_command(git push --force*)", Policy::Deny)]);
    let verdict = |command: &str| rules.verdict("execute_command", &json!({ "command": command }));
    for unclear in [
        "$x y",
        "`echo r``echo m` x",
        "r? x",
        "cat 'a",
        "git push $flags",
        "git $what",
        "env $x",
        "sh -c \"$x\"",
        "eval $x",
        "find . -exec $x {} +",
        "cat \"$(cat $(rm x))\"",
        "echo 'a' | xargs $x",
    ] {
        assert_eq!(verdict(unclear), Some(CallVerdict::Unclear), "{unclear}");
    }
    // It asks for what it does besides, and a session that allows everything runs it.
    for asks in ["echo $HOME", "cat a > b", "A=1 make", "for i in $x; do echo $i; done", "[ -n \"$x\" ]", "(make)"] {
        assert_eq!(verdict(asks), Some(CallVerdict::Ask), "{asks}");
    }
    assert_eq!((verdict("make"), verdict("rm x")), (None, Some(CallVerdict::Deny)));
}

/// What `sh` reads is not what every shell reads, and a denied command may stand where a look at the line does not see it: nobody is then
/// spared the question, whatever else is allowed.
#[test]
fn a_denied_command_is_denied_or_asked_about_however_the_line_is_twisted() {
    let many = format!("env {} rm x", (0..20).map(|n| format!("V{n}=1")).collect::<Vec<_>>().join(" "));
    let hidden = format!("sh -c '{}'; sh -c 'rm x'", ":;".repeat(600));
    let denies = rules(&[("execute_command(rm *)", Policy::Deny)]);
    for line in [
        "ls &>/dev/null rm -rf src",
        "ls &>>/dev/null rm -rf src",
        "!(rm -rf x)",
        "</dev/null rm -rf x",
        ">|f rm x",
        "<>f rm x",
        "<&0 rm x",
        "<<E rm x\nE",
        "sh <<E\nrm x\nE",
        "echo 'rm x' | sh",
        "env /bin/r? -rf x",
        "find . -exec /bin/r[m] {} +",
        many.as_str(),
        hidden.as_str(),
        "alias z=rm\nz -rf x",
        "/usr/bin/time rm x",
        "strace -f rm x",
        "systemd-run rm x",
        "echo $'\\' ; rm x; echo '",
    ] {
        let verdict = denies.verdict("execute_command", &json!({ "command": line }));
        assert!(matches!(verdict, Some(CallVerdict::Deny | CallVerdict::Unclear)), "{line:?}: {verdict:?}");
    }
    let denies = rules(&[("execute_command(git push*)", Policy::Deny), ("execute_command(cat .env*)", Policy::Deny)]);
    for line in ["git -C . push", "git -c a=b push", "git --no-pager push", "cat -n .env", "cat .e*", "cat .en?", "cat .{env,x}"] {
        let verdict = denies.verdict("execute_command", &json!({ "command": line }));
        assert_eq!(verdict, Some(CallVerdict::Unclear), "{line:?}");
    }
    for fine in ["git status", "ls -la", "cat a", "find . -name '*.rs'", "find . -exec wc -l {} +", "sh ./build.sh", "grep -r 'a*b' src"] {
        assert_eq!(denies.verdict("execute_command", &json!({ "command": fine })), None, "{fine:?}");
    }
    let allows = rules(&[("execute_command(ls *)", Policy::Allow)]);
    assert_eq!(command(&allows, "ls &>/dev/null rm -rf src"), None);
}

/// What takes in a folder takes in what is denied there.
#[test]
fn a_call_that_takes_in_a_folder_with_what_is_denied_is_unclear() {
    let rules = rules(&[
        ("search_content(**/.env)", Policy::Deny),
        ("delete(secrets/**)", Policy::Deny),
        ("delete(a/.env)", Policy::Deny),
        ("move(secrets/**)", Policy::Deny),
    ]);
    let verdict = |tool: &str, args: serde_json::Value| rules.verdict(tool, &args);
    for (tool, args) in [
        ("search_content", json!({ "pattern": "." })),
        ("search_content", json!({ "pattern": ".", "path": "src" })),
        ("delete", json!({ "path": "secrets", "recursive": true })),
        ("delete", json!({ "path": "A", "recursive": true })),
        ("delete", json!({ "path": "./", "recursive": true })),
        ("move", json!({ "from": "secrets", "to": "s" })),
    ] {
        assert_eq!(verdict(tool, args.clone()), Some(CallVerdict::Unclear), "{tool} {args}");
    }
    assert_eq!(verdict("search_content", json!({ "pattern": ".", "path": "src/.env" })), Some(CallVerdict::Deny));
    assert_eq!(verdict("delete", json!({ "path": "secrets/key" })), Some(CallVerdict::Deny));
    for (tool, args) in [
        ("delete", json!({ "path": "src", "recursive": true })),
        ("delete", json!({ "path": "b/a", "recursive": true })),
        ("delete", json!({ "path": "a" })),
        ("move", json!({ "from": "src", "to": "s" })),
    ] {
        assert_eq!(verdict(tool, args.clone()), None, "{tool} {args}");
    }
}

/// B-93.
#[test]
fn the_order_of_rules_does_not_matter() {
    let all =
        [("execute_command(*)", Policy::Ask), ("execute_command(git push)", Policy::Deny), ("execute_command(git push *)", Policy::Deny)];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let rules = rules(&order.map(|at| all[at]));
        assert_eq!(command(&rules, "git push origin main"), Some(Policy::Deny), "{order:?}");
        assert_eq!(command(&rules, "git status"), Some(Policy::Ask), "{order:?}");
    }
}

/// B-94.
#[test]
fn rules_are_compared_with_the_words_of_a_command() {
    let rules = rules(&[("execute_command(kill *)", Policy::Ask), ("execute_command(yarn)", Policy::Deny)]);
    for asks in ["kill -9 1", "kill  -9   1", "/bin/kill 1", "\\kill 1", "'kill' 1"] {
        assert_eq!(command(&rules, asks), Some(Policy::Ask), "{asks:?}");
    }
    for denied in ["yarn test", "YARN test", "yarn"] {
        assert_eq!(command(&rules, denied), Some(Policy::Deny), "{denied:?}");
    }
    assert_eq!(command(&rules, "ls"), None);
}

#[test]
fn an_allow_rule_means_what_it_says_and_no_more() {
    let rules = rules(&[
        ("execute_command(git status*)", Policy::Allow),
        ("execute_command(ls)", Policy::Allow),
        ("execute_command(npm run test)", Policy::Allow),
    ]);
    for allowed in ["git status", "git status --short", "ls", "npm run test", "npm  run  'test'"] {
        assert_eq!(command(&rules, allowed), Some(Policy::Allow), "{allowed:?}");
    }
    for not in ["git", "git -c x status", "ls -la", "npm run test -- x", "npm 'run test'", "'git status'", "/usr/bin/ls"] {
        assert_eq!(command(&rules, not), None, "{not:?}");
    }
}

#[test]
fn a_rule_for_the_whole_tool_stands_beside_its_patterns() {
    let rules = rules(&[("execute_command", Policy::Allow), ("execute_command(rm *)", Policy::Deny), ("view", Policy::Deny)]);
    assert_eq!(command(&rules, "ls"), Some(Policy::Allow));
    assert_eq!(command(&rules, "rm x"), Some(Policy::Deny));
    assert_eq!(command(&rules, "$x"), Some(Policy::Ask));
    assert_eq!(rules.judge("view", &json!({"path": "a"})), Some(Policy::Deny));
    assert_eq!(rules.judge("other", &json!({})), None);
}

#[test]
fn paths_are_judged_by_globs() {
    let rules = rules(&[
        ("write_file(src/**)", Policy::Allow),
        ("write_file(.env)", Policy::Deny),
        ("move(src/**)", Policy::Allow),
        ("move(src/keep/**)", Policy::Ask),
    ]);
    let write = |path: &str| rules.judge("write_file", &json!({ "path": path }));
    assert_eq!(write("src/a/b.rs"), Some(Policy::Allow));
    assert_eq!(write("./src/a.rs"), Some(Policy::Allow));
    assert_eq!(write("srcx/a.rs"), None);
    assert_eq!(write("SRC/a.rs"), None);
    // B-90: where case does not count, another spelling is the same file.
    for path in [".env", "src/.env", "a/b/.ENV", ".env.", ".Env . ", "src/.env::$DATA"] {
        assert_eq!(write(path), Some(Policy::Deny), "{path}");
    }
    let moved = |from: &str, to: &str| rules.judge("move", &json!({ "from": from, "to": to }));
    assert_eq!(moved("src/a", "src/b"), Some(Policy::Allow));
    assert_eq!(moved("src/a", "other/b"), None);
    assert_eq!(moved("src/keep/a", "other/b"), Some(Policy::Ask));
}

#[test]
fn a_pattern_that_cannot_be_read_is_refused() {
    for bad in ["", "()", "execute_command(", "execute_command()", "a b", "x(y) z"] {
        assert_eq!(bad.parse::<ToolPattern>().unwrap_err(), BadPattern { text: bad.to_owned() });
    }
    let pattern: ToolPattern = serde_json::from_value(json!("execute_command(a (b))")).unwrap();
    assert_eq!(serde_json::to_value(&pattern).unwrap(), json!("execute_command(a (b))"));
}

/// Nothing that a model can write makes the parser fail loudly or run on.
#[test]
fn odd_lines_are_judged_in_bounded_time() {
    let rules = rules(&[("execute_command(rm *)", Policy::Deny)]);
    let started = std::time::Instant::now();
    for odd in [
        "((((((((((((((((((((".repeat(50),
        "$(".repeat(2000),
        "`".repeat(3000),
        "a | ".repeat(5000),
        "\"".repeat(4001),
        "{a,b}".repeat(500),
        "$(".repeat(8),
        "(".repeat(8),
        "( $(".repeat(4),
        "$(' $(\" $(` $(".into(),
        "if ".repeat(500),
        "<<EOF ".repeat(200),
        "\u{0}\u{1}rm x".into(),
        "x".repeat(1 << 20),
    ] {
        command(&rules, &odd);
    }
    assert!(started.elapsed() < std::time::Duration::from_secs(5), "{:?}", started.elapsed());
}

/// B-90: what the system would open decides, not how it is spelled.
#[tokio::test]
async fn links_and_detours_are_judged_by_what_they_lead_to() {
    let temp = tempfile::TempDir::new().unwrap();
    std::fs::create_dir_all(temp.path().join("src")).unwrap();
    std::fs::write(temp.path().join(".env"), "key").unwrap();
    std::os::unix::fs::symlink("../.env", temp.path().join("src/innocent")).unwrap();
    std::os::unix::fs::symlink("/", temp.path().join("src/out")).unwrap();
    let files = crate::LocalFilesystem::open(temp.path()).unwrap();
    let rules = rules(&[("view(src/**)", Policy::Allow), ("view(.env)", Policy::Deny)]);
    let absolute = temp.path().join("src/a").display().to_string();
    for (path, policy) in [
        ("src/a", Some(Policy::Allow)),
        ("src/../src/./a", Some(Policy::Allow)),
        (absolute.as_str(), Some(Policy::Allow)),
        ("src/innocent", Some(Policy::Deny)),
        ("src/../.env", Some(Policy::Deny)),
        ("src/../other", None),
        ("src/out/etc/passwd", Some(Policy::Deny)),
        ("../x", Some(Policy::Deny)),
    ] {
        assert_eq!(rules.judge_in(&files, "view", &json!({ "path": path })).await, policy, "{path}");
    }
}

/// Random lines of everything that a shell knows: judged quickly, and never with a panic or an overflow of the stack.
#[test]
fn random_lines_are_judged_in_bounded_time() {
    const WORDS: [&str; 40] = [
        "rm",
        "x",
        "'",
        "\"",
        "`",
        "$(",
        ")",
        "(",
        "{ ",
        "}",
        ";",
        "&&",
        "||",
        "|",
        "&",
        "\n",
        " ",
        " ",
        "<",
        ">",
        "<<EOF\n",
        "<<<",
        "$x",
        "${x:-",
        "$((",
        "))",
        "[[",
        "]]",
        "if ",
        "then ",
        "fi",
        "for i in ",
        "do ",
        "done",
        "case x in ",
        "esac",
        "\\",
        "#",
        "!",
        "=",
    ];
    let rules = rules(&[("execute_command(rm *)", Policy::Deny), ("execute_command(x*)", Policy::Allow)]);
    // Among them are some at which the lexer itself panics.
    let mut state: u64 = 0x1545_F491_4F6C_DD1B;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    for _ in 0..3000 {
        let line: String = (0..next(60)).map(|_| WORDS[next(WORDS.len())]).collect();
        let started = std::time::Instant::now();
        command(&rules, &line);
        assert!(started.elapsed() < std::time::Duration::from_secs(3), "{:?} for {line:?}", started.elapsed());
    }
}
