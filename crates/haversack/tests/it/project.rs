//! A project in a temporary folder, and prompts that count.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use haversack::agent_core::testing::{Answer, ScriptedModel};
use haversack::fs_tools::FsTools;
use haversack::prelude::*;
use haversack::{ConsentQuestion, Haversack, HaversackBuilder};
use serde_json::Value;

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

/// The file tools over a root, called by hand.
pub(crate) struct Tools(Vec<Arc<dyn Tool>>);

impl Tools {
    pub(crate) fn of(tools: &FsTools) -> Self {
        Self(tools.tools().unwrap())
    }

    pub(crate) fn get(&self, name: &str) -> &Arc<dyn Tool> {
        self.0.iter().find(|tool| *tool.spec().name == *name).unwrap()
    }

    /// What the model would read of it, or the error.
    pub(crate) async fn call(&self, name: &str, arguments: Value) -> Result<String, ToolError> {
        let output = self.get(name).call(arguments, ToolContext::detached("1")).await?;
        Ok(output.blocks.iter().filter_map(Block::as_text).collect())
    }
}
