//! Compiled pipelines, kept between runs of the host.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use crate::metadata::ToolSchema;
use crate::pipeline::compile::{CompileFault, Origin, ToolNode, compile};
use crate::pipeline::definition::Definition;
use crate::state_file::{Changed, StateError, StateFile};

/// The name of the file in the host's folder of state.
pub const STORE_FILE: &str = "composed_tools.json";

/// Definitions by name. In memory; a [`StateFile`] keeps them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Store {
    tools: BTreeMap<String, Arc<Definition>>,
}

/// What [`Store::compile`] did.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Compiled {
    /// The definition is new, or another one than before.
    New(Arc<Definition>),
    /// The skill's text is what it was, so the definition is too.
    Unchanged(Arc<Definition>),
}

impl Store {
    /// Without definitions.
    pub fn new() -> Self {
        Self::default()
    }

    /// The file of a store in this folder.
    pub fn file(folder: impl Into<PathBuf>) -> StateFile {
        StateFile::new(folder.into().join(STORE_FILE), "tools")
    }

    /// What the file holds, and what of it could not be read: the file as a whole, or single definitions.
    ///
    /// # Errors
    ///
    /// When the system does not let the file be read.
    pub fn load(file: &StateFile) -> Result<(Self, Vec<String>), StateError> {
        let loaded = file.load()?;
        let mut problems: Vec<String> = loaded.corrupt.into_iter().collect();
        let mut store = Self::new();
        for (name, value) in loaded.entries {
            match serde_json::from_value::<Definition>(value) {
                Ok(definition) if definition.name == name => store.insert(definition),
                Ok(definition) => {
                    problems.push(format!("`{name}` holds `{}`, and is left out", definition.name));
                }
                Err(error) => problems.push(format!("`{name}` is no pipeline: {error}")),
            }
        }
        Ok((store, problems))
    }

    /// Writes all definitions; those that another process has added stay.
    ///
    /// # Errors
    ///
    /// When the system refuses; then the file is what it was.
    pub fn save(&self, file: &StateFile, time: &str) -> Result<Changed, StateError> {
        file.change(time, |entries| {
            for (name, definition) in &self.tools {
                if let Ok(value) = serde_json::to_value(&**definition) {
                    entries.insert(name.clone(), value);
                }
            }
            let mut sorted: Vec<(String, Value)> = std::mem::take(entries).into_iter().collect();
            sorted.sort_by(|a, b| a.0.cmp(&b.0));
            entries.extend(sorted);
        })
    }

    /// Compiles a skill, unless the definition that is there was made of the same text.
    ///
    /// # Errors
    ///
    /// All faults of the pipeline; what was stored of the skill before is then gone, for it is no longer the skill's.
    /// A name that another skill has already is a fault, too.
    pub fn compile(
        &mut self,
        origin: &Origin,
        schema: &ToolSchema,
        tools: &dyn Fn(&str) -> Option<ToolNode>,
    ) -> Result<Compiled, Vec<CompileFault>> {
        let name = crate::pipeline::name::tool_name(&origin.name);
        if let Some(stored) = self.tools.get(&name) {
            if stored.skill_name == origin.name && stored.skill_hash == origin.hash() {
                return Ok(Compiled::Unchanged(Arc::clone(stored)));
            }
            if stored.skill_name != origin.name {
                let message = format!("its name as a tool, `{name}`, is that of `{}`", stored.skill_name);
                return Err(vec![CompileFault::of(origin, message)]);
            }
        }
        self.tools.remove(&name);
        let definition = Arc::new(compile(origin, schema, tools)?);
        self.tools.insert(name, Arc::clone(&definition));
        Ok(Compiled::New(definition))
    }

    /// Adds a definition, in the place of one of the same name.
    pub fn insert(&mut self, definition: Definition) {
        self.tools.insert(definition.name.clone(), Arc::new(definition));
    }

    /// The definition of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Definition>> {
        self.tools.get(name)
    }

    /// Removes a definition.
    pub fn remove(&mut self, name: &str) -> Option<Arc<Definition>> {
        self.tools.remove(name)
    }

    /// All definitions, by name.
    pub fn definitions(&self) -> impl ExactSizeIterator<Item = &Arc<Definition>> {
        self.tools.values()
    }
}
