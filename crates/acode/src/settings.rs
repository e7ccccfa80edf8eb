//! What a person laid down in files, and what the flags of this command say: how models ask for tools, rules for single calls, and how far
//! commands are held.
//!
//! There are two files, `settings.json` in the user's configuration directory and the same in the data folder of the project. Both belong to
//! the person. There is none in the project itself: whoever wrote the project, or changes it, must not decide what may be done to the
//! machine.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use agent_controller::{
    core::{ModelId, PermissionRules, Policy},
    llm::ToolCallMode,
    workspace::{LocalFilesystemOptions, LocalSandboxOptions},
};
use serde::Deserialize;

use crate::{args::Options, exit::Failure, project::Project};

/// All that is laid down, the flags included.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Settings {
    /// How models ask for tools, by what their id begins with; the longest beginning counts.
    tool_calls: BTreeMap<String, ToolCallMode>,
    /// Rules of the files, for all conversations.
    pub(crate) rules: PermissionRules,
    /// Rules of the flags, to be kept with the conversation.
    pub(crate) given: Vec<(String, Policy)>,
    network: bool,
    writable: Vec<PathBuf>,
}

/// A file.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct File {
    tool_calls: Option<ToolCalls>,
    permissions: Permissions,
    network: Option<bool>,
    writable: Vec<PathBuf>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum ToolCalls {
    /// For all models.
    All(String),
    /// By what the id of a model begins with.
    ByModel(BTreeMap<String, String>),
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Permissions {
    allow: Vec<String>,
    ask: Vec<String>,
    deny: Vec<String>,
}

impl Settings {
    /// Reads the files and adds the flags.
    ///
    /// # Errors
    /// When a file is there and cannot be read or understood: a denial with a slip of the pen must not count as none.
    pub(crate) fn read(project: &Project, options: &Options) -> Result<Self, Failure> {
        let mut settings = Self::default();
        for path in project.settings() {
            settings.add(&path)?;
        }
        if let Some(mode) = options.tool_calls {
            settings.tool_calls = BTreeMap::from([(String::new(), mode)]);
        }
        let given = [(&options.allow, Policy::Allow), (&options.ask, Policy::Ask), (&options.deny, Policy::Deny)];
        settings.given = given.into_iter().flat_map(|(list, policy)| list.iter().map(move |text| (text.clone(), policy))).collect();
        settings.network |= options.allow_network;
        settings.writable.extend(options.writable.iter().map(|path| project.folder.join(path)));
        Ok(settings)
    }

    fn add(&mut self, path: &Path) -> Result<(), Failure> {
        let broken = |why: String| Failure::usage(format!("cannot use the settings in {}: {why}", path.display()));
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(broken(error.to_string())),
        };
        let file: File = serde_json::from_str(&text).map_err(|error| broken(error.to_string()))?;
        let modes = match file.tool_calls {
            None => BTreeMap::new(),
            Some(ToolCalls::All(mode)) => BTreeMap::from([(String::new(), mode)]),
            Some(ToolCalls::ByModel(modes)) => modes,
        };
        for (model, mode) in modes {
            self.tool_calls.insert(model, mode.parse().map_err(|error| broken(format!("{error}")))?);
        }
        let Permissions { allow, ask, deny } = file.permissions;
        let mut rules = PermissionRules::default();
        for (list, policy) in [(allow, Policy::Allow), (ask, Policy::Ask), (deny, Policy::Deny)] {
            for pattern in list {
                let one = PermissionRules { calls: BTreeMap::from([(pattern, policy)]), ..PermissionRules::default() };
                rules = rules.with(&one);
            }
        }
        self.rules = self.rules.with(&rules);
        self.network = file.network.unwrap_or(self.network);
        self.writable.extend(file.writable);
        Ok(())
    }

    /// How a model asks for tools; `None` leaves it to its provider.
    pub(crate) fn tool_calls(&self, model: &ModelId) -> Option<ToolCallMode> {
        let fits = self.tool_calls.iter().filter(|(begins, _)| model.as_str().starts_with(begins.as_str()));
        fits.max_by_key(|(begins, _)| begins.len()).map(|(_, mode)| *mode)
    }

    /// How far files and commands are held.
    pub(crate) fn limits(&self) -> (LocalFilesystemOptions, LocalSandboxOptions) {
        let (mut files, mut commands) = (LocalFilesystemOptions::default(), LocalSandboxOptions::default());
        files.writable.clone_from(&self.writable);
        commands.writable.clone_from(&self.writable);
        commands.network = self.network;
        (files, commands)
    }
}

#[cfg(test)]
mod tests;
