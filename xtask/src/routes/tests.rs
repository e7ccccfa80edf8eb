use super::{refusals, table};
use crate::source::SourceFile;

#[test]
fn a_route_has_its_parameters_its_body_and_its_answer() {
    let document = r##"{ "paths": {
        "/health": { "get": { "summary": "Alive.", "responses": { "200": { "content": { "application/json": {} } }, "4XX": {} } } },
        "/api/agent-controller/{controllerId}/sessions/{resourceId}/mode": { "post": {
            "summary": "Moves.",
            "parameters": [{ "name": "all", "in": "query" }, { "name": "sessionScope", "in": "query" }, { "name": "resourceId", "in": "path" }],
            "requestBody": { "content": { "application/json": { "schema": { "required": ["to"], "properties": {
                "by": { "enum": ["a", "b"] }, "to": { "type": "string" }, "n": { "type": "integer" } } } } } },
            "responses": { "200": { "content": { "text/plain": {} } } } } } } }"##;
    let out = table(document).unwrap();
    assert!(out.contains("| `GET /health` |  | 200 `application/json` | Alive. |"), "{out}");
    let row = "| `POST …/mode` | `?all=`; `to`, `by?` (`a`, `b`), `n?` (integer) | 200 `text/plain` | Moves. |";
    assert!(out.contains(row), "{out}");
}

#[test]
fn codes_stand_beside_their_status() {
    let file = |path: &str, text: &str| SourceFile { path: path.to_owned(), text: text.to_owned() };
    let files = [
        file(
            "crates/ac-server/src/failure.rs",
            "Self::not_found(\"route.gone\", \"x\"); Self::new(StatusCode::CONFLICT, \"a.late\", message);\n\
             let status = match error.kind() { K::ModeNotFound | K::Storage(StorageErrorKind::Locked | StorageErrorKind::Full)\n\
             => { StatusCode::NOT_FOUND } K::Aborting => StatusCode::CONFLICT, _ => StatusCode::INTERNAL_SERVER_ERROR, };",
        ),
        file(
            "crates/ac-controller/src/error.rs",
            "pub enum ControllerErrorKind {\n    /// Not there.\n    ModeNotFound,\n    /// Stopped.\n    Aborting,\n}\n    K::ModeNotFound => \"mode.not_found\",\n    K::Aborting => \"a.stopped\",\n",
        ),
        file("crates/ac-storage/src/error.rs", "StorageErrorKind::Locked => \"storage.locked\",\n"),
    ];
    let out = refusals(&files).unwrap();
    assert!(out.contains("| 404 | `mode.not_found`, `route.gone`, `storage.locked` |\n| 409 | `a.late`, `a.stopped` |"), "{out}");
    let strange = [file("crates/ac-server/src/x.rs", "Failure::new(StatusCode::IM_A_TEAPOT, \"a.b\", m)")];
    assert!(refusals(&strange).is_err());
}
