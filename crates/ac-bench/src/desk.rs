//! The controller that is measured: as an embedder would make it, with the durable store and the provider over HTTP.

use std::sync::Arc;

use ac_controller::{AgentConfig, AgentController, Mode};
use ac_core::{Tool, ToolCategory, ToolContext, ToolDefinition, ToolEffect, ToolError, ToolOutcome, ToolOutput};
use ac_llm::{OpenAiCompatible, ReqwestTransport};
use ac_storage::{MemoryStorage, SledOptions, Storage};
use ac_tools::AskUser;
use async_trait::async_trait;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::trouble::Trouble;

/// A controller and the folder of its store, which goes with it.
pub(crate) struct Desk {
    pub(crate) controller: AgentController,
    _folder: Option<TempDir>,
}

impl Desk {
    /// On sled, in a new folder.
    pub(crate) async fn durable(url: &str, model: &str) -> Result<Self, Trouble> {
        let folder = tempfile::tempdir()?;
        let storage = SledOptions::new(folder.path().join("store")).open().await?;
        Self::on(Arc::new(storage), Some(folder), url, model)
    }

    /// In memory alone.
    pub(crate) fn volatile(url: &str, model: &str) -> Result<Self, Trouble> {
        Self::on(Arc::new(MemoryStorage::new()), None, url, model)
    }

    fn on(storage: Arc<dyn Storage>, folder: Option<TempDir>, url: &str, model: &str) -> Result<Self, Trouble> {
        let mut settings = ac_controller::RuntimeSettings::default();
        // The window of the reference.
        settings.history = Some(40);
        let controller = AgentController::builder()
            .id("bench")
            .storage(storage)
            .provider(OpenAiCompatible::new(url, Arc::new(ReqwestTransport::new()?)))
            .runtime(settings)
            .agent(AgentConfig::new("agent").instructions("Work.").tools([Arc::new(AskUser) as Arc<dyn Tool>, Arc::new(Note)]))
            .mode(Mode::new("build").instructions("Build.").model(format!("bench/{model}")))
            .build()?;
        Ok(Self { controller, _folder: folder })
    }
}

/// A tool that costs nothing.
struct Note;

#[async_trait]
impl Tool for Note {
    fn definition(&self) -> ToolDefinition {
        let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
        ToolDefinition::new("note", "Notes a line.", schema).category(ToolCategory::Read).effect(ToolEffect::ReadOnly)
    }

    async fn call(&self, _args: Value, _cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        Ok(ToolOutcome::Done(ToolOutput::text("noted")))
    }
}
