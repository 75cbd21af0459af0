//! A project in a temporary folder, and prompts that count.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use haversack::agent_core::testing::{Answer, ScriptedModel};
use haversack::{ConsentQuestion, Haversack, HaversackBuilder};

pub(crate) struct Project {
    folder: tempfile::TempDir,
    asked: Arc<Mutex<Vec<ConsentQuestion>>>,
}

impl Project {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), asked: Arc::default() }
    }

    pub(crate) fn root(&self) -> PathBuf {
        let root = self.folder.path().join("project");
        std::fs::create_dir_all(&root).unwrap();
        root
    }

    pub(crate) fn consent_folder(&self) -> PathBuf {
        self.folder.path().join("answers")
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        let path = self.root().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn skill(&self, name: &str, more: &str, body: &str) {
        let text = format!("---\nname: {name}\ndescription: Does {name}.\n{more}---\n{body}");
        self.write(&format!(".agents/skills/{name}/SKILL.md"), &text);
    }

    /// A builder for this project whose user always gives the same answer.
    pub(crate) fn builder(&self, answer: Option<bool>) -> HaversackBuilder {
        let asked = Arc::clone(&self.asked);
        Haversack::builder(ScriptedModel::new([Answer::text("Done.")])).project(self.root()).consent(
            move |question: ConsentQuestion| {
                asked.lock().unwrap().push(question);
                async move { answer }
            },
        )
    }

    pub(crate) fn asked(&self) -> Vec<ConsentQuestion> {
        self.asked.lock().unwrap().clone()
    }
}
