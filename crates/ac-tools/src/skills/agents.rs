use std::path::{Path, PathBuf};

use ac_workspace::{Workspace, WorkspaceError, text::Text};

/// The file in which a folder tells agents how to work in it.
pub const AGENTS_FILE: &str = "AGENTS.md";

/// What `AGENTS.md` says, in the workspace folder and in each folder down to `folder`, the nearest last so that it has the last word. At
/// most `max_bytes` of text; of what does not fit, the beginning of the farther files goes first. `None` where nothing is said.
///
/// # Errors
/// When `folder` leads outside of the workspace. A file that is missing or that cannot be read says nothing.
pub async fn agents_instructions(workspace: &Workspace, folder: &Path, max_bytes: usize) -> Result<Option<String>, WorkspaceError> {
    let files = workspace.filesystem();
    let folder = files.resolve(folder).await?;
    let places: Vec<PathBuf> = folder.ancestors().filter(|place| *place != Path::new(".")).map(|place| place.join(AGENTS_FILE)).collect();
    let (mut parts, mut left) = (Vec::new(), max_bytes);
    // The nearest first: it is the one to keep.
    for path in places {
        let Ok(content) = files.read(&path, 1 << 20).await else { continue };
        let Some(text) = Text::decode(&content.bytes) else { continue };
        let body = text.content.trim();
        if body.is_empty() || left == 0 {
            continue;
        }
        let kept = crate::workspace::clip(body, left);
        let cut = if kept.len() < body.len() { "\n[… cut: too long …]" } else { "" };
        left -= kept.len();
        parts.push(format!("From {}:\n\n{kept}{cut}\n", path.display()));
    }
    parts.reverse();
    Ok((!parts.is_empty()).then(|| parts.join("\n")))
}
