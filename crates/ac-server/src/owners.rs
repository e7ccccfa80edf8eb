use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::{Arc, Mutex},
};

use ac_core::{ControllerId, ResourceId, SessionKey};
use ac_storage::{SessionId, Storage, StorageError, StorageErrorKind, domain::ThreadQuery};
use serde::{Deserialize, Serialize};

use crate::{Principal, failure::Failure, limits::lock, server::Served};

/// To whom resources belong: to the principal that created them. Kept in the store, beside the sessions.
#[derive(Debug, Default)]
pub(crate) struct Owners(Mutex<HashMap<(String, ResourceId), Arc<str>>>);

#[derive(Serialize, Deserialize)]
struct Row {
    schema: u32,
    principal: Arc<str>,
}

/// What a principal may do with a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// It is theirs, or they may use all.
    Granted,
    /// It is nobody's yet: looking at it shows nothing, using it makes it theirs.
    Free,
}

impl Owners {
    /// The id under which the rows are kept, as if it were a controller's.
    pub(crate) const ROWS: &str = "ac-server.owners";
    /// How many owners are remembered. They never change, so forgetting them costs a look at the store.
    const REMEMBERED: usize = 10_000;

    fn id(resource: &ResourceId) -> SessionId {
        SessionId { controller: ControllerId::from(Self::ROWS), key: SessionKey::from(resource.clone()) }
    }

    async fn owner(&self, served: &Served, resource: &ResourceId) -> Result<Option<Arc<str>>, Failure> {
        let place = (served.name.clone(), resource.clone());
        if let Some(known) = lock(&self.0).get(&place) {
            return Ok(Some(known.clone()));
        }
        let storage = served.controller.storage();
        let Some(stored) = storage.sessions().load(&Self::id(resource)).await.map_err(unavailable)? else { return Ok(None) };
        let row: Row = serde_json::from_str(stored.value.get()).map_err(|_| {
            tracing::error!("who owns a resource cannot be read; nobody may use it");
            Failure::new(http::StatusCode::INTERNAL_SERVER_ERROR, "storage.corrupt", "who owns this resource cannot be read")
        })?;
        let mut known = lock(&self.0);
        if known.len() >= Self::REMEMBERED {
            known.clear();
        }
        known.insert(place, row.principal.clone());
        Ok(Some(row.principal))
    }

    /// Whether a principal may use a resource.
    ///
    /// # Errors
    /// 404, where it belongs to somebody else.
    pub(crate) async fn check(&self, served: &Served, resource: &ResourceId, who: &Principal) -> Result<Access, Failure> {
        match self.owner(served, resource).await? {
            Some(owner) if owner == who.name || who.all => Ok(Access::Granted),
            Some(_) => Err(Failure::no_resource()),
            // What a host made without saying for whom is nobody's to take.
            None if !who.all && has_threads(served.controller.storage().as_ref(), resource).await? => Err(Failure::no_resource()),
            None => Ok(Access::Free),
        }
    }

    /// Makes a resource theirs, if it is nobody's.
    ///
    /// # Errors
    /// 404, where it belongs to somebody else, also to somebody who was faster.
    pub(crate) async fn claim(&self, served: &Served, resource: &ResourceId, who: &Principal) -> Result<(), Failure> {
        if self.check(served, resource, who).await? == Access::Granted {
            return Ok(());
        }
        let row = Row { schema: 1, principal: who.name.clone() };
        let body = serde_json::value::to_raw_value(&row).map_err(|_| Failure::no_resource())?;
        match served.controller.storage().sessions().save(&Self::id(resource), None, &body).await {
            Ok(_) => Ok(()),
            Err(error) if matches!(error.kind(), StorageErrorKind::Conflict | StorageErrorKind::Unknown) => {
                match self.check(served, resource, who).await? {
                    Access::Granted => Ok(()),
                    Access::Free => Err(unavailable(error)),
                }
            }
            Err(error) => Err(unavailable(error)),
        }
    }

    /// The resources that a principal may use, in order.
    pub(crate) async fn resources(&self, served: &Served, who: &Principal) -> Result<BTreeSet<ResourceId>, Failure> {
        let storage = served.controller.storage();
        let (mut out, mut looked_at) = (BTreeSet::new(), HashSet::new());
        for rows in [ControllerId::from(Self::ROWS), served.controller.id().clone()] {
            let mut after: Option<String> = None;
            loop {
                let page = storage.sessions().list(&rows, after.as_deref(), 256).await.map_err(unavailable)?;
                for id in page.items {
                    let resource = id.key.resource;
                    if looked_at.insert(resource.clone()) && self.check(served, &resource, who).await.is_ok() {
                        out.insert(resource);
                    }
                }
                match page.next {
                    Some(next) => after = Some(next),
                    None => break,
                }
            }
        }
        Ok(out)
    }
}

async fn has_threads(storage: &dyn Storage, resource: &ResourceId) -> Result<bool, Failure> {
    let query = ThreadQuery { resource: Some(resource.clone()), hidden: true, limit: 1, ..ThreadQuery::default() };
    Ok(!storage.threads().list(&query).await.map_err(unavailable)?.items.is_empty())
}

fn unavailable(error: StorageError) -> Failure {
    ac_controller::ControllerError::from(error).into()
}
