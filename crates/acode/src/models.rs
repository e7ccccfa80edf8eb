//! Which model answers.

mod servers;

use std::{sync::Arc, time::Duration};

use agent_controller::{
    core::{CancelToken, ModelError, ModelErrorKind, ModelId},
    llm::{Api, Profile, ReqwestTransport, Router, demo},
};

use self::servers::Server;
pub(crate) use self::servers::Servers;
use crate::{
    args::Options,
    exit::{Exit, Failure},
    project::Project,
    settings::Settings,
};

/// Where local servers usually listen.
const PORTS: [u16; 4] = [11434, 1234, 8080, 8000];
/// How long one of them may take to say what it has.
const PROBE: Duration = Duration::from_millis(300);
/// How long `BASE/models` may take.
const LISTING: Duration = Duration::from_secs(10);

/// The model that answers, and the way to it and to all others.
#[derive(Debug)]
pub(crate) struct Models {
    /// What new runs use.
    pub(crate) model: ModelId,
    /// The way to every model that a stored run may name.
    pub(crate) router: Router,
    /// Nobody chose: the built-in model answers.
    pub(crate) fallback: bool,
    /// What else was laid down.
    pub(crate) settings: Settings,
}

/// A local server that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Local {
    /// Its base URL.
    pub(crate) base_url: String,
    /// Its first model.
    pub(crate) model: String,
}

/// Chooses by the flags, else the built-in model.
///
/// # Errors
/// A model or provider that does not exist, a missing key, a server that lists no models.
pub(crate) async fn choose(options: &Options, project: &Project, pace: Duration) -> Result<Models, Failure> {
    let transport = Arc::new(ReqwestTransport::new().map_err(|error| Failure::failed("model.transport", error.to_string()))?);
    let settings = Settings::read(project, options)?;
    let mut servers = Servers::read(project)?;
    let mut chosen = None;
    if let Some(base_url) = options.base_url.as_deref() {
        let known = Router::builder(transport.clone()).build();
        let server = Server::new(base_url, options.model.as_deref(), &known)?;
        chosen = Some(match options.model.as_deref() {
            Some(model) => ModelId::from(format!("{}/{}", server.name, server.model_name(model, &known))),
            None => first_model(&server, transport.clone()).await?,
        });
        servers.keep(server, project)?;
    }
    let modes = settings.clone();
    let mut builder = Router::builder(transport)
        .provider("demo", Arc::new(demo::Guide::paced(pace)))
        .tool_calls(move |model: &ModelId| modes.tool_calls(model));
    for server in servers.iter() {
        builder = builder.http(server.profile());
    }
    let router = builder.build();
    let asked = chosen.or_else(|| options.model.as_deref().map(ModelId::from));
    if let Some(model) = asked {
        router.resolve(&model).map_err(|error| refused(&error))?;
        return Ok(Models { model, router, fallback: false, settings });
    }
    Ok(Models { model: demo::GUIDE.into(), router, fallback: true, settings })
}

/// A model that cannot be asked. A name that means nothing is wrong usage; a missing key is not.
fn refused(error: &ModelError) -> Failure {
    let exit = match error.kind {
        ModelErrorKind::UnknownProvider | ModelErrorKind::UnknownModel => Exit::Usage,
        _ => Exit::Failed,
    };
    Failure { exit, code: error.code().into(), message: format!("{error}") }
}

async fn first_model(server: &Server, transport: Arc<ReqwestTransport>) -> Result<ModelId, Failure> {
    let hint = "name a model with --model";
    let router = Router::builder(transport).without_known().http(server.profile()).build();
    let models = match tokio::time::timeout(LISTING, router.discover(&server.name, CancelToken::new())).await {
        Ok(Ok(models)) => models,
        Ok(Err(error)) => return Err(Failure::failed(error.code(), format!("{error}; {hint}"))),
        Err(_) => return Err(Failure::failed("model.timeout", format!("{} did not list its models in time; {hint}", server.base_url))),
    };
    let first = models.into_iter().next().map(|model| model.id);
    first.ok_or_else(|| Failure::failed("model.unknown_model", format!("{} lists no models; {hint}", server.base_url)))
}

/// Looks for a server on this machine.
pub(crate) async fn probe() -> Option<Local> {
    let transport = Arc::new(ReqwestTransport::with_connect_timeout(PROBE).ok()?);
    let mut looking = tokio::task::JoinSet::new();
    for (place, port) in PORTS.into_iter().enumerate() {
        let base_url = format!("http://127.0.0.1:{port}/v1");
        let router = Router::builder(transport.clone()).without_known().http(Profile::new("local", Api::OpenAiChat, &base_url)).build();
        looking.spawn(async move {
            let models = tokio::time::timeout(PROBE, router.discover("local", CancelToken::new())).await.ok()?.ok()?;
            let model = models.first()?.id.as_str().strip_prefix("local/")?.to_owned();
            Some((place, Local { base_url, model }))
        });
    }
    let mut found: Vec<_> = looking.join_all().await.into_iter().flatten().collect();
    found.sort_by_key(|(place, _)| *place);
    found.into_iter().next().map(|(_, local)| local)
}

#[cfg(test)]
mod tests;
