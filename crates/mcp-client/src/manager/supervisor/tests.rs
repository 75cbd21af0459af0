//! The driver with servers that are scripts, and time that jumps.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tokio::time::sleep;

use super::*;
use crate::fingerprint::Fingerprint;
use crate::manager::supervisor::connect::Link;

/// What a server of the tests does.
#[derive(Clone, Copy, Debug)]
enum Script {
    /// Connects after a time and runs until it is told otherwise.
    Ready { after: Duration },
    /// Fails after a time.
    Fails { after: Duration },
    /// Panics.
    Panics,
}

#[derive(Default)]
struct World {
    log: Mutex<Vec<String>>,
    starting: AtomicUsize,
    most_starting: AtomicUsize,
    alive: AtomicUsize,
    ends: Mutex<BTreeMap<Arc<str>, watch::Sender<bool>>>,
}

impl World {
    fn note(&self, text: String) {
        self.log.lock().unwrap().push(text);
    }

    fn log(&self) -> String {
        std::mem::take(&mut *self.log.lock().unwrap()).join(" ")
    }

    fn alive(&self) -> usize {
        self.alive.load(Ordering::SeqCst)
    }

    /// Lets a running server end by itself.
    fn crash(&self, server: &str) {
        self.ends.lock().unwrap()[server].send_replace(true);
    }
}

/// One process of the tests: alive from its start until it is closed, ended or dropped.
struct Process {
    world: Arc<World>,
    is_alive: std::sync::atomic::AtomicBool,
}

impl Process {
    fn start(world: &Arc<World>) -> Self {
        world.alive.fetch_add(1, Ordering::SeqCst);
        Self { world: Arc::clone(world), is_alive: true.into() }
    }

    fn end(&self) {
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

struct Scripted(Arc<World>);

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

struct Starting(Arc<World>);

impl Drop for Starting {
    fn drop(&mut self) {
        self.0.starting.fetch_sub(1, Ordering::SeqCst);
    }
}

#[derive(Clone)]
struct ScriptedLink {
    server: Arc<str>,
    process: Arc<Process>,
    ended: watch::Sender<bool>,
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
struct HandClock(Mutex<Duration>);

impl HandClock {
    fn forward(&self, by: Duration) {
        *self.0.lock().unwrap() += by;
    }
}

impl Clock for HandClock {
    fn now(&self) -> Duration {
        *self.0.lock().unwrap()
    }
}

struct Bench {
    world: Arc<World>,
    clock: Arc<HandClock>,
    supervisor: Supervisor<Scripted>,
    events: broadcast::Receiver<ManagerEvent>,
}

impl Bench {
    fn new() -> Self {
        let world = Arc::new(World::default());
        let clock = Arc::new(HandClock::default());
        let supervisor =
            Supervisor::new(Scripted(Arc::clone(&world)), Arc::clone(&clock) as _, Backoff::default(), 2);
        let events = supervisor.events();
        Self { world, clock, supervisor, events }
    }

    /// Wants servers by name, number of their configuration, and script.
    fn want(&self, servers: &[(&str, u8, Script)]) {
        let wanted = servers.iter().map(|(server, number, script)| {
            let key = Fingerprint::of_value(&json!(number));
            ((*server).into(), Wanted { key, launch: Arc::new(*script) })
        });
        self.supervisor.want(wanted.collect());
    }

    async fn ensure(&self) {
        self.supervisor.ensure(|_| true).await;
    }

    fn state(&self, server: &str) -> String {
        match self.supervisor.see(server) {
            Seen::Absent => "absent".into(),
            Seen::Starting => "starting".into(),
            Seen::Running(_) => "running".into(),
            Seen::Failed(error) => format!("failed: {error}"),
            Seen::Exited { reason, restart_in } => format!("exited: {reason}, in {}", restart_in.as_secs()),
        }
    }

    fn events(&mut self) -> String {
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

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

const READY: Script = Script::Ready { after: ms(100) };
const FAILS: Script = Script::Fails { after: ms(100) };

#[tokio::test(start_paused = true)]
async fn nothing_starts_before_it_is_asked_for_and_then_it_is_kept() {
    let mut bench = Bench::new();
    bench.want(&[("a", 1, READY), ("b", 1, READY)]);
    sleep(ms(1000)).await;
    assert_eq!((bench.world.log(), bench.state("a")), (String::new(), "absent".into()));
    bench.ensure().await;
    assert_eq!((bench.state("a"), bench.state("b")), ("running".into(), "running".into()));
    bench.ensure().await;
    bench.want(&[("a", 1, READY), ("b", 1, READY)]);
    bench.ensure().await;
    assert_eq!(bench.world.log(), "start:a start:b");
    assert_eq!(bench.events(), "starting:a starting:b ready:a ready:b");
}

#[tokio::test(start_paused = true)]
async fn starts_run_in_parallel_up_to_the_bound() {
    let bench = Bench::new();
    let servers: Vec<_> = ["a", "b", "c", "d", "e"].map(|server| (server, 1, READY)).into();
    bench.want(&servers);
    let began = tokio::time::Instant::now();
    bench.ensure().await;
    assert_eq!(bench.world.most_starting.load(Ordering::SeqCst), 2);
    assert_eq!(began.elapsed(), ms(300), "five starts of 100 ms, two at a time");
    assert_eq!(bench.world.alive(), 5);
}

#[tokio::test(start_paused = true)]
async fn one_failure_spoils_nothing_is_told_once_and_is_not_tried_again() {
    let mut bench = Bench::new();
    bench.want(&[("bad", 1, FAILS), ("good", 1, READY)]);
    bench.ensure().await;
    assert_eq!(bench.state("bad"), "failed: bad has no luck");
    assert_eq!(bench.state("good"), "running");
    assert_eq!(bench.supervisor.take_new_failures(), [Arc::from("bad")]);
    for _ in 0..3 {
        bench.clock.forward(Duration::from_secs(3600));
        bench.ensure().await;
        assert_eq!(bench.supervisor.take_new_failures(), []);
    }
    assert_eq!(bench.world.log(), "start:bad start:good");
    // Another configuration is tried, and its failure told.
    bench.want(&[("bad", 2, FAILS), ("good", 1, READY)]);
    bench.ensure().await;
    assert_eq!(bench.supervisor.take_new_failures(), [Arc::from("bad")]);
    // So is the same one after a reset.
    bench.supervisor.reset();
    bench.ensure().await;
    assert_eq!(bench.supervisor.take_new_failures(), [Arc::from("bad")]);
    assert_eq!(bench.world.log(), "start:bad start:bad closed:good start:good");
    assert!(bench.events().contains("failed:bad"));
}

#[tokio::test(start_paused = true)]
async fn a_changed_configuration_restarts_exactly_that_server_after_its_end() {
    let mut bench = Bench::new();
    bench.want(&[("a", 1, READY), ("b", 1, READY)]);
    bench.ensure().await;
    bench.world.log();
    bench.events();
    bench.want(&[("a", 2, READY), ("b", 1, READY)]);
    assert_eq!(bench.state("a"), "running", "wanting alone changes nothing");
    bench.ensure().await;
    assert_eq!(bench.world.log(), "closed:a start:a");
    assert_eq!(bench.events(), "stopped:a starting:a ready:a");
    assert_eq!(bench.world.alive(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_no_longer_wanted_is_ended_and_may_come_back() {
    let bench = Bench::new();
    bench.want(&[("a", 1, READY), ("b", 1, READY)]);
    bench.ensure().await;
    bench.world.log();
    bench.want(&[("b", 1, READY)]);
    bench.ensure().await;
    assert_eq!(bench.state("a"), "absent");
    // It comes back while it is still being ended: the new one waits for the old one's end.
    bench.want(&[("a", 1, READY), ("b", 1, READY)]);
    bench.ensure().await;
    assert_eq!(bench.world.log(), "closed:a start:a");
    assert_eq!(bench.world.alive(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_exits_is_started_again_and_one_in_a_crash_loop_later_and_later() {
    let mut bench = Bench::new();
    bench.want(&[("a", 1, READY)]);
    bench.ensure().await;
    bench.events();
    // The first restart is at once, even if nobody had time to notice the exit.
    bench.world.crash("a");
    bench.ensure().await;
    assert_eq!(bench.state("a"), "running");
    assert_eq!(bench.events(), "exited:a starting:a ready:a");
    for pause in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
        bench.world.crash("a");
        bench.ensure().await;
        assert_eq!(bench.state("a"), format!("exited: exit 1, in {pause}"));
        bench.clock.forward(Duration::from_secs(pause - 1));
        bench.ensure().await;
        assert_eq!(bench.state("a"), "exited: exit 1, in 1");
        bench.clock.forward(Duration::from_secs(1));
        bench.ensure().await;
        assert_eq!(bench.state("a"), "running");
    }
    // It settled: the next exit counts as the first.
    bench.clock.forward(Duration::from_secs(60));
    bench.world.crash("a");
    bench.ensure().await;
    assert_eq!(bench.state("a"), "running");
    // And a reset forgets.
    bench.world.crash("a");
    bench.ensure().await;
    assert_eq!(bench.state("a"), "exited: exit 1, in 1");
    bench.supervisor.reset();
    bench.ensure().await;
    assert_eq!(bench.state("a"), "running");
}

#[tokio::test(start_paused = true)]
async fn giving_up_the_wait_does_not_give_up_the_start() {
    let bench = Bench::new();
    bench.want(&[("a", 1, READY)]);
    let waited = tokio::time::timeout(ms(10), bench.ensure()).await;
    assert!(waited.is_err());
    assert_eq!(bench.state("a"), "starting");
    bench.ensure().await;
    assert_eq!((bench.state("a"), bench.world.log()), ("running".into(), "start:a".into()));
}

#[tokio::test(start_paused = true)]
async fn two_that_ask_at_once_start_one() {
    let bench = Bench::new();
    bench.want(&[("a", 1, READY), ("b", 1, READY)]);
    tokio::join!(bench.ensure(), bench.ensure(), bench.supervisor.ensure(|server| server == "a"));
    assert_eq!(bench.world.log(), "start:a start:b");
}

#[tokio::test(start_paused = true)]
async fn one_server_can_be_asked_for_alone() {
    let bench = Bench::new();
    bench.want(&[("a", 1, READY), ("b", 1, Script::Ready { after: Duration::from_secs(3600) })]);
    bench.supervisor.ensure(|server| server == "a").await;
    assert_eq!((bench.state("a"), bench.state("b")), ("running".into(), "absent".into()));
}

#[tokio::test(start_paused = true)]
async fn a_start_that_is_overtaken_leaves_no_process() {
    let bench = Bench::new();
    bench.want(&[("a", 1, Script::Ready { after: Duration::from_secs(3600) })]);
    assert!(tokio::time::timeout(ms(10), bench.ensure()).await.is_err());
    assert_eq!(bench.world.alive(), 1);
    bench.want(&[("a", 2, READY)]);
    bench.ensure().await;
    assert_eq!((bench.state("a"), bench.world.alive()), ("running".into(), 1));
}

#[tokio::test(start_paused = true)]
async fn a_start_that_panics_is_a_failure_and_nobody_waits_for_ever() {
    let bench = Bench::new();
    bench.want(&[("a", 1, Script::Panics), ("b", 1, READY)]);
    bench.ensure().await;
    assert_eq!((bench.state("a"), bench.state("b")), ("failed: Abandoned".into(), "running".into()));
}

#[test]
fn outside_of_a_runtime_a_start_is_a_failure() {
    let bench = Bench::new();
    bench.want(&[("a", 1, READY)]);
    let mut ensuring = Box::pin(bench.ensure());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(ensuring.as_mut().poll(&mut context).is_ready());
    drop(ensuring);
    assert_eq!(bench.state("a"), "failed: NoRuntime");
}

#[tokio::test(start_paused = true)]
async fn closing_ends_everything_and_nothing_starts_afterwards() {
    let mut bench = Bench::new();
    bench.want(&[
        ("a", 1, READY),
        ("b", 1, READY),
        ("c", 1, Script::Ready { after: Duration::from_secs(3600) }),
    ]);
    assert!(tokio::time::timeout(ms(150), bench.ensure()).await.is_err());
    assert_eq!(bench.world.alive(), 3);
    bench.supervisor.close().await;
    assert_eq!(bench.world.alive(), 0);
    assert!(bench.events().ends_with("stopped:a stopped:b"));
    bench.ensure().await;
    assert_eq!((bench.state("a"), bench.world.alive()), ("absent".into(), 0));
    bench.supervisor.close().await;
}

#[tokio::test(start_paused = true)]
async fn dropping_ends_running_servers_at_once_and_starting_ones_with_their_tasks() {
    let bench = Bench::new();
    bench.want(&[("a", 1, READY), ("b", 1, Script::Ready { after: Duration::from_secs(3600) })]);
    assert!(tokio::time::timeout(ms(150), bench.ensure()).await.is_err());
    let world = Arc::clone(&bench.world);
    assert_eq!(world.alive(), 2);
    drop(bench);
    assert_eq!(world.alive(), 1, "the running one is gone without a turn of the runtime");
    tokio::task::yield_now().await;
    assert_eq!(world.alive(), 0);
}

#[test]
fn a_runtime_that_goes_down_leaves_nothing_and_the_supervisor_says_so() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let bench = Bench::new();
    bench.want(&[("a", 1, Script::Ready { after: ms(1) })]);
    runtime.block_on(bench.ensure());
    drop(runtime);
    assert_eq!(bench.state("a"), "exited: its task was given up, in 0");
    assert_eq!(bench.world.alive(), 0);
}
