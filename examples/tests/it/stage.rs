//! What the tests share: a place for notes, captured output, and a look at the processes.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use haversack::mcp::environment::Environment;
use haversack_examples::quickstart::Options;
use haversack_examples::terminal::Terminal;

/// A folder for one test, with the notes of its server.
pub(crate) struct Stage {
    pub(crate) folder: tempfile::TempDir,
    output: Arc<Mutex<String>>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), output: Arc::default() }
    }

    pub(crate) fn notes_file(&self) -> PathBuf {
        self.folder.path().join("notes.json")
    }

    pub(crate) fn notes(&self) -> Vec<haversack_examples::field_notes::Note> {
        haversack_examples::field_notes::read_notes(&self.notes_file()).unwrap()
    }

    pub(crate) fn options(&self) -> Options {
        let mut options = Options::new(workspace());
        options.environment = std::env::vars_os()
            .chain([
                ("FIELD_NOTES_SERVER".into(), env!("CARGO_BIN_EXE_field-notes").into()),
                ("FIELD_NOTES_FILE".into(), self.notes_file().into()),
            ])
            .collect::<Environment>();
        options
    }

    pub(crate) fn terminal(&self, answers: &[&str]) -> Terminal {
        self.watched_terminal(answers, |_| {})
    }

    /// A terminal whose output is looked at as it comes.
    pub(crate) fn watched_terminal(
        &self,
        answers: &[&str],
        watch: impl Fn(&str) + Send + Sync + 'static,
    ) -> Terminal {
        let output = Arc::clone(&self.output);
        Terminal::scripted(answers, move |text| {
            let mut output = output.lock().unwrap();
            output.push_str(text);
            watch(&output);
        })
    }

    pub(crate) fn output(&self) -> String {
        self.output.lock().unwrap().clone()
    }

    /// The processes whose command line names this stage's notes.
    pub(crate) fn processes(&self) -> Vec<String> {
        let needle = self.notes_file().to_string_lossy().into_owned();
        let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
        let lines = entries.flatten().filter_map(|e| std::fs::read(e.path().join("cmdline")).ok());
        lines
            .map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " "))
            .filter(|line| {
                line.contains("field-notes") && !line.contains("quickstart") && line.contains(&needle)
            })
            .collect()
    }
}

pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("workspace")
}
