//! The table of routes: what is served, checked and described comes from here.

use std::{future::Future, pin::Pin, sync::Arc};

use axum::{
    Router,
    extract::Request,
    routing::{MethodFilter, on},
};

use crate::{
    call::{self, Call, Reply},
    console,
    failure::{Failure, Issue},
    handlers::{answers, controllers, goals, own, permissions, sessions, system, talk, threads},
    query::{MessageList, Query, ThreadList},
    server::App,
    shape::{Field, Kind, may, need},
    stream, webhook,
};

/// What a route answers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    Post,
    Put,
    Delete,
}

impl Verb {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
        }
    }
}

/// One route.
#[derive(Clone, Copy)]
pub(crate) struct Route {
    pub(crate) method: Verb,
    pub(crate) path: &'static str,
    pub(crate) operation: Operation,
    pub(crate) about: &'static str,
    /// Query parameters, for the description.
    pub(crate) query: &'static [&'static str],
    pub(crate) check_query: Option<CheckQuery>,
    /// `Some` where a body is read.
    pub(crate) body: Option<&'static [Field]>,
    /// Without a token.
    pub(crate) public: bool,
    /// Parameters that the path has already decided.
    pub(crate) fixed: &'static [(&'static str, &'static str)],
    pub(crate) run: Run,
}

/// What of a query does not fit.
pub(crate) type CheckQuery = fn(&Query) -> Result<(), Vec<Issue>>;

pub(crate) type Run = fn(Call) -> Pin<Box<dyn Future<Output = Result<Reply, Failure>> + Send>>;

/// The name of an operation, in the description.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation(pub(crate) &'static str);

impl Operation {
    /// What it is in OpenTelemetry's words for generative AI, if it is anything there.
    pub(crate) fn filter_gen_ai(self) -> Option<&'static str> {
        match self.0 {
            "createSession" => Some("create_agent"),
            "sendMessage" | "steer" | "followUp" | "approveTool" | "respondToToolSuspension" | "answerPending" | "sendNotification" => {
                Some("invoke_agent")
            }
            _ => None,
        }
    }
}

/// An async function as an entry of the table.
macro_rules! run {
    ($handler:path) => {
        |call| Box::pin($handler(call))
    };
}

impl Route {
    const fn new(method: Verb, path: &'static str, operation: &'static str, about: &'static str, run: Run) -> Self {
        let operation = Operation(operation);
        Self { method, path, operation, about, query: &[], check_query: None, body: None, public: false, fixed: &[], run }
    }

    const fn get(path: &'static str, operation: &'static str, about: &'static str, run: Run) -> Self {
        Self::new(Verb::Get, path, operation, about, run)
    }

    const fn post(path: &'static str, operation: &'static str, about: &'static str, body: &'static [Field], run: Run) -> Self {
        let mut route = Self::new(Verb::Post, path, operation, about, run);
        route.body = Some(body);
        route
    }

    const fn put(path: &'static str, operation: &'static str, about: &'static str, body: &'static [Field], run: Run) -> Self {
        let mut route = Self::new(Verb::Put, path, operation, about, run);
        route.body = Some(body);
        route
    }

    const fn delete(path: &'static str, operation: &'static str, about: &'static str, run: Run) -> Self {
        Self::new(Verb::Delete, path, operation, about, run)
    }

    const fn query(self, query: &'static [&'static str]) -> Self {
        Self { query, ..self }
    }

    const fn checked(self, check: CheckQuery) -> Self {
        Self { check_query: Some(check), ..self }
    }

    const fn public(self) -> Self {
        Self { public: true, ..self }
    }

    const fn fixed(self, fixed: &'static [(&'static str, &'static str)]) -> Self {
        Self { fixed, ..self }
    }
}

/// What a path begins with that addresses a session.
macro_rules! s {
    ($rest:literal) => {
        concat!("/agent-controller/{controllerId}/sessions/{resourceId}", $rest)
    };
}

const MESSAGE: &[Field] = &[need("message", Kind::Text), may("files", Kind::Files), may("requestContext", Kind::Record)];
const SAY: &[Field] = &[need("message", Kind::Text), may("requestContext", Kind::Record)];
const POLICY: Kind = Kind::OneOf(&["allow", "ask", "deny"]);
const CATEGORY: Kind = Kind::OneOf(&["read", "edit", "execute", "mcp", "other"]);

/// All of them. Paths that begin with `/-` are outside of the prefix.
pub(crate) static ROUTES: &[Route] = &[
    Route::get("/agent-controller", "listAgentControllers", "The controllers of this server.", run!(controllers::list)),
    Route::get("/agent-controller/{controllerId}/modes", "listModes", "The modes of a controller.", run!(controllers::modes)),
    Route::get(
        "/agent-controller/{controllerId}/models",
        "listModels",
        "The models that may be chosen; `all=1` tells more about each.",
        run!(controllers::models),
    )
    .query(&["all"]),
    Route::get("/agent-controller/{controllerId}/active-runs", "listActiveRuns", "Runs that are not over.", run!(controllers::active_runs)),
    Route::get(
        "/agent-controller/{controllerId}/workspace",
        "workspaceStatus",
        "Whether there is a workspace.",
        run!(controllers::workspace),
    ),
    Route::post(
        "/agent-controller/{controllerId}/sessions",
        "createSession",
        "Gets or makes a session, and binds it to a thread.",
        &[need("resourceId", Kind::Name), may("tags", Kind::TextRecord), may("threadId", Kind::Name), may("sessionScope", Kind::Name)],
        run!(sessions::create),
    ),
    Route::get(s!(""), "getState", "Mode, model, thread and settings of a session.", run!(sessions::state)).query(&["threadId"]),
    Route::get(
        s!("/stream"),
        "subscribe",
        "The events of a session, as server-sent events; `events=all` adds those that only this server has.",
        run!(stream::open),
    )
    .query(&["events"]),
    Route::post(s!("/messages"), "sendMessage", "Says something; the reply comes as events.", MESSAGE, run!(talk::message)),
    Route::post(s!("/steer"), "steer", "Stops what the session does and goes on with this.", SAY, run!(talk::steer)),
    Route::post(s!("/follow-up"), "followUp", "Says something after what is under way.", SAY, run!(talk::follow_up)),
    Route::post(s!("/abort"), "abort", "Stops what the session does.", &[], run!(talk::abort)),
    Route::post(
        s!("/tool-approval"),
        "approveTool",
        "Allows or refuses a call. `x-ac-outcome` says what came of it.",
        &[need("toolCallId", Kind::Name), need("approved", Kind::Flag), may("requestContext", Kind::Record)],
        run!(answers::approval),
    ),
    Route::post(
        s!("/tool-suspension"),
        "respondToToolSuspension",
        "Answers a question or decides a plan. `x-ac-outcome` says what came of it.",
        &[need("toolCallId", Kind::Name), need("resumeData", Kind::Any), may("requestContext", Kind::Record)],
        run!(answers::suspension),
    ),
    Route::post(s!("/mode"), "switchMode", "Moves the session to a mode.", &[need("modeId", Kind::Name)], run!(sessions::mode)),
    Route::post(
        s!("/model"),
        "switchModel",
        "Chooses a model.",
        &[need("modelId", Kind::Name), may("scope", Kind::OneOf(&["global", "thread"])), may("modeId", Kind::Name)],
        run!(sessions::model),
    ),
    Route::post(s!("/thread"), "switchThread", "Moves the session to a thread.", &[need("threadId", Kind::Name)], run!(threads::switch)),
    Route::get(s!("/threads"), "listThreads", "Threads of the resource, newest first.", run!(threads::list))
        .query(&["all", "limit", "tags"])
        .checked(|query| ThreadList::read(query).map(drop)),
    Route::post(s!("/threads"), "createThread", "Makes a thread and moves to it.", &[may("title", Kind::Name)], run!(threads::create)),
    Route::post(
        s!("/threads/clone"),
        "cloneThread",
        "Copies a thread and moves to the copy.",
        &[may("sourceThreadId", Kind::Name), may("title", Kind::Name)],
        run!(threads::copy),
    ),
    Route::put(s!("/threads/{threadId}"), "renameThread", "Names a thread.", &[need("title", Kind::Name)], run!(threads::rename)),
    Route::delete(s!("/threads/{threadId}"), "deleteThread", "Deletes a thread with everything in it.", run!(threads::delete)),
    // A thread may be called so.
    Route::put(s!("/threads/clone"), "renameThreadClone", "Names the thread `clone`.", &[need("title", Kind::Name)], run!(threads::rename))
        .fixed(&[("threadId", "clone")]),
    Route::delete(s!("/threads/clone"), "deleteThreadClone", "Deletes the thread `clone`.", run!(threads::delete))
        .fixed(&[("threadId", "clone")]),
    Route::get(s!("/threads/{threadId}/messages"), "listMessages", "Messages of a thread, by pages.", run!(threads::messages))
        .query(&["page", "perPage", "orderBy", "filter", "include", "limit"])
        .checked(|query| MessageList::read(query).map(drop)),
    Route::post(
        s!("/notifications"),
        "sendNotification",
        "Tells the model of a thread what happened elsewhere, by its urgency now, later or in a summary.",
        &[
            need("source", Kind::Name),
            need("kind", Kind::Name),
            need("summary", Kind::Text),
            may("priority", Kind::OneOf(&["low", "medium", "high", "urgent"])),
            may("payload", Kind::Any),
            may("sourceId", Kind::Name),
            may("dedupeKey", Kind::Name),
            may("coalesceKey", Kind::Name),
            may("attributes", Kind::Record),
            may("metadata", Kind::Record),
        ],
        run!(goals::notify),
    ),
    Route::get(s!("/goal"), "getGoal", "The goal of the thread.", run!(goals::get)),
    Route::post(
        s!("/goal"),
        "setGoal",
        "Sets the goal of the thread.",
        &[need("objective", Kind::Filled), may("judgeModelId", Kind::Name), may("maxRuns", Kind::Count(1))],
        run!(goals::set),
    ),
    Route::put(
        s!("/goal"),
        "updateGoal",
        "Changes the goal of the thread.",
        &[may("judgeModelId", Kind::Name), may("maxRuns", Kind::Count(1)), may("status", Kind::OneOf(&["active", "paused", "done"]))],
        run!(goals::update),
    ),
    Route::delete(s!("/goal"), "clearGoal", "Takes the goal of the thread away.", run!(goals::clear)),
    Route::get(s!("/om"), "getOMRecord", "The record of observational memory, which this server does not have.", run!(sessions::memory)),
    Route::post(
        s!("/resource"),
        "setResourceId",
        "Goes on as a session of another resource.",
        &[need("newResourceId", Kind::Name)],
        run!(sessions::set_resource),
    ),
    Route::get(s!("/resources"), "getResourceIds", "The resources that who asks may use.", run!(sessions::resources)),
    Route::get(s!("/permissions"), "getPermissions", "The rules that were laid down.", run!(permissions::get)),
    Route::put(
        s!("/permissions/category"),
        "setPermissionForCategory",
        "Lays down what happens to a category of tools.",
        &[need("category", CATEGORY), need("policy", POLICY)],
        run!(permissions::set_category),
    ),
    Route::put(
        s!("/permissions/tool"),
        "setPermissionForTool",
        "Lays down what happens to a tool.",
        &[need("toolName", Kind::Name), need("policy", POLICY)],
        run!(permissions::set_tool),
    ),
    Route::put(s!("/state"), "setState", "Sets keys of the session's state.", &[need("state", Kind::Record)], run!(sessions::set_state)),
    // Ours.
    Route::get(s!("/pending"), "listPending", "Everything that waits for a person.", run!(own::pending)).query(&["all"]),
    Route::post(
        s!("/pending/{pendingId}"),
        "answerPending",
        "Answers a wait: 200, 409 where it is too late, 422 where the answer does not fit.",
        &[
            need("action", Kind::OneOf(&["approve", "decline", "reply", "run_again", "record_failed"])),
            may("always", Kind::OneOf(&["tool", "category"])),
            may("reason", Kind::Text),
            may("value", Kind::Any),
            may("requestContext", Kind::Record),
        ],
        run!(own::answer),
    ),
    Route::get(s!("/queue"), "listQueue", "What waits for its turn.", run!(own::queue)),
    Route::put(s!("/queue"), "reorderQueue", "Puts follow-ups in this order.", &[need("order", Kind::Names)], run!(own::reorder)),
    Route::delete(s!("/queue/{messageId}"), "removeQueued", "Takes back what waits.", run!(own::remove)),
    Route::get(s!("/grants"), "listGrants", "What was allowed for longer than once.", run!(own::grants)),
    Route::post(
        s!("/grants"),
        "grant",
        "Allows a tool or a category for the session.",
        &[may("toolName", Kind::Name), may("category", CATEGORY)],
        run!(own::grant),
    ),
    Route::delete(s!("/grants/{grantId}"), "revokeGrant", "Takes a grant back.", run!(own::revoke)),
    Route::post(
        s!("/threads/{threadId}/branch"),
        "branchThread",
        "Copies a thread up to a message, without it, and moves to the copy.",
        &[need("until", Kind::Name), may("title", Kind::Name)],
        run!(own::branch),
    ),
    Route::post(s!("/inject"), "inject", "Puts a message before the model at the next step, and declines nothing.", SAY, run!(own::inject)),
    // Outside of the prefix.
    Route::get("/-/health", "health", "Whether the process answers.", run!(system::health)).public(),
    Route::get("/-/ready", "ready", "Whether the stores answer.", run!(system::ready)).public(),
    Route::get("/-/metrics", "metrics", "Counters, in Prometheus' text form.", run!(system::metrics)),
    Route::get("/-/openapi.json", "openapi", "This description.", run!(system::description)).public(),
];

/// The whole table as an axum router.
pub(crate) fn router(app: &Arc<App>) -> Router {
    let page = if app.console { console::routes(app) } else { Router::new() };
    let mut router = webhook::mount(app, page);
    for route in ROUTES {
        let path = match route.path.strip_prefix("/-") {
            Some(outside) => outside.to_owned(),
            None => format!("{}{}", app.prefix, route.path),
        };
        let filter = match route.method {
            Verb::Post => MethodFilter::POST,
            Verb::Put => MethodFilter::PUT,
            Verb::Delete => MethodFilter::DELETE,
            Verb::Get => MethodFilter::GET,
        };
        let app = app.clone();
        router = router.route(
            &path,
            on(filter, move |request: Request| {
                let app = app.clone();
                async move { call::answer(app, route, request).await }
            }),
        );
    }
    let unknown = || async { call::refuse(&Failure::no_route()) };
    router.fallback(unknown).method_not_allowed_fallback(unknown)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_operation_has_a_name_of_its_own() {
        let names: BTreeSet<_> = ROUTES.iter().map(|route| route.operation.0).collect();
        assert_eq!(names.len(), ROUTES.len());
        let places: BTreeSet<_> = ROUTES.iter().map(|route| (route.method.as_str(), route.path)).collect();
        assert_eq!(places.len(), ROUTES.len());
    }
}
