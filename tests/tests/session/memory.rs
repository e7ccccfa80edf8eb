//! What people reported of long answers: each piece copies everything before it, and what is over stays in memory.

use std::sync::Arc;

use ac_core::{DisplayState, EventBody, display::DisplayPart};
use ac_testkit::Turn;

use crate::desk::{Desk, build_mode, is_end};

/// The streamed text of the view: its length, and where its beginning is in memory.
fn text(state: &DisplayState) -> Option<(usize, *const u8)> {
    match state.current_message.as_ref()?.parts.first()? {
        DisplayPart::Text(text) => Some((text.len(), text.pieces().next()?.as_ptr())),
        _ => None,
    }
}

/// B-123: the views of a long answer share its text, and there are far fewer of them than deltas.
#[tokio::test]
async fn the_views_of_a_long_answer_share_its_text() {
    const PIECES: usize = 20_000;
    let desk = Desk::new([Turn::chunks(vec!["x"; PIECES])]);
    let controller = desk.builder("").modes(build_mode()).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    let mut events = session.subscribe();
    let read = async {
        let mut views: Vec<Arc<DisplayState>> = vec![];
        let mut ended = false;
        while let Some(event) = events.next_event().await {
            match &event.body {
                EventBody::DisplayStateChanged { state } => views.push(state.clone()),
                body => ended |= is_end(body),
            }
            if ended && views.last().is_some_and(|view| !view.is_running) {
                break;
            }
        }
        views
    };
    let (sent, views) = tokio::join!(session.send_message("go"), read);
    sent.unwrap();
    assert!(views.len() < PIECES / 10, "{} views", views.len());
    let shown: Vec<_> = views.iter().filter_map(|view| text(view)).filter(|(len, _)| *len >= 8192).collect();
    assert_eq!(shown.last().unwrap().0, PIECES);
    assert!(shown.iter().all(|(_, begin)| *begin == shown[0].1), "the beginning of the text was copied");
    controller.shutdown().await;
}
