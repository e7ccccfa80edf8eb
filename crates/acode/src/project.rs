//! The folder that is worked on, and where its conversations are kept.

use std::path::{Path, PathBuf};

use etcetera::{AppStrategy, AppStrategyArgs};
use sha2::{Digest, Sha256};

/// A project: one folder, one store.
#[derive(Clone, Debug)]
pub(crate) struct Project {
    /// The folder, without symbolic links.
    pub(crate) folder: PathBuf,
    /// The data folder; exists.
    pub(crate) data: PathBuf,
    /// The user's configuration directory, where the system has one.
    pub(crate) config: Option<PathBuf>,
}

impl Project {
    /// The project of this folder.
    ///
    /// # Errors
    /// What could not be found or made, and what to do.
    pub(crate) fn open(folder: &Path, data: Option<&Path>) -> Result<Self, String> {
        let folder = folder.canonicalize().map_err(|error| format!("cannot open the folder {}: {error}", folder.display()))?;
        let data = match data {
            Some(data) => folder.join(data),
            None => user_data()?.join(name(&folder)),
        };
        make_private(&data)
            .map_err(|error| format!("cannot make the data folder {}: {error}; choose another with --data", data.display()))?;
        let data = data.canonicalize().map_err(|error| format!("cannot open the data folder {}: {error}", data.display()))?;
        let config = strategy().ok().map(|strategy| strategy.config_dir());
        Ok(Self { folder, data, config })
    }

    /// Where the store is.
    pub(crate) fn store(&self) -> PathBuf {
        self.data.join("store")
    }

    /// Where other processes reach the one that holds the store.
    pub(crate) fn socket(&self) -> PathBuf {
        self.data.join("socket")
    }

    /// The files of settings, the user's own first.
    pub(crate) fn settings(&self) -> impl Iterator<Item = PathBuf> {
        self.config.iter().chain([&self.data]).map(|folder| folder.join("settings.json"))
    }

    /// Who holds the store.
    pub(crate) fn owner(&self) -> PathBuf {
        self.data.join("owner")
    }
}

fn strategy() -> Result<impl AppStrategy, etcetera::HomeDirError> {
    let args = AppStrategyArgs { top_level_domain: "dev".into(), author: "agent-controller".into(), app_name: "acode".into() };
    etcetera::choose_app_strategy(args)
}

fn user_data() -> Result<PathBuf, String> {
    let strategy = strategy().map_err(|error| format!("cannot find your data directory ({error}); use --data DIR"))?;
    Ok(strategy.data_dir().join("projects"))
}

/// A readable name that no other folder has.
fn name(folder: &Path) -> String {
    let readable: String = folder
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' })
        .take(40)
        .collect();
    let hash = Sha256::digest(folder.as_os_str().as_encoded_bytes());
    let hash: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let readable = readable.trim_matches(['-', '.']);
    if readable.is_empty() { hash } else { format!("{readable}-{hash}") }
}

/// Conversations are nobody else's business.
fn make_private(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_folders_of_one_name_have_two_stores() {
        let (one, other) = (name(Path::new("/a/my project")), name(Path::new("/b/my project")));
        assert_ne!(one, other);
        assert!(one.starts_with("my-project-") && one.len() == "my-project-".len() + 16, "{one}");
        assert_eq!(name(Path::new("/")).len(), 16);
        assert_eq!(name(Path::new("/a/my project")), one);
    }

    #[test]
    fn a_data_folder_is_made_and_belongs_to_the_user_alone() {
        let dir = tempfile::tempdir().unwrap();
        let project = Project::open(dir.path(), Some(&dir.path().join("deep/data"))).unwrap();
        assert!(project.data.is_dir() && project.store().starts_with(&project.data));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(project.data.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        }
        std::fs::write(dir.path().join("file"), "").unwrap();
        let error = Project::open(dir.path(), Some(&dir.path().join("file/data"))).unwrap_err();
        assert!(error.contains("--data"), "{error}");
    }
}
