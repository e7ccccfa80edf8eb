//! The description of the routes, from the table that serves them.

use serde_json::{Map, Value, json};

use crate::{
    route::{ROUTES, Route},
    shape,
};

/// The OpenAPI document of a server whose routes begin with `prefix`.
pub fn document(prefix: &str) -> Value {
    let mut paths = Map::new();
    for route in ROUTES.iter().filter(|route| route.fixed.is_empty()) {
        let path = match route.path.strip_prefix("/-") {
            Some(outside) => outside.to_owned(),
            None => format!("{prefix}{}", route.path),
        };
        if let Value::Object(methods) = paths.entry(path).or_insert_with(|| json!({})) {
            methods.insert(route.method.as_str().to_ascii_lowercase(), operation(route));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "agent-controller",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Controllers and sessions of agents over HTTP, with their events as server-sent events.",
        },
        "paths": paths,
        "components": {
            "schemas": { "Error": error_schema() },
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer" },
                "apiKey": { "type": "apiKey", "in": "query", "name": "apiKey" },
            },
        },
        "security": [{ "bearer": [] }, { "apiKey": [] }],
    })
}

fn error_schema() -> Value {
    json!({
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": { "type": "string", "description": "What went wrong." },
            "code": { "type": "string", "description": "The same in one stable word." },
            "issues": {
                "type": "array",
                "items": { "type": "object", "properties": { "field": { "type": "string" }, "message": { "type": "string" } } },
            },
        },
    })
}

fn operation(route: &Route) -> Value {
    let mut parameters: Vec<_> = route
        .path
        .split('/')
        .filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string", "maxLength": shape::LONGEST_NAME } }))
        .collect();
    let scope = route.path.contains("{resourceId}").then_some("sessionScope");
    parameters.extend(
        route.query.iter().copied().chain(scope).map(|name| json!({ "name": name, "in": "query", "schema": { "type": "string" } })),
    );
    if route.operation.0 == "subscribe" {
        parameters.push(json!({ "name": "Last-Event-ID", "in": "header", "schema": { "type": "string" } }));
    }
    let error = json!({ "$ref": "#/components/schemas/Error" });
    let good = match route.operation.0 {
        "subscribe" => json!({ "description": "Events.", "content": { "text/event-stream": {} } }),
        "metrics" => json!({ "description": "Counters.", "content": { "text/plain": {} } }),
        _ => json!({ "description": "Done.", "content": { "application/json": {} } }),
    };
    let mut out = json!({
        "operationId": route.operation.0,
        "summary": route.about,
        "parameters": parameters,
        "responses": {
            "200": good,
            "4XX": { "description": "Refused; nothing was changed.", "content": { "application/json": { "schema": error } } },
            "5XX": { "description": "Failed; may be tried again.", "content": { "application/json": { "schema": error } } },
        },
    });
    if let Value::Object(fields) = &mut out {
        if let Some(body) = route.body.filter(|body| !body.is_empty()) {
            let required = body.iter().any(|field| field.required);
            let content = json!({ "application/json": { "schema": shape::schema(body) } });
            fields.insert("requestBody".into(), json!({ "required": required, "content": content }));
        }
        if route.public {
            fields.insert("security".into(), json!([]));
        }
    }
    out
}
