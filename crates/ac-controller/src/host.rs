use std::{collections::BTreeMap, sync::Arc};

use ac_core::ControllerId;
use ac_storage::Storage;

use crate::{AgentController, ControllerBuilder, ControllerError, ControllerErrorKind};

/// Several controllers by id, on one store.
///
/// They share nothing but the store: each has its own sessions, runs and threads. A thread that one of them made is no other's, also where
/// it belongs to the same resource.
///
/// ```
/// use std::sync::Arc;
///
/// use ac_controller::{AgentController, Host, Mode};
/// use ac_core::{ModelError, ModelErrorKind, ModelId, ModelProvider};
/// use ac_storage::MemoryStorage;
///
/// # fn connect(_: &ModelId) -> Result<Arc<dyn ModelProvider>, ModelError> { Err(ModelError::new(ModelErrorKind::Auth, "no key")) }
/// let mode = || Mode::new("chat").model("openai/gpt-5");
/// let host = Host::builder()
///     .storage(Arc::new(MemoryStorage::new()))
///     .controller(AgentController::builder().id("support").models(connect).mode(mode()))
///     .controller(AgentController::builder().id("code").models(connect).mode(mode()))
///     .build()?;
/// assert_eq!(host.controllers().count(), 2);
/// assert!(host.controller("code").is_ok() && host.controller("sales").is_err());
/// # Ok::<(), ac_controller::ControllerError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Host {
    controllers: Arc<BTreeMap<ControllerId, AgentController>>,
}

/// Makes a [`Host`].
#[derive(Default)]
#[must_use]
pub struct HostBuilder {
    storage: Option<Arc<dyn Storage>>,
    waiting: Vec<ControllerBuilder>,
    built: Vec<AgentController>,
}

impl Host {
    /// Begins a host.
    pub fn builder() -> HostBuilder {
        HostBuilder::default()
    }

    /// The controller of an id.
    ///
    /// # Errors
    /// [`ControllerNotFound`](ControllerErrorKind::ControllerNotFound).
    pub fn controller(&self, id: &str) -> Result<&AgentController, ControllerError> {
        self.controllers
            .get(id)
            .ok_or_else(|| ControllerError::new(ControllerErrorKind::ControllerNotFound, format!("agent controller \"{id}\" not found")))
    }

    /// All of them, in the order of their ids.
    pub fn controllers(&self) -> impl Iterator<Item = &AgentController> {
        self.controllers.values()
    }

    /// [Initialises](AgentController::init) all of them. May be called again, also after an error.
    ///
    /// # Errors
    /// The first one; the others are initialised all the same.
    pub async fn init(&self) -> Result<(), ControllerError> {
        let all = futures::future::join_all(self.controllers().map(AgentController::init)).await;
        all.into_iter().collect()
    }

    /// [Shuts all of them down](AgentController::shutdown), at the same time.
    pub async fn shutdown(&self) {
        futures::future::join_all(self.controllers().map(AgentController::shutdown)).await;
    }
}

impl HostBuilder {
    /// The store of every controller that has none of its own.
    pub fn storage(mut self, storage: Arc<dyn Storage>) -> Self {
        self.storage = Some(storage);
        self
    }

    /// Adds a controller, to be built with the host.
    pub fn controller(mut self, controller: ControllerBuilder) -> Self {
        self.waiting.push(controller);
        self
    }

    /// Adds a controller that is built already.
    pub fn built(mut self, controller: AgentController) -> Self {
        self.built.push(controller);
        self
    }

    /// Builds what is not built yet.
    ///
    /// # Errors
    /// [`DuplicateController`](ControllerErrorKind::DuplicateController), and as [`ControllerBuilder::build`].
    pub fn build(self) -> Result<Host, ControllerError> {
        let mut controllers = BTreeMap::new();
        let storage = self.storage;
        let fresh = self.waiting.into_iter().map(|builder| match &storage {
            Some(storage) => builder.storage_unless_set(storage),
            None => builder,
        });
        for controller in self.built.into_iter().map(Ok).chain(fresh.map(ControllerBuilder::build)) {
            let controller = controller?;
            let id = controller.id().clone();
            if controllers.insert(id.clone(), controller).is_some() {
                return Err(ControllerError::new(ControllerErrorKind::DuplicateController, format!("two controllers are called `{id}`")));
            }
        }
        Ok(Host { controllers: Arc::new(controllers) })
    }
}

impl std::fmt::Debug for HostBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostBuilder").field("controllers", &(self.waiting.len() + self.built.len())).finish_non_exhaustive()
    }
}
