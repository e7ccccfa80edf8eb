//! The folder of data that some tests compare against.

use std::path::{Path, PathBuf};

/// A file or folder of the shared data: under `AC_SHARED`, else under `../shared` beside the checkout.
///
/// `None` where the data is absent. A test then says that it was skipped, and passes:
///
/// ```
/// let Some(golden) = ac_testkit::shared::data("cases/golden") else { return println!("skipped: no shared data") };
/// # drop(golden);
/// ```
pub fn data(path: impl AsRef<Path>) -> Option<PathBuf> {
    let root = std::env::var_os("AC_SHARED").map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    Some(root.join(path)).filter(|path| path.exists())
}
