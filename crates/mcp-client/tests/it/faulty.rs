//! Every mode of the server that misbehaves on purpose, against the outcome that its own list names.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use haversack_mcp_client::protocol::{
    Era, Listing, MachineCounts, Notice, ProblemCode, ServerInfo, ToolInfo, ToolResult,
};
use haversack_mcp_client::{
    Client, ClientOptions, Elicitation, ElicitationAnswer, ElicitationHandler, Error, Event, Events, Exit,
    Listen, Root, RootsHandler, ServerCommand, ToolCall,
};
use serde_json::{Value, json};

mod cases;

/// No mode may take longer than this: a hang.
const HANG: Duration = Duration::from_secs(40);

fn script() -> Option<PathBuf> {
    let shared = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    if !shared.is_dir() {
        eprintln!(
            "SKIPPED: {} is missing, and with it the server that misbehaves on purpose",
            shared.display()
        );
        return None;
    }
    Some(shared.join("probes/mcp/faulty_server.py").canonicalize().unwrap())
}

/// What is done with a server once it is connected.
#[derive(Clone)]
enum Step {
    List,
    Call(&'static str, Value),
    /// A call whose progress is counted.
    Follow(Duration),
    Listen,
    /// Waits until the log of the server holds a word.
    Await(&'static str),
    /// Waits for a number of late answers.
    AwaitLate(u64),
}

/// Everything that was seen.
#[derive(Default)]
struct Report {
    info: Option<ServerInfo>,
    start_error: Option<Error>,
    lists: Vec<Result<Listing<ToolInfo>, Error>>,
    calls: Vec<Result<ToolResult, Error>>,
    call_times: Vec<Duration>,
    listens: Vec<Result<(), Error>>,
    progress: Vec<f64>,
    events: Vec<Event>,
    counts: MachineCounts,
    stderr_tail: String,
    exit: Option<Exit>,
    log: Vec<Value>,
}

impl Report {
    fn tool_names(&self) -> Vec<&str> {
        self.lists[0].as_ref().unwrap().items.iter().map(|tool| tool.name.as_str()).collect()
    }

    fn text(&self, call: usize) -> String {
        self.calls[call].as_ref().unwrap().text()
    }

    fn failure(&self, call: usize) -> &Error {
        self.calls[call].as_ref().unwrap_err()
    }

    fn logged(&self, event: &str) -> Vec<&Value> {
        self.log.iter().filter(|line| line["event"] == event).collect()
    }

    /// The messages that the server got.
    fn got(&self, wanted: impl Fn(&Value) -> bool) -> Vec<&Value> {
        self.log
            .iter()
            .map(|line| &line["msg"])
            .filter(|message| !message.is_null() && wanted(message))
            .collect()
    }

    fn got_method(&self, method: &str) -> usize {
        self.got(|message| message["method"] == method).len()
    }

    fn problems(&self, code: ProblemCode) -> usize {
        let is =
            |event: &&Event| matches!(event, Event::Notice(Notice::Problem(problem)) if problem.code == code);
        self.events.iter().filter(is).count()
    }

    fn list_problems(&self, code: ProblemCode) -> usize {
        self.lists[0].as_ref().unwrap().problems.iter().filter(|problem| problem.code == code).count()
    }

    fn works(&self) {
        assert!(self.start_error.is_none(), "{:?}", self.start_error);
        assert_eq!(self.tool_names(), ["echo", "add"]);
        assert_eq!(self.text(0), "echo: hi ü\u{2028}");
    }

    fn era(&self) -> Era {
        self.info.as_ref().unwrap().era
    }
}

type Check = fn(&Report);

struct Case {
    mode: &'static str,
    args: &'static [&'static str],
    options: ClientOptions,
    steps: Vec<Step>,
    check: Check,
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn options() -> ClientOptions {
    ClientOptions::new("haversack-tests", "0").with_close_grace(ms(2000), ms(2000))
}

fn impatient() -> ClientOptions {
    options().with_probe_timeout(ms(700)).with_start_timeout(ms(2500))
}

fn hello() -> Step {
    Step::Call("echo", json!({"text": "hi ü\u{2028}"}))
}

fn case(mode: &'static str, check: Check) -> Case {
    Case { mode, args: &[], options: options(), steps: vec![Step::List, hello()], check }
}

impl Case {
    fn args(mut self, args: &'static [&'static str]) -> Self {
        self.args = args;
        self
    }

    fn options(mut self, options: ClientOptions) -> Self {
        self.options = options;
        self
    }

    fn steps(mut self, steps: impl Into<Vec<Step>>) -> Self {
        self.steps = steps.into();
        self
    }
}

struct Ann;

#[async_trait::async_trait]
impl ElicitationHandler for Ann {
    async fn elicit(&self, request: Elicitation) -> ElicitationAnswer {
        assert_eq!(request.message, "Name?");
        // The name is left to the default of the schema.
        ElicitationAnswer::Accept(serde_json::Map::new())
    }
}

struct OneFolder;

#[async_trait::async_trait]
impl RootsHandler for OneFolder {
    async fn roots(&self) -> Vec<Root> {
        vec![Root::new("file:///srv/ü").with_name("ü")]
    }
}

/// Runs a case; what is wrong with it, if anything.
async fn run(case: &Case, script: &Path) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut command = ServerCommand::new("python3")
        .arg(script)
        .args(["--mode", case.mode])
        .arg("--log")
        .arg(&log)
        .env("MARK", "1 2\n3")
        .current_dir(folder.path());
    for variable in ["PATH", "HOME"] {
        command = command.env(variable, std::env::var_os(variable).unwrap_or_default());
    }
    // The last of two logs counts; where one is an argument to be echoed, there is none to read.
    command = command.args(case.args.iter().copied());
    let started = Instant::now();
    let report = tokio::time::timeout(HANG, exercise(case, &command, &log)).await;
    let mut report = report.map_err(|_| "it hangs".to_owned())?;
    report.log = read_log(&log);
    for start in report.logged("start") {
        nobody_is_left(&start["pgid"], &start["pid"])?;
    }
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (case.check)(&report)));
    eprintln!("{:26} {:>6} ms", case.mode, started.elapsed().as_millis());
    outcome.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        format!("{} (stderr: {})", text.unwrap_or_default(), report.stderr_tail)
    })
}

async fn exercise(case: &Case, command: &ServerCommand, log: &Path) -> Report {
    let mut report = Report::default();
    let client = match Client::start(command, case.options.clone()).await {
        Ok(client) => client,
        Err(error) => return Report { start_error: Some(error), ..report },
    };
    report.info = Some(client.info().clone());
    let mut events = client.events();
    for step in &case.steps {
        take_step(&client, step.clone(), &mut report, &mut events, log).await;
    }
    // A list that changed is told of after a pause.
    if case.mode == "list-changed" {
        while let Some(event) = events.next().await {
            let is_it = matches!(event, Event::Notice(Notice::ListChanged(_)));
            report.events.push(event);
            if is_it {
                break;
            }
        }
    }
    assert_eq!(client.in_flight(), 0, "nothing waits any more");
    report.exit = Some(client.close().await);
    report.counts = client.counts();
    report.stderr_tail = client.stderr_tail();
    while let Some(event) = events.try_next() {
        report.events.push(event);
    }
    assert!(matches!(report.events.last(), Some(Event::Ended(_))), "the end is the last event");
    report
}

async fn take_step(client: &Client, step: Step, report: &mut Report, events: &mut Events, log: &Path) {
    match step {
        Step::List => report.lists.push(client.list_tools().await),
        Step::Call(name, arguments) => {
            let asked = Instant::now();
            report.calls.push(client.call_tool(name, arguments.as_object().unwrap().clone()).await);
            report.call_times.push(asked.elapsed());
        }
        Step::Follow(limit) => {
            let mut call = ToolCall::new("echo").with_limit(limit);
            let mut progress = call.progress();
            let (result, seen) = tokio::join!(client.call(call), async {
                let mut seen = Vec::new();
                while let Some(report) = progress.next().await {
                    seen.push(report.progress);
                }
                seen
            });
            report.calls.push(result);
            report.progress = seen;
        }
        Step::Listen => match client.listen(&Listen::to_tools()).await {
            Ok(subscription) => {
                while !matches!(events.next().await, Some(Event::Notice(Notice::ListChanged(_))) | None) {}
                *events = client.events();
                drop(subscription);
                report.listens.push(Ok(()));
            }
            Err(error) => report.listens.push(Err(error)),
        },
        Step::Await(word) => {
            while !std::fs::read_to_string(log).unwrap_or_default().contains(word) {
                tokio::task::yield_now().await;
            }
        }
        Step::AwaitLate(number) => {
            while client.counts().late_answers < number {
                tokio::task::yield_now().await;
            }
        }
    }
}

fn read_log(log: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Looks through all processes for one of that group, and for the leader as a zombie.
fn nobody_is_left(group: &Value, leader: &Value) -> Result<(), String> {
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        // Its name, in parentheses, may hold anything; what follows are the state, the parent and the group.
        let Some((_, fields)) = stat.rsplit_once(')') else { continue };
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let (is_zombie, in_group) = (fields[0] == "Z", fields[2].parse().ok() == group.as_i64());
        // What was left to others to reap is none of ours.
        let is_leader = leader == group && entry.file_name().to_string_lossy() == leader.to_string();
        if in_group && (!is_zombie || is_leader) {
            return Err(format!("a process of the group is left: {stat}"));
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fault_has_the_outcome_that_its_list_names_and_leaves_nothing_behind() {
    let Some(script) = script() else { return };
    let cases = [
        cases::opening_cases(),
        cases::byte_cases(),
        cases::answer_cases(),
        cases::list_cases(),
        cases::call_cases(),
        cases::ending_cases(),
        cases::modern_cases(),
    ];
    let cases: Vec<Case> = cases.into_iter().flatten().collect();
    let listed = std::process::Command::new("python3").arg(&script).arg("--list").output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let modes: Vec<&str> = listed
        .lines()
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(modes.len() >= 70, "the list is not what it was: {listed}");
    for mode in modes {
        assert!(cases.iter().any(|case| case.mode == mode), "no test of {mode}");
    }
    // A few at once, since most of the time is spent waiting.
    let gate = Arc::new(tokio::sync::Semaphore::new(4));
    let mut running = tokio::task::JoinSet::new();
    for (number, case) in cases.into_iter().enumerate() {
        let (gate, script) = (Arc::clone(&gate), script.clone());
        running.spawn(async move {
            let _turn = gate.acquire_owned().await;
            let outcome = run(&case, &script).await;
            outcome.err().map(|wrong| format!("case {number}, {}: {wrong}", case.mode))
        });
    }
    let failures: Vec<String> = running.join_all().await.into_iter().flatten().collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").trim().parse().unwrap();
    assert!(peak < 500_000, "at its peak this process took {peak} KiB");
}
