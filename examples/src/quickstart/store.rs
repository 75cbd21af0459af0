//! Sessions in files.

use std::path::Path;

use haversack::prelude::Session;

/// Reads a session.
///
/// # Errors
///
/// One line that names the file and what is wrong with it.
pub fn load(file: &Path) -> Result<Session, String> {
    let text = std::fs::read(file).map_err(|e| format!("cannot read the session {}: {e}", file.display()))?;
    serde_json::from_slice(&text).map_err(|e| format!("{} is not a session: {e}", file.display()))
}

/// Writes a session beside its file and renames it, so that a crash leaves the old one or the new one.
///
/// # Errors
///
/// One line that names the file and what is wrong.
pub fn save(file: &Path, session: &Session) -> Result<(), String> {
    let write = || -> std::io::Result<()> {
        let folder = file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut temporary = tempfile::NamedTempFile::new_in(folder)?;
        serde_json::to_writer_pretty(&mut temporary, session)?;
        temporary.as_file().sync_all()?;
        temporary.persist(file)?;
        Ok(())
    };
    write().map_err(|e| format!("cannot save the session in {}: {e}", file.display()))
}
