use ac_core::{CancelToken, EventBody, ModelId, Role, ThreadId};
use ac_storage::domain::MessageQuery;

use super::Session;
use crate::{ControllerError, ControllerErrorKind, TitleGenerator, feed::About, title::tidy};

/// Set in the metadata of a thread that a person named: no model names it (SPEC H-30, H-31).
pub(crate) const PINNED: &str = "titlePinned";

/// How many of the newest messages a title is made from.
const MESSAGES: usize = 20;

/// How much of each, in characters.
const EXCERPT: usize = 2000;

impl Session {
    /// Has a model name a thread of the resource (the bound one, where none is given) from its newest messages, also where it has a title
    /// (SPEC C-42). The new title; `None` where the model had none, and nothing changed then.
    ///
    /// # Errors
    /// [`ThreadNotFound`](ControllerErrorKind::ThreadNotFound); [`NothingToName`](ControllerErrorKind::NothingToName) where nobody said
    /// anything yet; [`NoModel`](ControllerErrorKind::NoModel); [`ModelsUnavailable`](ControllerErrorKind::ModelsUnavailable) where the model
    /// did not answer.
    pub async fn generate_title(&self, thread: Option<&ThreadId>, model: Option<&ModelId>) -> Result<Option<String>, ControllerError> {
        let thread = self.named_or_bound(thread)?;
        let generator = self.shared().config.titles.clone().unwrap_or_default();
        self.name_thread(&thread, &generator, model, true).await
    }

    async fn name_thread(
        &self,
        thread: &ThreadId,
        generator: &TitleGenerator,
        model: Option<&ModelId>,
        anew: bool,
    ) -> Result<Option<String>, ControllerError> {
        self.shared().owned_thread(thread, self.resource()).await?;
        let query = MessageQuery { newest_first: true, limit: MESSAGES, ..MessageQuery::default() };
        let mut newest = self.shared().storage.messages().page(thread, &query).await?.items;
        newest.reverse();
        let said = newest.iter().filter(|stored| matches!(stored.message.role, Role::User | Role::Assistant));
        if !said.clone().any(|stored| stored.message.role == Role::User) {
            return Err(ControllerError::new(ControllerErrorKind::NothingToName, "nobody said anything on this thread yet"));
        }
        let lines: Vec<String> = said
            .map(|stored| {
                let who = if stored.message.role == Role::User { "User" } else { "Assistant" };
                format!("{who}: {}", stored.message.text().chars().take(EXCERPT).collect::<String>())
            })
            .collect();
        let model = model.cloned().or_else(|| generator.model.clone()).or_else(|| self.model());
        let model = model.ok_or_else(|| ControllerError::new(ControllerErrorKind::NoModel, "no model is there to name the thread"))?;
        let question = format!("Name this conversation.\n\n{}", lines.join("\n\n"));
        let cancel = CancelToken::clone(&self.shared().stop);
        let answer = self.shared().ask_model(&model, &generator.instructions, question, generator.timeout, &cancel).await;
        let answer = answer.map_err(|error| {
            ControllerError::new(ControllerErrorKind::ModelsUnavailable, "the model that names threads did not answer").with_source(error)
        })?;
        let title = tidy(&answer.text);
        if title.is_empty() {
            return Ok(None);
        }
        let mut named = false;
        self.change_thread(thread, |info| {
            // A person may have named it meanwhile.
            named = anew || info.title.is_empty();
            if named {
                info.title.clone_from(&title);
                info.metadata.insert(PINNED.to_owned(), false.into());
            }
        })
        .await?;
        if !named {
            return Ok(None);
        }
        self.tell(About::thread(thread), EventBody::ThreadTitleUpdated { thread: thread.clone(), title: title.clone() });
        Ok(Some(title))
    }

    /// Names a thread that has no title after a run on it, by a task of its own.
    pub(crate) fn name_soon(&self, thread: &ThreadId) {
        let Some(generator) = self.shared().config.titles.clone() else { return };
        let (session, thread) = (self.clone(), thread.clone());
        self.spawn(async move {
            let stop = session.shared().stop.clone();
            let naming = async {
                match session.shared().owned_thread(&thread, session.resource()).await {
                    Ok(info) if info.title.is_empty() => session.name_thread(&thread, &generator, None, false).await.map(drop),
                    Ok(_) => Ok(()),
                    Err(error) => Err(error),
                }
            };
            tokio::select! {
                named = naming => if let Err(error) = named {
                    tracing::debug!(code = error.code(), "a thread was not named: {error}");
                },
                () = stop.cancelled() => {}
            }
        });
    }
}
