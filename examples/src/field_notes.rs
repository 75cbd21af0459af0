//! The `field-notes` MCP server: three tools over a JSON file, built on the official SDK.
//!
//! It exists so that the first run talks to an implementation of the protocol that is not ours.

use std::path::{Path, PathBuf};

use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ContentBlock, Implementation, ServerCapabilities, ServerConfig};
use rmcp::{ServerHandler, ServiceExt as _, schemars, tool, tool_handler, tool_router};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

/// The most notes that one file may hold; a note more is refused.
const MAX_NOTES: usize = 10_000;

/// Serves the tools over standard input and output until the client closes them.
pub async fn serve(file: PathBuf) -> Result<(), Box<dyn std::error::Error>> {
    let service = FieldNotes { file, writing: Mutex::new(()) }.serve(rmcp::transport::stdio()).await?;
    service.waiting().await?;
    Ok(())
}

/// One stored note.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Note {
    /// Counts up from one.
    pub id: usize,
    /// What was seen and where.
    pub title: String,
    /// The note.
    pub text: String,
    /// Words to find it by.
    #[serde(default)]
    pub tags: Vec<String>,
}

/// Reads the notes of a file; a file that is not there holds none.
pub fn read_notes(file: &Path) -> std::io::Result<Vec<Note>> {
    match std::fs::read(file) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(std::io::Error::other),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(e),
    }
}

struct FieldNotes {
    file: PathBuf,
    /// Held from reading to renaming, so that two calls at once do not lose a note.
    writing: Mutex<()>,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct AddNote {
    /// What was seen and where, in at most eight words.
    title: String,
    /// The note itself.
    text: String,
    /// Tags of the archive.
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct SearchNotes {
    /// A word that has to occur in the title, the text or the tags. Case does not matter.
    query: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct ListNotes {
    /// The most notes to return, newest first. Default 20.
    limit: Option<usize>,
}

#[tool_router]
impl FieldNotes {
    #[tool(
        description = "Add a note to the archive: store, record or write down what was seen.",
        annotations(read_only_hint = false, destructive_hint = false)
    )]
    async fn add_note(&self, Parameters(note): Parameters<AddNote>) -> CallToolResult {
        let _guard = self.writing.lock().await;
        answer(self.add(note))
    }

    #[tool(
        description = "Search the archive: find earlier notes by a word and count them.",
        annotations(read_only_hint = true)
    )]
    async fn search_notes(&self, Parameters(search): Parameters<SearchNotes>) -> CallToolResult {
        let word = search.query.to_lowercase();
        answer(read_notes(&self.file).map(|notes| {
            let found: Vec<_> = notes.into_iter().filter(|n| n.mentions(&word)).collect();
            format!("{} found for \"{}\"{}", count(found.len()), search.query, listing(&found))
        }))
    }

    #[tool(description = "List the newest notes of the archive.", annotations(read_only_hint = true))]
    async fn list_notes(&self, Parameters(list): Parameters<ListNotes>) -> CallToolResult {
        answer(read_notes(&self.file).map(|notes| {
            let newest: Vec<_> = notes.into_iter().rev().take(list.limit.unwrap_or(20)).collect();
            format!("{}{}", count(newest.len()), listing(&newest))
        }))
    }
}

impl FieldNotes {
    fn add(&self, note: AddNote) -> std::io::Result<String> {
        if note.title.trim().is_empty() {
            return Err(std::io::Error::other("a note needs a title"));
        }
        let mut notes = read_notes(&self.file)?;
        if notes.len() >= MAX_NOTES {
            return Err(std::io::Error::other(format!("the archive is full: {MAX_NOTES} notes")));
        }
        let id = notes.last().map_or(1, |n| n.id + 1);
        let tags = if note.tags.is_empty() { "none".to_owned() } else { note.tags.join(", ") };
        let said = format!("stored as note {id}: {} (tags: {tags})", note.title);
        notes.push(Note { id, title: note.title, text: note.text, tags: note.tags });
        write_whole(&self.file, &notes)?;
        Ok(said)
    }
}

impl Note {
    fn mentions(&self, word: &str) -> bool {
        let fields = [&self.title, &self.text].into_iter().chain(&self.tags);
        fields.into_iter().any(|f| f.to_lowercase().contains(word))
    }
}

#[tool_handler]
impl ServerHandler for FieldNotes {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("field-notes", env!("CARGO_PKG_VERSION")))
            .with_instructions(
                "Notes of people who walk round a pond. Search before you say that nothing is known.",
            )
    }
}

/// A failure is a result that says so: the model can react to it.
fn answer(result: std::io::Result<String>) -> CallToolResult {
    match result {
        Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
        Err(error) => CallToolResult::error(vec![ContentBlock::text(error.to_string())]),
    }
}

fn count(n: usize) -> String {
    if n == 1 { "1 note".to_owned() } else { format!("{n} notes") }
}

fn listing(notes: &[Note]) -> String {
    notes.iter().map(|n| format!("\n- {}: {} [{}]", n.id, n.title, n.tags.join(", "))).collect()
}

/// Writes beside the file and renames, so that a reader never sees half a file.
fn write_whole(file: &Path, notes: &[Note]) -> std::io::Result<()> {
    let folder = file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut temporary = tempfile::NamedTempFile::new_in(folder)?;
    serde_json::to_writer_pretty(&mut temporary, notes)?;
    temporary.persist(file)?;
    Ok(())
}
