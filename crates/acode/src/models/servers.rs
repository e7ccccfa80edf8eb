use std::{fs, io, net::IpAddr, path::PathBuf};

use agent_controller::llm::{Api, Profile, Router, profile::known};
use serde_json::{Map, Value, json};

use crate::{exit::Failure, project::Project};

/// The variable that holds a key for a server of one's own.
const OWN_KEY: &str = "AC_API_KEY";

/// A server that was named by its base URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    /// What stands before the first `/` of its models' ids: host and port.
    pub(crate) name: String,
    /// Where it is.
    pub(crate) base_url: String,
    /// The variables that may hold its key.
    pub(crate) keys: Vec<String>,
}

impl Server {
    /// The server at a base URL. A model of a known provider says which variable may hold the key.
    ///
    /// # Errors
    /// When this is no base URL.
    pub(crate) fn new(base_url: &str, model: Option<&str>, known: &Router) -> Result<Self, Failure> {
        let wrong = || Failure::usage(format!("`{base_url}` is no base URL; it looks like http://127.0.0.1:8080/v1"));
        let rest = base_url.strip_prefix("http://").or_else(|| base_url.strip_prefix("https://")).ok_or_else(wrong)?;
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        // What stands before an `@` would be a password: it belongs into a variable.
        if authority.is_empty() || authority.contains(|c: char| c == '@' || c.is_whitespace()) {
            return Err(wrong());
        }
        let provider = model.and_then(|model| model.split_once('/')).map(|(provider, _)| provider);
        let usual = provider.filter(|provider| known.auth(provider).is_some()).and_then(key_variable);
        let keys = std::iter::once(OWN_KEY.to_owned()).chain(usual).collect();
        Ok(Self { name: authority.to_ascii_lowercase(), base_url: base_url.trim_end_matches('/').to_owned(), keys })
    }

    /// The name that the server is told: what follows the first `/` of a known provider, else all of it.
    pub(crate) fn model_name<'a>(&self, model: &'a str, known: &Router) -> &'a str {
        match model.split_once('/') {
            Some((provider, name)) if !name.is_empty() && (provider == self.name || known.auth(provider).is_some()) => name,
            _ => model,
        }
    }

    /// The way to it.
    pub(crate) fn profile(&self) -> Profile {
        let mut profile = Profile::new(self.name.as_str(), Api::OpenAiChat, &self.base_url);
        profile.key_vars = self.keys.iter().map(|key| key.as_str().into()).collect();
        profile.key_optional = true;
        let host = self.name.rsplit_once(':').map_or(self.name.as_str(), |(host, _)| host);
        profile.local_models = host == "localhost" || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|host| host.is_loopback());
        profile
    }
}

/// The usual variable of a known provider.
fn key_variable(provider: &str) -> Option<String> {
    known::all().into_iter().find(|profile| &*profile.name == provider)?.key_vars.first().map(ToString::to_string)
}

/// Servers that were named before in this project, so that a stored run finds its model again. Keys are never kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Servers(Vec<Server>);

impl Servers {
    /// Reads them.
    ///
    /// # Errors
    /// When the file is there and cannot be read.
    pub(crate) fn read(project: &Project) -> Result<Self, Failure> {
        let path = file(project);
        let broken = |why: String| {
            Failure::failed(
                "config.servers",
                format!("cannot read {}: {why}; repair or remove it, and name the server again", path.display()),
            )
        };
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(broken(error.to_string())),
        };
        let map: Map<String, Value> = serde_json::from_str(&text).map_err(|error| broken(error.to_string()))?;
        let server = |(name, value): (String, Value)| {
            let keys = value.get("keys").and_then(Value::as_array).into_iter().flatten();
            let keys = keys.filter_map(Value::as_str).map(str::to_owned).collect();
            Some(Server { name, base_url: value.get("baseUrl")?.as_str()?.to_owned(), keys })
        };
        Ok(Self(map.into_iter().filter_map(server).collect()))
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Server> {
        self.0.iter()
    }

    /// Remembers one.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn keep(&mut self, server: Server, project: &Project) -> Result<(), Failure> {
        if self.0.contains(&server) {
            return Ok(());
        }
        self.0.retain(|known| known.name != server.name);
        self.0.push(server);
        let map: Map<String, Value> =
            self.0.iter().map(|server| (server.name.clone(), json!({ "baseUrl": server.base_url, "keys": server.keys }))).collect();
        let path = file(project);
        // Whole or not at all.
        let fresh = path.with_extension(format!("json.{}", std::process::id()));
        let written = fs::write(&fresh, format!("{:#}\n", Value::Object(map))).and_then(|()| fs::rename(&fresh, &path));
        written.map_err(|error| Failure::failed("config.servers", format!("cannot write {}: {error}", path.display())))
    }
}

fn file(project: &Project) -> PathBuf {
    project.data.join("servers.json")
}
