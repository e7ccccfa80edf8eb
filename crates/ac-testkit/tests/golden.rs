//! The scripts of the golden scenarios are scripts of this kit.

use ac_testkit::Turn;
use serde_json::Value;

#[test]
fn every_golden_script_is_read_without_loss() {
    let Some(folder) = ac_testkit::shared::data("cases/golden") else { return println!("skipped: no shared data") };
    let mut read = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if !path.to_string_lossy().ends_with(".scenario.json") {
            continue;
        }
        let scenario: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        for turn in scenario["turns"].as_array().into_iter().flatten() {
            let kept = serde_json::to_value(serde_json::from_value::<Turn>(turn.clone()).unwrap()).unwrap();
            for (key, value) in turn.as_object().unwrap() {
                assert!(contains(&kept[key], value), "{}: `{key}` became {}", path.display(), kept[key]);
            }
            read += 1;
        }
    }
    assert!(read > 0, "no turn in the golden scenarios");
}

/// Whether all of `part` stands in `whole`, which may have more fields.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => part.iter().all(|(key, value)| whole.get(key).is_some_and(|of| contains(of, value))),
        (Value::Array(whole), Value::Array(part)) => whole.len() == part.len() && whole.iter().zip(part).all(|(a, b)| contains(a, b)),
        _ => whole == part,
    }
}
