use std::collections::BTreeSet;

use ac_core::ResourceId;
use ac_storage::domain::ThreadQuery;

use crate::{AgentController, ControllerError};

/// How many threads are read at once.
const PAGE: usize = 256;

impl AgentController {
    /// Whose threads this controller has, in the order of their ids (SPEC C-43). Reads every thread: meant for administration, not for each
    /// request. Who may know of whom is for the caller to decide.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn known_resources(&self) -> Result<Vec<ResourceId>, ControllerError> {
        let mut known = BTreeSet::new();
        let mut query = ThreadQuery { limit: PAGE, ..ThreadQuery::default() };
        loop {
            let page = self.threads(&query).await?;
            known.extend(page.items.into_iter().map(|thread| thread.resource));
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(known.into_iter().collect()),
            }
        }
    }
}
