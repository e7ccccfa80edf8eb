//! Files of the project, read for showing: confined to the folder, and never more than a person would read.

use std::{future::Future, pin::Pin, sync::Arc};

type Text = Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;

/// A way to read files.
#[derive(Clone)]
pub(crate) struct Files(Arc<dyn Fn(String) -> Text + Send + Sync>);

impl Files {
    /// Reads with this.
    pub(crate) fn new<F>(read: impl Fn(String) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<String, String>> + Send + 'static,
    {
        Self(Arc::new(move |path| Box::pin(read(path))))
    }

    /// The text of a file.
    ///
    /// # Errors
    /// Why it cannot be shown.
    pub(crate) async fn text(&self, path: &str) -> Result<String, String> {
        if path.is_empty() {
            return Err("no path was given".into());
        }
        (self.0)(path.to_owned()).await
    }
}

impl std::fmt::Debug for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Files")
    }
}
