use ac_controller::is_reserved_context_key;
use ac_core::{MessageId, ThreadId, Timestamp};
use base64::Engine as _;
use serde_json::{Map, Value};

use crate::{failure::Issue, shape::expected};

/// The query of a request: the first value of each name counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn read(raw: Option<&str>) -> Self {
        Self(form_urlencoded::parse(raw.unwrap_or_default().as_bytes()).into_owned().collect())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Whether a switch is on.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value == "1" || value == "true")
    }

    /// `?requestContext=`: JSON, or base64 of JSON.
    fn context(&self) -> Map<String, Value> {
        let Some(text) = self.get("requestContext") else { return Map::new() };
        let plain = serde_json::from_str(text).ok();
        let decoded = || serde_json::from_slice(&base64::engine::general_purpose::STANDARD.decode(text).ok()?).ok();
        match plain.or_else(decoded) {
            Some(Value::Object(map)) => map,
            _ => Map::new(),
        }
    }
}

/// What came with the request for the tools of the run: the query's keys win over the body's. `None` when nothing came.
pub(crate) fn request_context(query: &Query, body: &Map<String, Value>) -> Option<Map<String, Value>> {
    let mut context = match body.get("requestContext") {
        Some(Value::Object(map)) => map.clone(),
        _ => Map::new(),
    };
    context.extend(query.context());
    context.retain(|key, _| !is_reserved_context_key(key));
    (!context.is_empty()).then_some(context)
}

/// `?limit=&tags=` of a thread list.
pub(crate) struct ThreadList {
    /// At most so many; 0 is all (Q24).
    pub(crate) limit: usize,
    pub(crate) tags: Map<String, Value>,
}

impl ThreadList {
    pub(crate) fn read(query: &Query) -> Result<Self, Vec<Issue>> {
        let mut issues = vec![];
        let limit = match query.get("limit").map(number) {
            None => 0,
            Some(Some(limit)) if limit > 0.0 => limit as usize,
            Some(Some(_)) => 0,
            Some(None) => {
                issues.push(Issue::new("limit", "Invalid input: expected number, received NaN"));
                0
            }
        };
        let mut tags = Map::new();
        match query.get("tags").map(serde_json::from_str::<Value>) {
            None => {}
            Some(Ok(Value::Object(found))) => {
                for (key, value) in &found {
                    if !value.is_string() {
                        issues.push(expected(&format!("tags.{key}"), "string", Some(value)));
                    }
                }
                tags = found;
            }
            Some(Ok(other)) => issues.push(expected("tags", "record", Some(&other))),
            Some(Err(_)) => issues.push(Issue::new("tags", "Invalid input: expected JSON")),
        }
        if issues.is_empty() { Ok(Self { limit, tags }) } else { Err(issues) }
    }
}

fn number(text: &str) -> Option<f64> {
    if text.trim().is_empty() {
        return Some(0.0);
    }
    text.trim().parse().ok().filter(|number: &f64| number.is_finite())
}

/// The query of a message list (WIRE 6).
#[derive(Debug)]
pub(crate) struct MessageList {
    pub(crate) page: usize,
    /// `None` is all.
    pub(crate) per_page: Option<usize>,
    pub(crate) newest_first: bool,
    /// The old `limit`: the newest so many, told oldest first.
    pub(crate) legacy: bool,
    pub(crate) filter: Filter,
    pub(crate) include: Vec<Include>,
}

/// Which messages count.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    pub(crate) after: Option<(Timestamp, bool)>,
    pub(crate) before: Option<(Timestamp, bool)>,
    pub(crate) roles: Option<Vec<String>>,
    pub(crate) metadata: Map<String, Value>,
}

impl Filter {
    pub(crate) fn is_empty(&self) -> bool {
        self.after.is_none() && self.before.is_none() && self.roles.is_none() && self.metadata.is_empty()
    }
}

/// A message that is told whatever the page holds, with some around it.
#[derive(Debug)]
pub(crate) struct Include {
    pub(crate) id: MessageId,
    pub(crate) thread: Option<ThreadId>,
    pub(crate) before: usize,
    pub(crate) after: usize,
}

impl MessageList {
    const PER_PAGE: usize = 40;

    pub(crate) fn read(query: &Query) -> Result<Self, Vec<Issue>> {
        let mut issues = vec![];
        let mut out =
            Self { page: 0, per_page: Some(Self::PER_PAGE), newest_first: true, legacy: false, filter: Filter::default(), include: vec![] };
        if let Some(page) = query.get("page") {
            out.page = count("page", page, &mut issues);
        }
        match query.get("perPage") {
            Some("false") => out.per_page = None,
            Some(text) => out.per_page = Some(count("perPage", text, &mut issues)),
            None => {}
        }
        if let Some(limit) = query.get("limit") {
            if let Some(other) = ["perPage", "orderBy", "filter", "include"].into_iter().find(|name| query.get(name).is_some()) {
                issues.push(Issue::new("limit", format!("limit cannot be combined with {other}; use perPage instead")));
            }
            out.per_page = Some(count("limit", limit, &mut issues));
            out.legacy = true;
        }
        if let Some(order) = query.get("orderBy").and_then(|text| serde_json::from_str::<Value>(text).ok()) {
            out.read_order(&order, &mut issues);
        }
        if let Some(filter) = json(query, "filter", &mut issues) {
            out.read_filter(&filter, &mut issues);
        }
        if let Some(include) = json(query, "include", &mut issues) {
            out.read_include(&include, &mut issues);
        }
        if issues.is_empty() { Ok(out) } else { Err(issues) }
    }

    fn read_order(&mut self, order: &Value, issues: &mut Vec<Issue>) {
        if order.get("field").is_some_and(|field| field != "createdAt" && field != "updatedAt") {
            issues.push(Issue::new("orderBy.field", "Invalid option: expected one of \"createdAt\"|\"updatedAt\""));
        }
        match order.get("direction").map(Value::as_str) {
            None => {}
            Some(Some("ASC")) => self.newest_first = false,
            Some(Some("DESC")) => self.newest_first = true,
            Some(_) => issues.push(Issue::new("orderBy.direction", "Invalid option: expected one of \"ASC\"|\"DESC\"")),
        }
    }

    fn read_filter(&mut self, filter: &Value, issues: &mut Vec<Issue>) {
        if !filter.is_object() {
            issues.push(expected("filter", "object", Some(filter)));
            return;
        }
        if let Some(range) = filter.get("dateRange") {
            let mut side = |name: &str, exclusive: &str| {
                let text = range.get(name)?;
                let exclusive = range.get(exclusive).and_then(Value::as_bool).unwrap_or(false);
                let at = text.as_str().and_then(Timestamp::parse);
                if at.is_none() {
                    issues.push(Issue::new(format!("filter.dateRange.{name}"), "Invalid input: expected date, received Invalid Date"));
                }
                Some((at?, exclusive))
            };
            self.filter.after = side("start", "startExclusive");
            self.filter.before = side("end", "endExclusive");
        }
        match filter.get("roles") {
            None => {}
            Some(Value::Array(roles)) => {
                self.filter.roles = Some(roles.iter().filter_map(|role| role.as_str().map(str::to_owned)).collect());
            }
            Some(other) => issues.push(expected("filter.roles", "array", Some(other))),
        }
        match filter.get("metadata") {
            None => {}
            Some(Value::Object(metadata)) => self.filter.metadata = metadata.clone(),
            Some(other) => issues.push(expected("filter.metadata", "record", Some(other))),
        }
    }

    fn read_include(&mut self, include: &Value, issues: &mut Vec<Issue>) {
        let Value::Array(items) = include else {
            issues.push(expected("include", "array", Some(include)));
            return;
        };
        for (at, item) in items.iter().take(50).enumerate() {
            let Some(id) = item.get("id").and_then(Value::as_str) else {
                issues.push(expected(&format!("include.{at}.id"), "string", item.get("id")));
                continue;
            };
            let around = |name: &str| item.get(name).and_then(Value::as_u64).map_or(0, |n| usize::try_from(n.min(100)).unwrap_or(100));
            self.include.push(Include {
                id: id.into(),
                thread: item.get("threadId").and_then(Value::as_str).map(Into::into),
                before: around("withPreviousMessages"),
                after: around("withNextMessages"),
            });
        }
    }
}

fn json(query: &Query, name: &str, issues: &mut Vec<Issue>) -> Option<Value> {
    match serde_json::from_str(query.get(name)?) {
        Ok(value) => Some(value),
        Err(_) => {
            issues.push(Issue::new(name, "Invalid input: expected JSON"));
            None
        }
    }
}

fn count(name: &str, text: &str, issues: &mut Vec<Issue>) -> usize {
    match number(text) {
        None => issues.push(Issue::new(name, "Invalid input: expected number, received NaN")),
        Some(number) if number.fract() != 0.0 => issues.push(Issue::new(name, "Invalid input: expected int, received number")),
        Some(number) if number < 0.0 => issues.push(Issue::new(name, "Too small: expected number to be >=0")),
        Some(number) => return number as usize,
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(raw: &str) -> Result<MessageList, Vec<String>> {
        MessageList::read(&Query::read(Some(raw)))
            .map_err(|issues| issues.into_iter().map(|issue| format!("{}: {}", issue.field, issue.message)).collect())
    }

    #[test]
    fn the_query_of_a_message_list_is_judged_as_the_reference_does() {
        assert_eq!(messages("limit=1&perPage=2").unwrap_err(), ["limit: limit cannot be combined with perPage; use perPage instead"]);
        assert_eq!(messages("limit=-1").unwrap_err(), ["limit: Too small: expected number to be >=0"]);
        assert_eq!(messages("limit=abc").unwrap_err(), ["limit: Invalid input: expected number, received NaN"]);
        assert_eq!(messages("limit=1.5").unwrap_err(), ["limit: Invalid input: expected int, received number"]);
        assert_eq!(messages("page=-1").unwrap_err(), ["page: Too small: expected number to be >=0"]);
        assert_eq!(messages("perPage=false").unwrap().per_page, None);
        assert!(messages("orderBy=nonsense").unwrap().newest_first);
        assert!(messages("orderBy=%7B%22field%22%3A%22size%22%7D").is_err());
    }

    #[test]
    fn the_servers_own_keys_never_come_from_a_request() {
        let query = Query::read(Some("requestContext=%7B%22who%22%3A%22query%22%2C%22mastra__user%22%3A1%7D"));
        let body = serde_json::json!({ "requestContext": { "who": "body", "tenant": "t", "organizationId": "x" } });
        let context = request_context(&query, body.as_object().unwrap()).unwrap();
        assert_eq!(Value::Object(context), serde_json::json!({ "who": "query", "tenant": "t" }));
        let encoded = base64::engine::general_purpose::STANDARD.encode(r#"{"a":1}"#);
        let query = Query::read(Some(&form_urlencoded::Serializer::new(String::new()).append_pair("requestContext", &encoded).finish()));
        assert_eq!(request_context(&query, &Map::new()).unwrap().get("a"), Some(&serde_json::json!(1)));
    }
}
