//! The request half of an adapter: a neutral request becomes an HTTP request. Pure: no socket, no clock, no key.

use ac_core::{ModelError, ModelErrorKind, ModelRequest};
use http::HeaderMap;
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value, json};

use crate::{
    error::Origin,
    mode,
    name::ToolNames,
    profile::{Api, Profile},
};

/// An HTTP request without its key, which is added when it is sent.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct WireRequest {
    /// Where to.
    pub url: String,
    /// Headers besides `content-type` and the key.
    pub headers: HeaderMap,
    /// The JSON body.
    pub body: Value,
}

impl WireRequest {
    pub(crate) fn post(profile: &Profile, path: &str, body: Map<String, Value>) -> Self {
        Self { url: profile.url(path), headers: profile.headers.clone(), body: Value::Object(body) }
    }

    /// The body as it is sent. Properties of a schema stand in the order in which the schema requires them, since many servers make their
    /// model fill them in as they stand.
    ///
    /// # Errors
    /// None that a JSON value can cause.
    pub fn bytes(&self) -> Result<Vec<u8>, ModelError> {
        // Room for a short conversation, so that it is not moved while it is written.
        let mut bytes = Vec::with_capacity(4 * 1024);
        let made = serde_json::to_writer(&mut bytes, &Ordered(&self.body)).map(|()| bytes);
        made.map_err(|error| ModelError::new(ModelErrorKind::BadRequest, "the request is no JSON").with_source(error))
    }
}

/// A value whose objects have their fields by name, but for the properties of a schema.
struct Ordered<'a>(&'a Value);

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Array(list) => serializer.collect_seq(list.iter().map(Ordered)),
            Value::Object(fields) => {
                let required = fields.get("required").and_then(Value::as_array);
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                for (name, value) in fields {
                    match (name.as_str(), required, value) {
                        ("properties", Some(required), Value::Object(properties)) => {
                            map.serialize_entry(name, &Properties(properties, required))?
                        }
                        _ => map.serialize_entry(name, &Ordered(value))?,
                    }
                }
                map.end()
            }
            other => other.serialize(serializer),
        }
    }
}

/// Required properties first.
struct Properties<'a>(&'a Map<String, Value>, &'a [Value]);

impl Serialize for Properties<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let place = |name: &str| self.1.iter().position(|required| required == name).unwrap_or(usize::MAX);
        let mut properties: Vec<_> = self.0.iter().collect();
        properties.sort_by_key(|(name, _)| place(name));
        serializer.collect_map(properties.into_iter().map(|(name, value)| (name, Ordered(value))))
    }
}

/// Makes the HTTP request that asks for a streamed answer.
///
/// # Errors
/// When the request cannot be said in the provider's protocol.
pub fn build(profile: &Profile, request: &ModelRequest) -> Result<WireRequest, ModelError> {
    let Some(build) = builder(profile.api) else {
        return Err(origin(profile, request.model.as_str()).not_built_in(profile.api));
    };
    if !mode::asks_in_json(profile, request) {
        return build(profile, request);
    }
    let schema = mode::schema(request);
    let mut sent = build(profile, &mode::rewrite(request))?;
    constrain(profile.api, schema, &mut sent.body);
    Ok(sent)
}

type Build = fn(&Profile, &ModelRequest) -> Result<WireRequest, ModelError>;

/// The request half of an adapter, if it is compiled in.
fn builder(api: Api) -> Option<Build> {
    match api {
        #[cfg(feature = "openai")]
        Api::OpenAiChat => Some(crate::openai_chat::request::build),
        #[cfg(feature = "openai")]
        Api::OpenAiResponses => Some(crate::openai_responses::request::build),
        #[cfg(feature = "openai")]
        Api::Ollama => Some(crate::ollama::request::build),
        #[cfg(feature = "anthropic")]
        Api::Anthropic => Some(crate::anthropic::request::build),
        #[cfg(feature = "gemini")]
        Api::Gemini => Some(crate::gemini::request::build),
        #[cfg(not(all(feature = "openai", feature = "anthropic", feature = "gemini")))]
        _ => None,
    }
}

/// Where each protocol takes a schema for the answer. Anthropic's has no such place: there the instructions alone ask for it.
fn constrain(api: Api, schema: Value, body: &mut Value) {
    let Some(body) = body.as_object_mut() else { return };
    let named = json!({"name": "action", "schema": schema, "strict": false});
    match api {
        Api::OpenAiChat => drop(body.insert("response_format".into(), json!({"type": "json_schema", "json_schema": named}))),
        Api::OpenAiResponses => {
            let format = json!({"format": {"type": "json_schema", "name": "action", "schema": schema, "strict": false}});
            body.insert("text".into(), format);
        }
        Api::Ollama => drop(body.insert("format".into(), schema)),
        Api::Gemini => {
            if let Value::Object(generation) = body.entry("generationConfig").or_insert_with(|| json!({})) {
                generation.insert("responseMimeType".into(), "application/json".into());
                generation.insert("responseJsonSchema".into(), schema);
            }
        }
        Api::Anthropic => {}
    }
}

/// The object with one field more. The value is moved; `json!` would copy it.
pub(crate) fn with(mut object: Value, name: &str, value: impl Into<Value>) -> Value {
    if let Value::Object(fields) = &mut object {
        fields.insert(name.to_owned(), value.into());
    }
    object
}

/// `0.7_f32` is to read `0.7`, not `0.699999988079071`.
pub(crate) fn number(value: f32) -> Value {
    value.to_string().parse::<f64>().ok().and_then(serde_json::Number::from_f64).map_or(Value::Null, Value::Number)
}

/// The tool names that a request and its history may hold.
pub(crate) fn tool_names(request: &ModelRequest) -> ToolNames {
    let history = request.messages.iter().flat_map(|message| message.tool_calls()).map(|call| call.name.as_str());
    ToolNames::new(request.tools.iter().map(|tool| tool.name.as_str()).chain(history))
}

/// Who is asked.
pub(crate) fn origin(profile: &Profile, model: &str) -> Origin {
    Origin {
        provider: profile.name.clone(),
        key_var: profile.key_vars.first().cloned(),
        base_url: profile.address().into(),
        model: profile.model_names.name(model).into(),
    }
}

/// Adds the host's options for this provider, as they are; they win.
pub(crate) fn add_options(body: &mut Map<String, Value>, profile: &Profile, request: &ModelRequest) {
    if let Some(Value::Object(options)) = request.options.get(&*profile.name) {
        body.extend(options.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
}
