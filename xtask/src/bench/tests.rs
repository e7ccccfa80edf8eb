use std::time::{Duration, SystemTime};

use super::{Limit, date, figures, markdown, over, plot, read};

const PRINTED: &str = "{\"name\":\"turn\",\"value\":0.99,\"unit\":\"ms\",\"n\":30,\"cpu_ms\":4.0,\"rss_kb\":9}\n\
                       a line of another program\n\
                       {\"name\":\"turn\",\"value\":2.5,\"unit\":\"ms\",\"n\":300,\"cpu_ms\":4.0,\"rss_kb\":9}\n";

fn limits() -> Vec<Limit> {
    vec![Limit { name: "turn".to_owned(), limit: 2.0, what: "a turn".to_owned() }]
}

#[test]
fn a_figure_stands_at_its_size_and_at_a_tenth() {
    let found = figures(&read(PRINTED).unwrap(), &limits()).unwrap();
    let table = markdown("1 December 2026", &found);
    assert!(table.contains("| `turn` | a turn | 2 ms | 300 | **2.50 ms** | 0.99 ms |"), "{table}");
    assert_eq!(over(&found), ["turn: 2.50 ms, 2 ms are allowed"]);
    let drawn = plot::draw(&found);
    assert!(drawn.contains("2.50 ms of 2 ms") && drawn.matches("class=\"over\"").count() == 2, "{drawn}");
}

#[test]
fn a_limit_holds_at_a_tenth_of_the_size_too() {
    let printed = PRINTED.replace("0.99", "2.01").replace("2.5,", "1.5,");
    assert_eq!(over(&figures(&read(&printed).unwrap(), &limits()).unwrap()), ["turn at a tenth: 2.01 ms, 2 ms are allowed"]);
}

#[test]
fn what_was_not_measured_is_told_and_not_left_out() {
    let mut limits = limits();
    limits.push(Limit { name: "soak".to_owned(), limit: 1.0, what: String::new() });
    assert_eq!(figures(&read(PRINTED).unwrap(), &limits).unwrap_err().to_string(), "`soak` was not measured");
    let strange = PRINTED.replace("\"ms\"", "\"h\"");
    assert!(figures(&read(&strange).unwrap(), &self::limits()).is_err());
}

#[test]
fn a_date_is_written_out() {
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_796_083_200);
    assert_eq!(date(at).unwrap(), "1 December 2026");
}
