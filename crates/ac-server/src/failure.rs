use ac_controller::{ControllerError, ControllerErrorKind};
use ac_core::ErrorInfo;
use ac_storage::StorageErrorKind;
use http::StatusCode;
use serde_json::{Value, json};

/// A request that was refused, as it is answered (WIRE 1.4): `{error, code}`, or with the issues of a schema.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    message: String,
    issues: Vec<Issue>,
    /// Seconds after which trying again makes sense.
    pub(crate) retry_after: Option<u64>,
}

/// One thing that does not fit a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Issue {
    /// The dotted path, or `root`.
    pub(crate) field: String,
    /// What is wrong with it.
    pub(crate) message: String,
}

impl Issue {
    pub(crate) fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

impl Failure {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), issues: vec![], retry_after: None }
    }

    /// Trying again makes sense after so many seconds.
    pub(crate) fn after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    pub(crate) fn not_found(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, message)
    }

    /// No such route, or not with this method (Q13).
    pub(crate) fn no_route() -> Self {
        Self::not_found("route.not_found", "Not found")
    }

    /// A resource of somebody else, whatever there is of it.
    pub(crate) fn no_resource() -> Self {
        Self::not_found("resource.not_found", "no such resource")
    }

    pub(crate) fn body(issues: Vec<Issue>) -> Self {
        Self { issues, ..Self::new(StatusCode::BAD_REQUEST, "request.body", "Invalid request body") }
    }

    pub(crate) fn query(issues: Vec<Issue>) -> Self {
        Self { issues, ..Self::new(StatusCode::BAD_REQUEST, "request.query", "Invalid query parameters") }
    }

    pub(crate) fn path(field: &str, message: &str) -> Self {
        Self { issues: vec![Issue::new(field, message)], ..Self::new(StatusCode::BAD_REQUEST, "request.path", "Invalid path parameters") }
    }

    pub(crate) fn too_large() -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "request.too_large", "Request body too large")
    }

    pub(crate) fn forbidden(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, code, message)
    }

    /// What the client reads.
    pub(crate) fn to_json(&self) -> Value {
        let mut out = json!({ "error": self.message, "code": self.code });
        if !self.issues.is_empty()
            && let Value::Object(fields) = &mut out
        {
            let issues = self.issues.iter().map(|issue| json!({ "field": issue.field, "message": issue.message })).collect();
            fields.insert("issues".into(), issues);
        }
        out
    }
}

/// A status of 500 and above makes the client repeat the request, whatever it was: only what may succeed untouched gets one.
impl From<ControllerError> for Failure {
    fn from(error: ControllerError) -> Self {
        use ControllerErrorKind as K;
        let status = match error.kind() {
            K::ModeNotFound | K::ThreadNotFound | K::QueueItemNotFound | K::GrantNotFound | K::NotPending | K::MessageNotFound
            // A thread that was deleted in the middle of it.
            | K::Storage(StorageErrorKind::Deleted) => StatusCode::NOT_FOUND,
            K::ThreadExists | K::AlreadyResolved | K::Ambiguous | K::Aborting | K::SessionDeleted | K::Storage(StorageErrorKind::Exists) => {
 StatusCode::CONFLICT }
            K::ProtectedState => StatusCode::FORBIDDEN,
            K::InvalidAnswer => StatusCode::UNPROCESSABLE_ENTITY,
            K::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            K::EmptyMessage
            | K::NoModel
            | K::InvalidState
            | K::NoThread
            | K::InvalidGoal
            | K::InvalidNotification
            | K::InvalidRule
            | K::NothingToName => StatusCode::BAD_REQUEST,
            K::Contended
            | K::ModelsUnavailable
            | K::Closed
            | K::Storage(
                StorageErrorKind::Unavailable | StorageErrorKind::Conflict | StorageErrorKind::Unknown | StorageErrorKind::Locked,
            ) => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        // What the store says may name files of this machine.
        let message = match error.kind() {
            K::Storage(_) | K::Run(_) if status.is_server_error() => {
                tracing::error!(code = error.code(), %error, "a request failed");
                format!("the server could not do this ({}); its log says why", error.code())
            }
            _ => error.to_string(),
        };
        Self { retry_after: (status == StatusCode::SERVICE_UNAVAILABLE).then_some(1), ..Self::new(status, error.code(), message) }
    }
}

impl From<&Failure> for ErrorInfo {
    fn from(failure: &Failure) -> Self {
        Self::new(failure.code, failure.message.clone())
    }
}
