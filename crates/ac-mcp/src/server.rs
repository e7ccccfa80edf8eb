use std::{
    collections::{HashMap, HashSet},
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};

use ac_core::{CancelToken, tool::ToolList};
use http::{HeaderName, HeaderValue};
use process_wrap::tokio::{CommandWrap, KillOnDrop, ProcessGroup};
use rmcp::{
    RoleClient,
    model::{CallToolRequestParams, ProtocolVersion},
    service::{ClientLifecycleMode, ClientServiceExt, RunningService, ServiceError},
    transport::{StreamableHttpClientTransport, TokioChildProcess, streamable_http_client::StreamableHttpClientTransportConfig},
};
use tokio::sync::Mutex;

use crate::{
    McpConfig, McpError, McpErrorKind as Kind, McpTransport,
    group::{Ends, Group},
    tool::McpTool,
};

/// The most tools that one server may offer.
const MOST_TOOLS: usize = 512;
/// How long a server may take to end when it is told to.
const FAREWELL: Duration = Duration::from_secs(2);

type Client = RunningService<RoleClient, ()>;

/// A server that is there.
struct Connection {
    client: Arc<Client>,
    /// What its process is the leader of.
    group: Option<Group>,
}

/// What is known of a server.
#[derive(Default)]
struct Current {
    connection: Option<Connection>,
    /// When it could not be started last, and why.
    failed: Option<(Instant, Kind, String)>,
}

/// A server that is used. Its process, if it has one, ends with the last tool of it, or by [`McpServer::close`].
///
/// ```
/// use ac_core::tool::ToolList;
/// use ac_mcp::{McpConfig, McpError, McpServer};
///
/// # async fn run(config: McpConfig) -> Result<ToolList, McpError> {
/// let server = McpServer::connect(config).await?;
/// let tools = server.tools(); // tools like any other: hand them to an agent
/// # Ok(tools)
/// # }
/// ```
pub struct McpServer {
    config: McpConfig,
    current: Mutex<Current>,
    closed: CancelToken,
    tools: Vec<rmcp::model::Tool>,
}

impl std::fmt::Debug for McpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpServer").field("config", &self.config).field("tools", &self.tools.len()).finish_non_exhaustive()
    }
}

impl McpServer {
    /// Starts or reaches a server and asks what it offers. What it offers stays the same as long as this value lives.
    ///
    /// # Errors
    /// When it is not ready in time, or speaks something else.
    pub async fn connect(config: McpConfig) -> Result<Arc<Self>, McpError> {
        let usable = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if config.name.is_empty() || config.name.len() > 32 || !config.name.chars().all(usable) {
            let name = &config.name;
            return Err(McpError::new(Kind::Name, format!("`{name}` is no name for a server: use up to 32 letters, digits, `-` and `_`")));
        }
        let (connection, tools) = ready(&config).await?;
        let current = Mutex::new(Current { connection: Some(connection), failed: None });
        Ok(Arc::new(Self { config, current, closed: CancelToken::new(), tools }))
    }

    /// How it is treated.
    pub fn config(&self) -> &McpConfig {
        &self.config
    }

    /// Its tools. Names that other tools have, or that models cannot call, get a number or other characters.
    pub fn tools(self: &Arc<Self>) -> ToolList {
        let mut taken = HashSet::new();
        let mut list: ToolList = Vec::new();
        for tool in &self.tools {
            if self.config.only.as_ref().is_none_or(|only| only.iter().any(|name| *name == tool.name)) {
                list.push(Arc::new(McpTool::new(Arc::clone(self), tool, &mut taken)));
            }
        }
        list
    }

    /// Calls a tool. Who drops this future cancels the call at the server.
    pub(super) async fn call(&self, params: CallToolRequestParams) -> Result<rmcp::model::CallToolResult, String> {
        let client = self.client().await.map_err(|error| error.to_string())?;
        match tokio::time::timeout(self.config.call_timeout, client.call_tool(params)).await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(error)) => {
                if client.is_transport_closed() || client.is_closed() {
                    self.forget(&client).await;
                    return Err("the server ended during the call; the next call starts it again".to_owned());
                }
                Err(match error {
                    // The server's own words.
                    ServiceError::McpError(error) => error.to_string(),
                    error => self.config.transport.redacted(&error.to_string()),
                })
            }
            Err(_) => {
                // A server that does not answer one call is not trusted with the next.
                self.forget(&client).await;
                Err(format!("no answer within {} s; the next call starts the server again", self.config.call_timeout.as_secs_f32()))
            }
        }
    }

    async fn client(&self) -> Result<Arc<Client>, McpError> {
        let asked = Instant::now();
        let closed = || McpError::new(Kind::Closed, format!("the server `{}` was closed; connect to it again", self.config.name));
        let mut current = self.current.lock().await;
        if self.closed.is_cancelled() {
            return Err(closed());
        }
        let usable = |known: &&Connection| !known.client.is_transport_closed() && !known.client.is_closed();
        if let Some(known) = current.connection.as_ref().filter(usable) {
            return Ok(Arc::clone(&known.client));
        }
        // Whoever waited while it could not be started is not made to wait for that again.
        if let Some((_, kind, why)) = current.failed.as_ref().filter(|(at, ..)| *at >= asked) {
            return Err(McpError::new(*kind, why.clone()));
        }
        current.connection = None;
        let ready = tokio::select! {
            ready = ready(&self.config) => ready,
            () = self.closed.cancelled() => Err(closed()),
        };
        match ready {
            Ok((connection, _)) => {
                let client = Arc::clone(&connection.client);
                current.connection = Some(connection);
                Ok(client)
            }
            Err(error) => {
                current.failed = Some((Instant::now(), error.kind(), error.to_string()));
                Err(error)
            }
        }
    }

    /// The next call begins with another connection. Calls that this one still serves go on; it ends with the last of them.
    async fn forget(&self, client: &Arc<Client>) {
        let mut current = self.current.lock().await;
        if current.connection.as_ref().is_some_and(|known| Arc::ptr_eq(&known.client, client)) {
            current.connection = None;
        }
    }

    /// Ends the connection, and the server's process with everything that it started. Calls fail from then on.
    pub async fn close(&self) {
        self.closed.cancel();
        let Some(Connection { mut client, group }) = self.current.lock().await.connection.take() else { return };
        client.cancellation_token().cancel();
        let ending = async {
            // Calls that are under way end by themselves now.
            loop {
                match Arc::try_unwrap(client) {
                    Ok(mut last) => return drop(last.close().await),
                    Err(shared) => client = shared,
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let _ended = tokio::time::timeout(FAREWELL, ending).await;
        if let Some(group) = group {
            group.end();
        }
    }
}

/// A client that has said hello and asked for the tools, all within the time limit.
async fn ready(config: &McpConfig) -> Result<(Connection, Vec<rmcp::model::Tool>), McpError> {
    let name = &config.name;
    let work = async {
        let (client, group) = open(config).await?;
        let mut tools = client.list_all_tools().await.map_err(|error| {
            let error = config.transport.redacted(&error.to_string());
            McpError::new(Kind::Protocol, format!("the server `{name}` does not tell its tools: {error}")).with_source(error)
        })?;
        tools.truncate(MOST_TOOLS);
        Ok((Connection { client: Arc::new(client), group }, tools))
    };
    match tokio::time::timeout(config.connect_timeout, work).await {
        Ok(result) => result,
        Err(_) => {
            let seconds = config.connect_timeout.as_secs_f32();
            Err(McpError::new(Kind::Timeout, format!("the server `{name}` was not ready within {seconds} s")))
        }
    }
}

/// The protocol without a handshake where a server knows it, else the one before.
fn lifecycle() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto { preferred_versions: vec![ProtocolVersion::LATEST], legacy_version: None }
}

async fn open(config: &McpConfig) -> Result<(Client, Option<Group>), McpError> {
    let name = &config.name;
    let fail = |error: ac_core::error::Source| {
        let error = config.transport.redacted(&error.to_string());
        McpError::new(Kind::Connect, format!("the server `{name}` cannot be started or reached: {error}")).with_source(error)
    };
    match &config.transport {
        McpTransport::Stdio { program, args, env, cwd } => {
            let mut command = tokio::process::Command::new(program);
            command.args(args).env_clear();
            command.envs(["PATH", "HOME", "USER", "LANG", "TMPDIR"].iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
            command.envs(env);
            if let Some(cwd) = cwd {
                command.current_dir(cwd);
            }
            // A group of its own, so that what the server starts ends with it.
            let mut wrapped = CommandWrap::from(command);
            let group = Group::default();
            wrapped.wrap(ProcessGroup::leader()).wrap(KillOnDrop).wrap(Ends(group.clone()));
            let (process, _) = TokioChildProcess::builder(wrapped).stderr(Stdio::null()).spawn().map_err(|error| fail(error.into()))?;
            let client = ().serve_with_lifecycle(process, lifecycle()).await.map_err(|error| fail(error.into()))?;
            Ok((client, Some(group)))
        }
        McpTransport::Http { url, headers } => {
            // The first one to install a provider of TLS decides; an error says that there is one.
            rustls::crypto::ring::default_provider().install_default().ok();
            let mut transport = StreamableHttpClientTransportConfig::with_uri(url.as_str());
            let mut given = HashMap::new();
            for (name, value) in headers {
                let name = HeaderName::try_from(name.as_str()).map_err(|error| fail(error.into()))?;
                let mut value = HeaderValue::try_from(value.as_str()).map_err(|error| fail(error.into()))?;
                value.set_sensitive(true);
                given.insert(name, value);
            }
            transport.custom_headers = given;
            let client = ().serve_with_lifecycle(StreamableHttpClientTransport::from_config(transport), lifecycle()).await;
            Ok((client.map_err(|error| fail(error.into()))?, None))
        }
    }
}
