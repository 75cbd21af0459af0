//! The tree for models and programs: thirteen actions, JSON in and JSON out.

mod look;
mod register;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use crate::capability::managed::ManagedTree;
use crate::capability::patch::{Patch, PatchAction, PatchError, PatchStatus};
use crate::capability::tree::CapabilityTree;
use crate::metadata::Word as _;
use crate::reply::{Arguments, Reply, payload};
use crate::state_file::StateFile;
use look::{find, inspect, tier, validate, validation, view};
use register::new_node;

/// The actions.
pub const ACTIONS: [&str; 13] = [
    "tree",
    "inspect",
    "validate",
    "diagnose",
    "generate_prompt",
    "generate_allowlist",
    "subtrees",
    "propose_register",
    "propose_update",
    "propose_routing",
    "propose_binding",
    "apply_patch",
    "revert_patch",
];

/// What is to be done with a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PatchStep {
    /// It is to change the tree.
    Apply,
    /// Its change is to be taken back.
    Revert,
}

/// Asks whoever decides about changes of the tree.
///
/// # Contract
///
/// An error is a refusal, with its reason. The future may be dropped at any await; nothing is changed then.
#[async_trait]
pub trait PatchApprover: Send + Sync {
    /// Whether this may be done with the patch.
    ///
    /// # Errors
    ///
    /// Why it may not.
    async fn approve(&self, step: PatchStep, patch: &Patch) -> Result<(), String>;
}

/// A tree with its patches, for the tool `capability_manage`. Clones share one tree.
///
/// A model may propose; [`apply_patch` and `revert_patch`](ACTIONS) need `approved: true` of the caller **and** the
/// agreement of the host's [`PatchApprover`].
///
/// ```
/// use haversack_skill_runtime::capability::{CapabilityManager, CapabilityNode, CapabilityTree, NodeKind};
/// use serde_json::json;
/// # use futures_util::FutureExt as _;
///
/// let mut tree = CapabilityTree::new();
/// tree.add(CapabilityNode::new("fs", "fs", NodeKind::Group, ""))?;
/// let manager = CapabilityManager::new(tree);
/// # async fn run(manager: &CapabilityManager) {
/// let reply = manager.call(&json!({"action": "tree"}), None).await;
/// assert_eq!(reply.value["data"][0]["id"], "fs");
/// # }
/// # run(&manager).now_or_never().unwrap();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct CapabilityManager(Arc<Inner>);

struct Inner {
    base: CapabilityTree,
    memory: Mutex<ManagedTree>,
    file: Option<StateFile>,
    subagents: Vec<String>,
    now: Box<dyn Fn() -> String + Send + Sync>,
}

impl fmt::Debug for CapabilityManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CapabilityManager").field("file", &self.0.file).finish_non_exhaustive()
    }
}

/// The name of the file of patches in a folder of state.
pub const PATCH_FILE: &str = "capability_patches.json";

impl CapabilityManager {
    /// Patches are kept in memory.
    pub fn new(tree: CapabilityTree) -> Self {
        Self::made(tree, None, Vec::new(), Box::new(String::new))
    }

    fn made(
        tree: CapabilityTree,
        file: Option<StateFile>,
        subagents: Vec<String>,
        now: Box<dyn Fn() -> String + Send + Sync>,
    ) -> Self {
        let memory = Mutex::new(ManagedTree::new(tree.clone()));
        Self(Arc::new(Inner { base: tree, memory, file, subagents, now }))
    }

    /// Patches are kept in this folder, and shared with all processes that use it. `now` is the time for the record, in
    /// the host's writing.
    pub fn with_folder(
        tree: CapabilityTree,
        folder: impl Into<std::path::PathBuf>,
        now: impl Fn() -> String + Send + Sync + 'static,
    ) -> Self {
        let file = StateFile::new(folder.into().join(PATCH_FILE), "patches");
        Self::made(tree, Some(file), Vec::new(), Box::new(now))
    }

    /// Sets the kinds of sub-agents that the host runs, for `subtrees`. Before the manager is cloned.
    #[must_use]
    pub fn with_subagents(self, kinds: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let kinds = kinds.into_iter().map(Into::into).collect();
        match Arc::try_unwrap(self.0) {
            Ok(inner) => Self(Arc::new(Inner { subagents: kinds, ..inner })),
            Err(shared) => Self(shared),
        }
    }

    /// The tree as it is now.
    ///
    /// # Errors
    ///
    /// When the file of patches cannot be read.
    pub fn tree(&self) -> Result<CapabilityTree, String> {
        self.read(|managed| managed.tree().clone()).map(|(tree, _)| tree)
    }

    /// Reads the tree; the second part is what was wrong with the stored patches.
    fn read<T>(&self, read: impl FnOnce(&ManagedTree) -> T) -> Result<(T, Vec<String>), String> {
        let Some(file) = &self.0.file else {
            return Ok((read(&self.0.memory.lock().unwrap_or_else(PoisonError::into_inner)), Vec::new()));
        };
        let loaded = file.load().map_err(|error| in_full(&error))?;
        let mut notes: Vec<String> = loaded.corrupt.into_iter().collect();
        let (managed, problems) = ManagedTree::replay(self.0.base.clone(), &loaded.entries);
        notes.extend(problems);
        Ok((read(&managed), notes))
    }

    /// Changes the tree, alone among all who share it.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut ManagedTree) -> Result<T, PatchError>,
    ) -> Result<(T, Vec<String>), String> {
        let Some(file) = &self.0.file else {
            let mut managed = self.0.memory.lock().unwrap_or_else(PoisonError::into_inner);
            return change(&mut managed).map(|done| (done, Vec::new())).map_err(|error| error.to_string());
        };
        let mut done = Err("nothing was done".to_owned());
        let mut notes = Vec::new();
        let changed = file.change(&(self.0.now)(), |entries| {
            let (mut managed, problems) = ManagedTree::replay(self.0.base.clone(), entries);
            notes = problems;
            done = change(&mut managed).map_err(|error| error.to_string());
            if done.is_ok() {
                managed.store(entries);
            }
        });
        let changed = changed.map_err(|error| in_full(&error))?;
        if let Some((kept, why)) = changed.set_aside {
            notes.push(format!(
                "the file of patches could not be read ({why}) and is kept as {}",
                kept.display()
            ));
        }
        Ok((done?, notes))
    }

    /// One call of `capability_manage`: an object with `action`, or `{payload}` with the same as a text, to
    /// `{action, success, data?, error?}`.
    ///
    /// # Cancel safety
    ///
    /// Dropped while the approver is asked, nothing is changed.
    pub async fn call(&self, arguments: &Value, approver: Option<&dyn PatchApprover>) -> Reply {
        let payload = match payload(arguments) {
            Ok(payload) => payload,
            Err(error) => return Reply::of_action("", Err(error)),
        };
        let action = payload.get("action").and_then(Value::as_str).unwrap_or_default();
        let Some(arguments) = Arguments::of(&payload).filter(|_| ACTIONS.contains(&action)) else {
            return Reply::of_action(action, Err(format!("`action` is none of {}", ACTIONS.join(", "))));
        };
        let result = match action {
            "apply_patch" => self.settle(PatchStep::Apply, arguments, approver).await,
            "revert_patch" => self.settle(PatchStep::Revert, arguments, approver).await,
            "propose_register" => self.register(arguments),
            "propose_update" | "propose_routing" | "propose_binding" => self.propose(action, arguments),
            _ => self.look(action, arguments),
        };
        Reply::of_action(action, result)
    }

    fn look(&self, action: &str, arguments: Arguments<'_>) -> Result<Value, String> {
        let (data, notes) = self.read(|managed| {
            let tree = managed.tree();
            match action {
                "tree" => view(tree, arguments),
                "inspect" => inspect(tree, arguments),
                "validate" => validate(tree, arguments),
                "diagnose" => Ok(tree.diagnosis()),
                "generate_prompt" => Ok(tree.prompt_for_tier(tier(arguments)?).into()),
                "generate_allowlist" => {
                    let tier = tier(arguments)?;
                    let tools = tree.allow_list(tier);
                    Ok(json!({"tier": tier.word(), "count": tools.len(), "tools": tools}))
                }
                _ => Ok(self.subtrees(tree)),
            }
        })?;
        data.map(|data| noted(data, notes))
    }

    fn subtrees(&self, tree: &CapabilityTree) -> Value {
        let found: Vec<Value> = tree
            .subagent_trees()
            .into_iter()
            .map(|(group, tools)| {
                json!({
                    "agentType": group.name,
                    "groupId": group.id,
                    "toolCount": tools.len(),
                    "registered": self.0.subagents.contains(&group.name),
                    "toolNames": tools,
                })
            })
            .collect();
        match found.is_empty() {
            true => json!({"subtrees": found, "note": "the tree has no groups in `subagent_trees`"}),
            false => json!({"subtrees": found}),
        }
    }

    fn register(&self, arguments: Arguments<'_>) -> Result<Value, String> {
        let node = new_node(arguments)?;
        let (patch, notes) = self.change(|managed| managed.propose_node(node).cloned())?;
        Ok(noted(as_json(&patch), notes))
    }

    fn propose(&self, action: &str, arguments: Arguments<'_>) -> Result<Value, String> {
        let wanted = arguments.required("nodeId")?;
        let updates = arguments.object("updates")?.ok_or("`updates` is required")?;
        let (dimension, action) = match action {
            "propose_routing" => (Some("routing"), PatchAction::Routing),
            "propose_binding" => (Some("skills"), PatchAction::Binding),
            _ => (None, PatchAction::Update),
        };
        if updates.is_empty() {
            return Err("`updates` names no field".to_owned());
        }
        let fields = match dimension {
            Some(dimension) if updates.get(dimension).is_none() => {
                Map::from_iter([(dimension.to_owned(), Value::Object(updates.clone()))])
            }
            _ => updates.clone(),
        };
        let ((patch, by_name), notes) = self.change(|managed| {
            let (id, by_name) = match find(managed.tree(), wanted) {
                Some((node, by_name)) => (node.id.clone(), by_name),
                None => (wanted.to_owned(), false),
            };
            Ok((managed.propose(action, &id, fields)?.clone(), by_name))
        })?;
        let data = match by_name {
            true => {
                let warning = format!("`{wanted}` is a name; its id is `{}`", patch.node());
                json!({"patch": patch, "matchedBy": "name", "warning": warning})
            }
            false => as_json(&patch),
        };
        Ok(noted(data, notes))
    }

    /// Applies or reverts, once everybody has agreed.
    async fn settle(
        &self,
        step: PatchStep,
        arguments: Arguments<'_>,
        approver: Option<&dyn PatchApprover>,
    ) -> Result<Value, String> {
        let id = arguments.required("patchId")?;
        let approved = arguments.get("approved") == Some(&Value::Bool(true));
        let not_approved = || format!("patch `{id}` is not approved; `approved` has to be true");
        if step == PatchStep::Revert && !approved {
            return Err(not_approved());
        }
        let (patch, _) =
            self.read(|managed| managed.patches().iter().find(|patch| patch.id == id).cloned())?;
        let patch = patch.ok_or_else(|| format!("there is no patch `{id}`"))?;
        let wanted = match step {
            PatchStep::Apply => PatchStatus::Proposed,
            PatchStep::Revert => PatchStatus::Applied,
        };
        if patch.status != wanted {
            let status = serde_json::to_value(patch.status).unwrap_or_default();
            return Err(format!("patch `{id}` is {}", status.as_str().unwrap_or_default()));
        }
        if !approved {
            return Err(not_approved());
        }
        let approver = approver.ok_or("the host has nobody who decides about changes of the tree")?;
        approver.approve(step, &patch).await.map_err(|why| format!("patch `{id}` was refused: {why}"))?;
        let ((patch, issues), notes) = self.change(|managed| {
            let patch = match step {
                PatchStep::Apply => managed.apply(id)?.clone(),
                PatchStep::Revert => managed.revert(id)?.clone(),
            };
            Ok((patch, validation(managed.tree(), &[1, 2, 3])))
        })?;
        let data = match step {
            PatchStep::Apply => json!({"patch": patch, "validation": issues}),
            PatchStep::Revert => json!({"original": patch, "validation": issues}),
        };
        Ok(noted(data, notes))
    }
}

fn as_json(patch: &Patch) -> Value {
    serde_json::to_value(patch).unwrap_or_default()
}

fn in_full(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

/// What was wrong with the store goes with the data.
fn noted(data: Value, notes: Vec<String>) -> Value {
    match data {
        data if notes.is_empty() => data,
        Value::Object(mut fields) => {
            fields.insert("storeWarnings".to_owned(), notes.into());
            fields.into()
        }
        data => json!({"result": data, "storeWarnings": notes}),
    }
}
