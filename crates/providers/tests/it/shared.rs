//! The recorded exchanges, which lie outside the repository.

use std::path::PathBuf;

use serde_json::Value;

/// The records; none, said loudly, where the shared folder is missing altogether.
pub(crate) fn records() -> Option<Vec<Value>> {
    let shared = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    if !shared.is_dir() {
        eprintln!("SKIPPED: no recorded exchanges, {} is missing", shared.display());
        return None;
    }
    let file = shared.join("corpus/providers/visible.jsonl");
    let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    Some(text.lines().map(|line| serde_json::from_str(line).expect("a record")).collect())
}
