//! The diagram is complete, and every move in it is made by the table tests.

use std::collections::BTreeSet;

use ac_engine::transitions::TRANSITIONS;

use crate::{support::MOVES, table};

#[test]
fn the_table_tests_make_every_move_of_the_diagram_and_no_other() {
    MOVES.with_borrow_mut(BTreeSet::clear);
    table::every_cell_of_the_run_for_inputs_that_anybody_may_commit();
    table::every_cell_of_the_run_for_reports_and_answers();
    table::every_kind_of_answer_of_the_model();
    table::every_verdict_on_the_last_word();
    table::a_last_word_is_judged();
    table::every_cell_of_the_last_call_for_reports();
    table::every_cell_of_the_last_call_for_answers();
    table::every_cell_of_a_call_for_answers();
    table::every_cell_of_a_call_for_reports();
    table::every_cell_of_a_call_for_everything_else();
    table::recovery_runs_again_what_may_run_again_and_asks_about_the_rest();
    let made = MOVES.take();
    let drawn: BTreeSet<_> = TRANSITIONS.iter().copied().collect();
    assert_eq!(drawn.len(), TRANSITIONS.len(), "a move is drawn twice");
    let show = |moves: Vec<&(_, &str, _)>| moves.iter().map(|m| format!("{m:?}")).collect::<Vec<_>>().join("\n");
    assert_eq!(show(made.difference(&drawn).collect()), "", "made and not drawn");
    assert_eq!(show(drawn.difference(&made).collect()), "", "drawn and not made");
}

/// The page shows the diagram of this code. `UPDATE_DOCS=1` writes it anew.
#[test]
fn the_page_shows_this_diagram() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/run-machine.md");
    let Ok(page) = std::fs::read_to_string(&path) else {
        println!("skipped: there are no docs beside this crate");
        return;
    };
    let (begin, end) = ("<!-- diagram: made by ac_engine::diagram() -->\n", "<!-- end of diagram -->");
    let (before, rest) = page.split_once(begin).expect("the page marks where the diagram begins");
    let (shown, after) = rest.split_once(end).expect("the page marks where the diagram ends");
    let fresh = ac_engine::diagram();
    if shown != fresh && std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{before}{begin}{fresh}{end}{after}")).unwrap();
        return;
    }
    assert_eq!(shown, fresh, "docs/run-machine.md is old: run this test with UPDATE_DOCS=1");
}
