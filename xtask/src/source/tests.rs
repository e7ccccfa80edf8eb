use super::{SourceFile, code, without_tests};

#[test]
fn comments_and_literals_are_no_code() {
    let text = "let a = \"x // y\"; // z\nlet b = r#\"q\"q\"#; /* /* n */ m */ let c = '\"'; let d: &'a str = b\"e\\\"f\"; r#type";
    let left = code(text);
    for gone in ["x //", "z", "q", "n", "m", "f\\"] {
        assert!(!left.contains(gone), "{gone} is left in {left}");
    }
    for kept in ["let a", "let b", "let c", "let d: &'a str = b", "r#type"] {
        assert!(left.contains(kept), "{kept} is gone from {left}");
    }
    assert_eq!(left.lines().count(), 2);
    assert_eq!(left.chars().count(), text.chars().count());
}

#[test]
fn a_char_that_looks_like_a_quote_does_not_open_a_string() {
    assert!(code("if c == '\"' { TAIL }").contains("TAIL"));
    assert!(code(r"if c == '\'' { TAIL }").contains("TAIL"));
    assert!(code("fn f<'a>(x: &'a str) -> &'a str { TAIL }").contains("TAIL"));
}

#[test]
fn an_inline_test_module_is_left_out() {
    assert_eq!(without_tests("a\n#[cfg(test)]\nmod tests {\nb\n}\n"), "a\n");
    assert_eq!(without_tests("a\n#[cfg(test)]\nmod tests;\n"), "a\n#[cfg(test)]\nmod tests;\n");
    assert_eq!(without_tests("a\n#[cfg(test)]\nuse b;\nc\n"), "a\n#[cfg(test)]\nuse b;\nc\n");
}

#[test]
fn test_files_are_told_from_others() {
    let file = |path: &str| SourceFile { path: path.to_owned(), ..SourceFile::default() };
    assert!(file("crates/ac-core/src/id/tests.rs").is_test());
    assert!(file("crates/ac-core/tests/a.rs").is_test());
    assert!(file("crates/ac-core/tests/golden/a.rs").is_test());
    assert!(!file("crates/ac-core/src/id.rs").is_test());
    assert_eq!(file("crates/ac-core/src/id.rs").member(), "ac-core");
    assert_eq!(file("xtask/src/main.rs").member(), "xtask");
}
