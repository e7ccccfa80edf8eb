use super::{Deny, Package, judge, satisfied};

fn deny() -> Deny {
    toml::from_str(
        r#"
        [licenses]
        allow = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"]
        exceptions = [{ crate = "odd", allow = ["CC0-1.0"] }]
        [bans]
        deny = [{ crate = "openssl-sys", reason = "rustls" }, { crate = "chrono", reason = "jiff", wrappers = ["sdk"] }]
        "#,
    )
    .unwrap()
}

fn package(name: &str, licence: Option<&str>) -> Package {
    let source = Some("registry+https://example.invalid/index".to_owned());
    Package { name: name.to_owned(), licence: licence.map(str::to_owned), source, ..Package::default() }
}

#[test]
fn an_expression_is_read_by_its_grammar() {
    let allowed = |licence: &str| matches!(licence, "MIT" | "Apache-2.0" | "Apache-2.0 WITH LLVM-exception");
    for good in [
        "MIT",
        "GPL-3.0 OR MIT",
        "MIT/Apache-2.0",
        "(GPL-3.0 OR MIT) AND Apache-2.0",
        "Apache-2.0 WITH LLVM-exception",
        "MIT AND (Apache-2.0)",
    ] {
        assert!(satisfied(good, &allowed), "{good}");
    }
    for bad in ["GPL-3.0", "MIT AND GPL-3.0", "(MIT OR GPL-3.0) AND GPL-3.0", "GPL-3.0 WITH LLVM-exception", "", "MIT GPL-3.0"] {
        assert!(!satisfied(bad, &allowed), "{bad}");
    }
}

#[test]
fn a_package_that_is_not_allowed_is_found() {
    let packages = [
        package("fine", Some("MIT OR Apache-2.0")),
        package("odd", Some("CC0-1.0")),
        package("other", Some("CC0-1.0")),
        package("silent", None),
        package("openssl-sys", Some("MIT")),
        Package { source: Some("git+https://example.invalid/x".to_owned()), ..package("forked", Some("MIT")) },
        Package { source: None, ..package("ours", Some("MIT")) },
    ];
    assert_eq!(
        judge(&deny(), &packages),
        [
            "other: `CC0-1.0` is not allowed in deny.toml",
            "silent names no licence",
            "openssl-sys is banned in deny.toml",
            "forked comes from git+https://example.invalid/x, not from the registry",
        ]
    );
}

#[test]
fn a_banned_package_is_left_to_its_wrapper_and_to_nobody_else() {
    let chrono = |dependents: &[&str]| Package {
        dependents: dependents.iter().map(|name| (*name).to_owned()).collect(),
        ..package("chrono", Some("MIT"))
    };
    assert_eq!(judge(&deny(), &[chrono(&["sdk"])]), Vec::<String>::new());
    assert_eq!(judge(&deny(), &[chrono(&["ours", "sdk"])]), ["chrono is banned in deny.toml for ours"]);
}
