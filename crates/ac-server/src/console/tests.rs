use std::collections::BTreeSet;

use super::*;

fn text(asset: &Asset) -> &'static str {
    std::str::from_utf8(asset.bytes).unwrap()
}

/// Values of an attribute, wherever it stands.
fn values<'a>(html: &'a str, name: &str) -> Vec<&'a str> {
    html.split(&format!(" {name}=\"")).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

#[test]
fn the_page_refers_to_files_that_are_served_and_to_nothing_else() {
    let served: BTreeSet<&str> = ASSETS.iter().map(|asset| asset.path.trim_start_matches('/')).collect();
    let named = values(PAGE, "src").into_iter().chain(values(PAGE, "href")).filter(|target| !target.starts_with('#'));
    for target in named {
        assert!(served.contains(target), "{target}");
    }
    for asset in ASSETS.iter().filter(|asset| asset.kind == JS) {
        let folder = asset.path.rsplit_once('/').unwrap().0.trim_start_matches('/');
        let imports = text(asset).lines().filter(|line| line.starts_with("import ")).filter_map(|line| line.split(" from \"").nth(1));
        for target in imports.filter_map(|rest| rest.split('"').next()) {
            let path = format!("{folder}/{}", target.trim_start_matches("./"));
            assert!(served.contains(path.as_str()), "{} imports {target}", asset.path);
        }
    }
}

#[test]
fn nothing_on_the_page_is_inline_and_nothing_makes_markup_of_text() {
    assert!(!PAGE.contains("<style") && !PAGE.contains(" style=") && !PAGE.contains("javascript:"));
    for script in PAGE.split("<script").skip(1) {
        assert!(script.split_once('>').is_some_and(|(head, rest)| head.contains(" src=") && rest.starts_with("</script>")), "{script}");
    }
    let handler = PAGE.split_whitespace().find(|word| word.starts_with("on") && word.contains('='));
    assert_eq!(handler, None);
    let own = ASSETS.iter().filter(|asset| asset.kind == JS && !asset.path.contains("/vendor/"));
    for asset in own {
        for word in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "DOMParser", "srcdoc"] {
            assert!(!text(asset).contains(word), "{}: {word}", asset.path);
        }
    }
}

#[test]
fn a_prefix_cannot_break_out_of_its_attribute() {
    assert_eq!(attribute("/a\"><script>"), "/a&quot;&gt;&lt;script&gt;");
    assert_eq!(PAGE.matches("{{prefix}}").count(), 1);
}

#[test]
fn a_file_that_a_browser_has_is_not_sent_again() {
    let tag = tag(b"x");
    let ask = |value: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(header::IF_NONE_MATCH, value.parse().unwrap());
        is_known(&headers, &tag)
    };
    let own = tag.to_str().unwrap();
    assert!(ask(own) && ask(&format!("\"other\", W/{own}")) && ask("*"));
    assert!(!ask("\"other\"") && !is_known(&HeaderMap::new(), &tag));
    assert_ne!(tag, super::tag(b"y"));
}
