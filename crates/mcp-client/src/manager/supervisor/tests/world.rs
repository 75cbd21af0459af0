//! Servers that are scripts, a clock that is moved by hand, and a supervisor over them.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tokio::time::sleep;

use super::super::*;
use crate::fingerprint::Fingerprint;
use crate::manager::supervisor::connect::Link;

/// What a server of the tests does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Script {
    /// Connects after a time and runs until it is told otherwise.
    Ready { after: Duration },
    /// Fails after a time.
    Fails { after: Duration },
    /// Panics.
    Panics,
}

#[derive(Default)]
pub(super) struct World {
    pub(super) log: Mutex<Vec<String>>,
    pub(super) starting: AtomicUsize,
    pub(super) most_starting: AtomicUsize,
    pub(super) alive: AtomicUsize,
    pub(super) ends: Mutex<BTreeMap<Arc<str>, watch::Sender<bool>>>,
}

impl World {
    pub(super) fn note(&self, text: String) {
        self.log.lock().unwrap().push(text);
    }

    pub(super) fn log(&self) -> String {
        std::mem::take(&mut *self.log.lock().unwrap()).join(" ")
    }

    pub(super) fn alive(&self) -> usize {
        self.alive.load(Ordering::SeqCst)
    }

    /// Lets a running server end by itself.
    pub(super) fn crash(&self, server: &str) {
        self.ends.lock().unwrap()[server].send_replace(true);
    }
}

/// One process of the tests: alive from its start until it is closed, ended or dropped.
pub(super) struct Process {
    pub(super) world: Arc<World>,
    pub(super) is_alive: std::sync::atomic::AtomicBool,
}

impl Process {
    pub(super) fn start(world: &Arc<World>) -> Self {
        world.alive.fetch_add(1, Ordering::SeqCst);
        Self { world: Arc::clone(world), is_alive: true.into() }
    }

    pub(super) fn end(&self) {
        if self.is_alive.swap(false, Ordering::SeqCst) {
            self.world.alive.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

pub(super) struct Scripted(Arc<World>);

impl Connect for Scripted {
    type Launch = Script;
    type Link = ScriptedLink;
    type Error = String;

    async fn connect(self: Arc<Self>, server: Arc<str>, launch: Arc<Script>) -> Result<ScriptedLink, String> {
        let world = Arc::clone(&self.0);
        world.note(format!("start:{server}"));
        let process = Process::start(&world);
        let now = world.starting.fetch_add(1, Ordering::SeqCst) + 1;
        world.most_starting.fetch_max(now, Ordering::SeqCst);
        let _starting = Starting(Arc::clone(&world));
        match *launch {
            Script::Ready { after } => {
                sleep(after).await;
                let ended = watch::Sender::new(false);
                world.ends.lock().unwrap().insert(Arc::clone(&server), ended.clone());
                Ok(ScriptedLink { server, process: Arc::new(process), ended })
            }
            Script::Fails { after } => {
                sleep(after).await;
                Err(format!("{server} has no luck"))
            }
            Script::Panics => panic!("a bug"),
        }
    }

    fn describe(error: &String) -> String {
        error.clone()
    }

    fn not_begun(reason: NotBegun) -> String {
        format!("{reason:?}")
    }
}

pub(super) struct Starting(Arc<World>);

impl Drop for Starting {
    fn drop(&mut self) {
        self.0.starting.fetch_sub(1, Ordering::SeqCst);
    }
}

#[derive(Clone)]
pub(super) struct ScriptedLink {
    pub(super) server: Arc<str>,
    pub(super) process: Arc<Process>,
    pub(super) ended: watch::Sender<bool>,
}

impl Link for ScriptedLink {
    async fn ended(&self) -> String {
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
        "exit 1".into()
    }

    fn has_ended(&self) -> bool {
        *self.ended.borrow()
    }

    async fn close(&self) {
        sleep(ms(500)).await;
        self.process.end();
        self.process.world.note(format!("closed:{}", self.server));
    }

    fn end_now(&self) {
        self.process.end();
    }
}

/// A clock that stands still until it is moved.
#[derive(Debug, Default)]
pub(super) struct HandClock(Mutex<Duration>);

impl HandClock {
    pub(super) fn forward(&self, by: Duration) {
        *self.0.lock().unwrap() += by;
    }
}

impl Clock for HandClock {
    fn now(&self) -> Duration {
        *self.0.lock().unwrap()
    }
}

pub(super) struct Bench {
    pub(super) world: Arc<World>,
    pub(super) clock: Arc<HandClock>,
    pub(super) supervisor: Supervisor<Scripted>,
    pub(super) events: broadcast::Receiver<ManagerEvent>,
}

impl Bench {
    pub(super) fn new() -> Self {
        let world = Arc::new(World::default());
        let clock = Arc::new(HandClock::default());
        let supervisor =
            Supervisor::new(Scripted(Arc::clone(&world)), Arc::clone(&clock) as _, Backoff::default(), 2);
        let events = supervisor.events();
        Self { world, clock, supervisor, events }
    }

    /// Wants servers by name, number of their configuration, and script.
    pub(super) fn want(&self, servers: &[(&str, u8, Script)]) {
        let wanted = servers.iter().map(|(server, number, script)| {
            let key = Fingerprint::of_value(&json!(number));
            ((*server).into(), Wanted { key, launch: Arc::new(*script) })
        });
        self.supervisor.want(wanted.collect());
    }

    pub(super) async fn ensure(&self) {
        self.supervisor.ensure(|_| true).await;
    }

    pub(super) fn state(&self, server: &str) -> String {
        match self.supervisor.see(server) {
            Seen::Absent => "absent".into(),
            Seen::Starting => "starting".into(),
            Seen::Running(_) => "running".into(),
            Seen::Failed(error) => format!("failed: {error}"),
            Seen::Exited { reason, restart_in } => format!("exited: {reason}, in {}", restart_in.as_secs()),
        }
    }

    pub(super) fn events(&mut self) -> String {
        let mut seen = Vec::new();
        while let Ok(event) = self.events.try_recv() {
            seen.push(match event {
                ManagerEvent::Starting { server } => format!("starting:{server}"),
                ManagerEvent::Ready { server } => format!("ready:{server}"),
                ManagerEvent::Failed { server, .. } => format!("failed:{server}"),
                ManagerEvent::Exited { server, .. } => format!("exited:{server}"),
                ManagerEvent::Stopped { server } => format!("stopped:{server}"),
                ManagerEvent::Missed(missed) => format!("missed:{missed}"),
            });
        }
        seen.join(" ")
    }
}

pub(super) const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

pub(super) const READY: Script = Script::Ready { after: ms(100) };
pub(super) const FAILS: Script = Script::Fails { after: ms(100) };
