//! A running server process: its pipes, its keeper, and its end in stages.

use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;
use tokio::time::Instant;

use super::command::ServerCommand;
use super::exit::{Exit, ExitHow, ExitStatus};
use super::group::Group;
use super::tail::Tail;

/// How long the rest of standard error is read after the process has ended.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// How long processes that a server left behind have to follow a request to terminate.
const LEFT_BEHIND: Duration = Duration::from_millis(300);

/// How often it is looked whether they have.
const LEFT_BEHIND_STEP: Duration = Duration::from_millis(10);

/// How long `Drop` may wait for a killed process to be gone, so that no zombie is left.
const REAP: Duration = Duration::from_millis(100);

/// How long the stages of ending take at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndTimes {
    /// From closing standard input to the request to terminate.
    pub(crate) stdin: Duration,
    /// From the request to terminate to killing.
    pub(crate) term: Duration,
}

/// A server process, as seen by whoever uses it. Clones stand for the same process.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// `None` once the process is gone and its group with it: after that its number may be another's.
    group: Mutex<Option<Group>>,
    tail: Mutex<Tail>,
    wanted: watch::Sender<Wanted>,
    exit: watch::Sender<Option<Exit>>,
}

/// What the process is wanted to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Wanted {
    Run,
    /// End: standard input is being closed.
    End,
    /// End without waiting for it to notice the end of its input.
    EndNow,
}

/// A process that was just started.
pub(crate) struct Spawned {
    pub(crate) process: Process,
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    pub(crate) keeper: Keeper,
}

/// The command as the system runs it.
#[cfg(not(windows))]
#[expect(clippy::unnecessary_wraps, reason = "on Windows the program may not be found")]
fn prepare(command: &ServerCommand) -> std::io::Result<Command> {
    let mut prepared = Command::new(command.program());
    prepared.args(command.arguments());
    Ok(prepared)
}

/// The command as the system runs it: scripts go through `cmd.exe`.
#[cfg(windows)]
fn prepare(command: &ServerCommand) -> std::io::Result<Command> {
    use super::launch::{WindowsLaunch, windows_launch};

    let is_file = |path: &str| std::path::Path::new(path).is_file();
    Ok(match windows_launch(command, is_file)? {
        WindowsLaunch::Direct { program } => {
            let mut prepared = Command::new(program);
            prepared.args(command.arguments());
            prepared
        }
        WindowsLaunch::Script { shell, line } => {
            let mut prepared = Command::new(shell);
            prepared.raw_arg(line);
            prepared
        }
    })
}

/// Starts a process, in a group of its own and with three pipes.
pub(crate) fn spawn(command: &ServerCommand, tail_bytes: usize, times: EndTimes) -> std::io::Result<Spawned> {
    let mut prepared = prepare(command)?;
    prepared.env_clear().envs(command.variables().iter().map(|(name, value)| (name, value)));
    if let Some(folder) = command.folder() {
        prepared.current_dir(folder);
    }
    prepared.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    Group::prepare(&mut prepared);
    let mut child = prepared.spawn()?;
    let group = Group::of(&child)?;
    let (Some(stdin), Some(stdout), stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        group.kill();
        return Err(std::io::Error::other("a pipe to the process is missing"));
    };
    let shared = Arc::new(Shared {
        group: Mutex::new(Some(group)),
        tail: Mutex::new(Tail::new(tail_bytes)),
        wanted: watch::Sender::new(Wanted::Run),
        exit: watch::Sender::new(None),
    });
    let process = Process { shared };
    let keeper = Keeper { process: process.clone(), child, stderr, times, how: ExitHow::Itself };
    Ok(Spawned { process, stdin, stdout, keeper })
}

impl Process {
    /// Asks the keeper to end the process in stages. Standard input must be closed by whoever holds it.
    pub(crate) fn end(&self) {
        self.want(Wanted::End);
    }

    /// Asks the process to terminate, at once and here; the keeper does the rest.
    pub(crate) fn end_now(&self) {
        self.want(Wanted::EndNow);
        if let Some(group) = &*lock(&self.shared.group) {
            group.terminate();
        }
    }

    fn want(&self, wanted: Wanted) {
        self.shared.wanted.send_if_modified(|current| {
            let more = *current < wanted;
            if more {
                *current = wanted;
            }
            more
        });
    }

    /// How the process ended, if it has.
    pub(crate) fn exit(&self) -> Option<Exit> {
        *self.shared.exit.borrow()
    }

    /// Waits until the process and its group have ended.
    pub(crate) async fn ended(&self) -> Exit {
        let mut exit = self.shared.exit.subscribe();
        // The sender lives as long as this handle.
        let ended = exit.wait_for(Option::is_some).await.ok().and_then(|exit| *exit);
        ended.unwrap_or(Exit::new(ExitHow::Kill, None))
    }

    /// The end of what it wrote to standard error.
    pub(crate) fn stderr_tail(&self) -> String {
        lock(&self.shared.tail).text()
    }
}

/// Looks after a process until it has ended: drains standard error, ends it in stages when that is wanted, ends what
/// it leaves behind, and reaps it. Dropping the keeper kills the group at once.
pub(crate) struct Keeper {
    process: Process,
    child: Child,
    stderr: Option<ChildStderr>,
    times: EndTimes,
    how: ExitHow,
}

impl Keeper {
    /// Runs until the process has ended, and then tells so.
    pub(crate) async fn run(mut self, ended: impl FnOnce()) {
        let status = self.wait().await;
        self.end_group().await;
        self.read_last_words().await;
        let exit = Exit::new(self.how, status.map(ExitStatus::of));
        self.process.shared.exit.send_replace(Some(exit));
        ended();
    }

    async fn wait(&mut self) -> Option<std::process::ExitStatus> {
        let mut wanted = self.process.shared.wanted.subscribe();
        let mut acted = Wanted::Run;
        let stage = tokio::time::sleep(Duration::ZERO);
        tokio::pin!(stage);
        loop {
            tokio::select! {
                biased;
                status = self.child.wait() => return status.ok(),
                changed = wanted.wait_for(|wanted| *wanted > acted) => {
                    let Ok(now_wanted) = changed.map(|wanted| *wanted) else { return None };
                    acted = now_wanted;
                    // What began further on is not set back.
                    let (how, time) = match acted {
                        Wanted::EndNow => (ExitHow::Term, self.times.term),
                        _ => (ExitHow::Stdin, self.times.stdin),
                    };
                    if matches!(self.how, ExitHow::Itself | ExitHow::Stdin) {
                        self.how = how;
                        stage.as_mut().reset(Instant::now() + time);
                    }
                }
                () = &mut stage, if matches!(self.how, ExitHow::Stdin | ExitHow::Term) => {
                    if let Some(group) = &*lock(&self.process.shared.group) {
                        if self.how == ExitHow::Stdin {
                            self.how = ExitHow::Term;
                            group.terminate();
                        } else {
                            self.how = ExitHow::Kill;
                            group.kill();
                        }
                    }
                    stage.as_mut().reset(Instant::now() + self.times.term);
                }
                () = drain(&mut self.stderr, &self.process.shared.tail) => {}
            }
        }
    }

    /// Ends what the server left behind in its group. As long as there is anybody in the group, its number cannot
    /// become another's.
    async fn end_group(&mut self) {
        let is_alive =
            |keeper: &Self| lock(&keeper.process.shared.group).as_ref().is_some_and(Group::is_alive);
        if is_alive(self) {
            if let Some(group) = &*lock(&self.process.shared.group) {
                group.terminate();
            }
            let until = Instant::now() + LEFT_BEHIND;
            while is_alive(self) && Instant::now() < until {
                tokio::time::sleep(LEFT_BEHIND_STEP).await;
            }
        }
        if let Some(group) = lock(&self.process.shared.group).take()
            && group.is_alive()
        {
            group.kill();
        }
    }

    async fn read_last_words(&mut self) {
        let read = async {
            while self.stderr.is_some() {
                drain(&mut self.stderr, &self.process.shared.tail).await;
            }
        };
        // Somebody who left the group may hold the pipe open for ever.
        let _ = tokio::time::timeout(LAST_WORDS, read).await;
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if self.process.exit().is_some() {
            return;
        }
        // The runtime is going down, or was never run: what follows must need none.
        if let Some(group) = lock(&self.process.shared.group).take() {
            group.kill();
        }
        let until = std::time::Instant::now() + REAP;
        let status = loop {
            match self.child.try_wait() {
                Ok(None) if std::time::Instant::now() < until => std::thread::sleep(Duration::from_millis(1)),
                Ok(status) => break status,
                Err(_) => break None,
            }
        };
        let exit = Exit::new(ExitHow::Kill, status.map(ExitStatus::of));
        self.process.shared.exit.send_replace(Some(exit));
    }
}

/// Reads standard error once; never ends when there is nothing more to read from.
async fn drain(stderr: &mut Option<ChildStderr>, tail: &Mutex<Tail>) {
    let Some(pipe) = stderr else { return std::future::pending().await };
    let mut bytes = [0; 4096];
    match pipe.read(&mut bytes).await {
        Ok(read @ 1..) => lock(tail).push(bytes.get(..read).unwrap_or_default()),
        _ => *stderr = None,
    }
}

/// Locks; a panic elsewhere does not make the data wrong, each change to it is whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
