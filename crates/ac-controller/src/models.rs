use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ac_core::{ModelError, ModelId};
use async_trait::async_trait;
use serde::Serialize;
use tokio::time::Instant;

use crate::{AgentController, ControllerError, ControllerErrorKind, Session, controller::Shared};

/// How long a listing is good.
const FRESH: Duration = Duration::from_secs(10);

/// How many models are counted.
const COUNTED: usize = 4096;

/// A model that a person may choose. Its serde form is the one on the wire (WIRE, route 3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CatalogModel {
    /// `provider/name`.
    pub id: ModelId,
    /// The provider's part of the id.
    pub provider: String,
    /// What people call it.
    pub model_name: String,
    /// Whether it can be asked right now.
    pub has_api_key: bool,
    /// The variable where a key is looked for, where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_var: Option<String>,
    /// How often runs of this process, and what the host counted before, used it.
    pub use_count: u64,
}

impl CatalogModel {
    /// A model that can be asked, called by what follows the provider in its id.
    pub fn new(id: impl Into<ModelId>) -> Self {
        let id = id.into();
        let (provider, name) = id.as_str().split_once('/').unwrap_or((id.as_str(), id.as_str()));
        let (provider, model_name) = (provider.to_owned(), name.to_owned());
        Self { id, provider, model_name, has_api_key: true, api_key_var: None, use_count: 0 }
    }

    /// There is no key for it; the variable where one is looked for.
    #[must_use]
    pub fn without_key(mut self, var: Option<String>) -> Self {
        self.has_api_key = false;
        self.api_key_var = var;
        self
    }

    /// How often the host counted it before.
    #[must_use]
    pub fn used(mut self, times: u64) -> Self {
        self.use_count = times;
        self
    }
}

/// Says which models there are.
#[async_trait]
pub trait ModelCatalog: Send + Sync + 'static {
    /// All of them. Asked at most every ten seconds.
    ///
    /// # Errors
    /// When they cannot be listed.
    async fn models(&self) -> Result<Vec<CatalogModel>, ModelError>;
}

/// A list that does not change.
#[async_trait]
impl ModelCatalog for Vec<CatalogModel> {
    async fn models(&self) -> Result<Vec<CatalogModel>, ModelError> {
        Ok(self.clone())
    }
}

/// Whether the model of a session can be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelAuth {
    /// It can. Also where no model is selected, and where the catalogue does not know it.
    pub has_auth: bool,
    /// The variable where a key is looked for, where there is none.
    pub api_key_var: Option<String>,
}

/// What a controller knows of models.
#[derive(Default)]
pub(crate) struct Models {
    /// One listing at a time.
    listing: tokio::sync::Mutex<Option<(Instant, Arc<[CatalogModel]>)>>,
    used: Mutex<HashMap<ModelId, u64>>,
}

impl Models {
    /// A run begins with this model.
    pub(crate) fn count(&self, model: &ModelId) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        // People may choose names that nobody knows.
        if used.len() < COUNTED || used.contains_key(model) {
            *used.entry(model.clone()).or_default() += 1;
        }
    }
}

impl AgentController {
    /// The models that there are, by id: each once, with its use so far (SPEC M-19). Kept for ten seconds. Without a catalogue, the models
    /// that the controller and its modes name.
    ///
    /// # Errors
    /// [`ModelsUnavailable`](ControllerErrorKind::ModelsUnavailable).
    pub async fn models(&self) -> Result<Vec<CatalogModel>, ControllerError> {
        let listed = self.shared().listed_models().await?;
        let used = self.shared().models.used.lock().unwrap_or_else(PoisonError::into_inner);
        let counted = |model: &CatalogModel| {
            let more = used.get(&model.id).copied().unwrap_or(0);
            model.clone().used(model.use_count.saturating_add(more))
        };
        Ok(listed.iter().map(counted).collect())
    }

    /// Lists models anew the next time.
    pub async fn invalidate_models(&self) {
        *self.shared().models.listing.lock().await = None;
    }
}

impl Session {
    /// Whether the model that the next run uses can be asked (SPEC M-18).
    ///
    /// # Errors
    /// As [`AgentController::models`].
    pub async fn model_auth(&self) -> Result<ModelAuth, ControllerError> {
        let known = match self.model() {
            Some(model) => self.shared().listed_models().await?.iter().find(|known| known.id == model).cloned(),
            None => None,
        };
        Ok(known.map_or(ModelAuth { has_auth: true, api_key_var: None }, |known| ModelAuth {
            has_auth: known.has_api_key,
            api_key_var: known.api_key_var,
        }))
    }
}

impl Shared {
    async fn listed_models(&self) -> Result<Arc<[CatalogModel]>, ControllerError> {
        let mut listing = self.models.listing.lock().await;
        if let Some((at, listed)) = listing.as_ref()
            && at.elapsed() < FRESH
        {
            return Ok(listed.clone());
        }
        let mut models = match &self.config.catalog {
            Some(catalog) => catalog.models().await.map_err(|error| {
                ControllerError::new(ControllerErrorKind::ModelsUnavailable, "the models cannot be listed now; try again")
                    .with_source(error)
            })?,
            None => self.named_models(),
        };
        let mut seen = HashSet::new();
        models.retain(|model| !model.id.as_str().is_empty() && seen.insert(model.id.clone()));
        models.sort_by(|a, b| a.id.cmp(&b.id));
        let listed: Arc<[CatalogModel]> = models.into();
        *listing = Some((Instant::now(), listed.clone()));
        Ok(listed)
    }

    fn named_models(&self) -> Vec<CatalogModel> {
        let of_modes = self.config.modes.iter().filter_map(|prepared| prepared.mode.default_model());
        let named = of_modes.chain(&self.config.default_model).cloned();
        named
            .map(|model| match self.config.router.provider(&model) {
                Ok(_) => CatalogModel::new(model),
                Err(_) => CatalogModel::new(model).without_key(None),
            })
            .collect()
    }
}
