//! The server's state: what is served now, who is told when that changes, and what looks at the disk.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use haversack_agent_core::tool::ToolError;
use haversack_skill_runtime::pipeline::Store;
use haversack_skills::{Limits, Registry, Rescan, Roots};
use rmcp::model::CallToolResult;
use rmcp::service::ClientSink;
use serde_json::Value;
use tokio::sync::watch;

use crate::call::{Running, Step};
use crate::catalogue::Catalogue;
use crate::desk;
use crate::host::Host;
use crate::manifest::Manifests;
use crate::parked::{NoRandomness, Parked};
use crate::render;

/// How often the disk is looked at where the system does not tell of changes.
pub const LOOK_EVERY: Duration = Duration::from_secs(2);

/// How long one client may take to be told of a change.
const TELL_LIMIT: Duration = Duration::from_secs(5);

/// Folders of skills, served. Cheap to clone; all clones are the same server.
///
/// ```
/// use haversack_skill_server::{Host, SkillServer};
/// use haversack_skills::{Root, Roots};
///
/// # let folder = tempfile::tempdir()?;
/// # std::fs::create_dir(folder.path().join("tidy"))?;
/// # std::fs::write(folder.path().join("tidy/SKILL.md"), "---\nname: tidy\ndescription: Tidies up.\n---\nTidy up.\n")?;
/// let roots = Roots::new().with_root(Root::user(folder.path()));
/// let server = SkillServer::new(&roots, Host::new())?;
/// assert_eq!(server.catalogue().skills()[0].tool_name(), Some("tidy"));
///
/// // `handler` speaks MCP on any transport of rmcp.
/// let handler = server.handler();
/// # let _ = handler;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct SkillServer(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) host: Host,
    pub(crate) catalogue: RwLock<Arc<Catalogue>>,
    pub(crate) manifests: Manifests,
    pub(crate) parked: Parked,
    pub(crate) changed: watch::Sender<u64>,
    disk: Mutex<Disk>,
    clients: Mutex<Vec<ClientSink>>,
}

/// What a look at the disk needs; held for the whole look, so that an older one never replaces a newer one.
struct Disk {
    registry: Registry,
    store: Store,
}

/// There is no skill of this name that can be called.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no skill `{0}` that can be called; list the skills to see what there is, and why")]
pub struct NoTool(pub String);

impl SkillServer {
    /// Looks at the disk for the first time. Reads files: call it before the runtime is busy, or where blocking is fine.
    ///
    /// # Errors
    ///
    /// When the system has no random bytes. Folders that cannot be read are no error: they hold no skills, and may later.
    pub fn new(roots: &Roots, host: Host) -> Result<Self, NoRandomness> {
        let registry = Registry::scan(roots, &Limits::default());
        let mut store = Store::new();
        let catalogue = Catalogue::build(&registry, &host, &mut store);
        Ok(Self(Arc::new(Inner {
            host,
            catalogue: RwLock::new(Arc::new(catalogue)),
            manifests: Manifests::default(),
            parked: Parked::new()?,
            changed: watch::Sender::new(0),
            disk: Mutex::new(Disk { registry, store }),
            clients: Mutex::default(),
        })))
    }

    /// What is served now.
    #[must_use]
    pub fn catalogue(&self) -> Arc<Catalogue> {
        Arc::clone(&self.0.catalogue.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Calls a skill, by its name or that of its tool, with nobody to ask: what wants an approval that was not given
    /// beforehand is refused. `told` hears how far the call is.
    ///
    /// Dropping the future cancels the call.
    ///
    /// # Errors
    ///
    /// When there is no such skill, or it has no tool; what goes wrong in the call itself is in the result.
    pub async fn call(
        &self,
        skill: &str,
        arguments: Value,
        mut told: impl FnMut(&str) + Send,
    ) -> Result<CallToolResult, NoTool> {
        let catalogue = self.catalogue();
        let found = catalogue.find(skill).ok_or_else(|| NoTool(skill.to_owned()))?;
        let tool = found.tool.as_ref().ok_or_else(|| NoTool(skill.to_owned()))?;
        let host = &self.0.host;
        if let Err(wrong) = tool.check.check(&arguments) {
            let refused = ToolError::invalid_arguments(format!("The arguments do not fit: {wrong}"));
            return Ok(render::result(Err(refused), &host.redactor));
        }
        let mut running = Running::start(host, found, &tool.action, arguments, "call");
        loop {
            match running.next().await {
                Step::Note(note) => told(&note),
                Step::Asks(question) => {
                    let verdict = desk::nobody(&question.ask);
                    let _ = question.reply.send(verdict);
                }
                Step::Done(output) => {
                    while let Some(note) = running.last_note() {
                        told(&note);
                    }
                    return Ok(render::result(output, &host.redactor));
                }
            }
        }
    }

    /// Looks at the disk again; whether something is served otherwise now. Clients are told by [`watch`](Self::watch).
    /// May block.
    pub fn refresh(&self) -> bool {
        let mut disk = self.disk();
        let Rescan::Changed(_) = disk.registry.rescan() else { return false };
        self.rebuild(&mut disk);
        true
    }

    fn rebuild(&self, disk: &mut Disk) {
        let Disk { registry, store } = disk;
        let catalogue = Catalogue::build(registry, &self.0.host, store);
        let folders: std::collections::HashSet<_> =
            catalogue.skills().iter().map(|skill| skill.folder.clone()).collect();
        *self.0.catalogue.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(catalogue);
        self.0.manifests.retain(|folder| folders.contains(folder));
        self.0.changed.send_modify(|generation| *generation += 1);
    }

    /// Looks at the disk whenever it changes, and tells the clients of changes. Runs until it is dropped; without it, what
    /// was there at the start is served.
    pub async fn watch(&self) {
        let mut told = *self.0.changed.borrow();
        loop {
            self.wait_for_change().await;
            let server = self.clone();
            // Only fails when the runtime ends, and then this does too.
            let _ = tokio::task::spawn_blocking(move || server.refresh()).await;
            self.0.parked.sweep();
            let generation = *self.0.changed.borrow();
            if generation != told {
                told = generation;
                self.tell_clients().await;
            }
        }
    }

    #[cfg(not(feature = "watch"))]
    async fn wait_for_change(&self) {
        tokio::time::sleep(LOOK_EVERY).await;
    }

    #[cfg(feature = "watch")]
    async fn wait_for_change(&self) {
        use haversack_skills::watch::{WatchOptions, Watcher};
        let server = self.clone();
        let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let guard = StopOnDrop(Arc::clone(&stop));
        let waited = tokio::task::spawn_blocking(move || {
            // The watch is made anew each time, so that it follows what the last look has found.
            let Ok(watcher) = Watcher::new(&server.disk().registry, &WatchOptions::default()) else {
                return false;
            };
            // A change between the last look and the watch is found by a look now.
            if server.refresh() {
                return true;
            }
            let until = std::time::Instant::now() + 10 * LOOK_EVERY;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) && std::time::Instant::now() < until {
                if watcher.wait(Duration::from_millis(250)) {
                    return true;
                }
            }
            true
        });
        let watched = waited.await;
        drop(guard);
        if !watched.unwrap_or(false) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn tell_clients(&self) {
        let clients = self.clients().clone();
        let telling = clients.iter().filter(|client| !client.is_transport_closed()).map(|client| async {
            let tell = async {
                client.notify_tool_list_changed().await?;
                client.notify_prompt_list_changed().await?;
                client.notify_resource_list_changed().await
            };
            // One that is gone or does not read holds up nobody else.
            let _ = tokio::time::timeout(TELL_LIMIT, tell).await;
        });
        futures_util::future::join_all(telling).await;
    }

    /// Keeps a client that is to be told of changes.
    pub(crate) fn keep_client(&self, client: ClientSink) {
        let mut clients = self.clients();
        clients.retain(|client| !client.is_transport_closed());
        clients.push(client);
    }

    fn clients(&self) -> MutexGuard<'_, Vec<ClientSink>> {
        self.0.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.0.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(feature = "watch")]
struct StopOnDrop(Arc<std::sync::atomic::AtomicBool>);

#[cfg(feature = "watch")]
impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

impl fmt::Debug for SkillServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SkillServer").field("host", &self.0.host).finish_non_exhaustive()
    }
}
