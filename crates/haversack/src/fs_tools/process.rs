//! One command line in a shell: started, read, bounded and ended, together with all that it started.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use haversack_mcp_client::environment::Environment;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio::time::Instant;

/// How much of a command's output is kept, in bytes: two fifths from its beginning, the rest from its end. The loop
/// cuts it further, and its sink for whole outputs gets this much.
pub const MAX_COMMAND_OUTPUT: usize = 1024 * 1024;

/// How long the rest of the output is read when the command itself has ended.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// How long a killed command may take to be gone.
const REAP: Duration = Duration::from_secs(2);

/// What runs command lines.
#[derive(Clone, Debug)]
pub(super) struct Shell {
    program: PathBuf,
    environment: Environment,
    folder: PathBuf,
}

/// What became of a command.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) output: Output,
    /// `None` when its time was over.
    pub(super) status: Option<ExitStatus>,
    /// Whether it left something running, which was ended.
    pub(super) left_behind: bool,
}

impl Shell {
    pub(super) fn new(program: &Path, environment: Environment, folder: &Path) -> Self {
        Self { program: program.to_owned(), environment, folder: folder.to_owned() }
    }

    #[cfg(not(windows))]
    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("-c").arg(line);
        command
    }

    /// The system's own shell, never one found on a path. `/d` skips what the registry would run first, `/s` takes the
    /// line as it is between the outer quotes.
    #[cfg(windows)]
    fn command(&self, line: &str) -> Command {
        let root = self.environment.text("SystemRoot").unwrap_or("C:\\Windows");
        let mut command = Command::new(format!("{root}\\System32\\cmd.exe"));
        command.raw_arg(format!("/d /s /c \"{line}\""));
        command.env("NoDefaultCurrentDirectoryInExePath", "1");
        command
    }

    /// Runs a line until it ends or its time is over. Each piece of output is told to `progress`.
    ///
    /// Dropping the future kills the command and all that it started.
    pub(super) async fn run(
        &self,
        line: &str,
        time: Duration,
        mut progress: impl FnMut(&str),
    ) -> io::Result<Ended> {
        let mut command = self.command(line);
        command
            .env_clear()
            .envs(self.environment.iter())
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut running = Running::start(command)?;
        let (mut stdout, mut stderr) = (running.child.stdout.take(), running.child.stderr.take());
        let mut output = Output::default();
        let mut status = None;
        let mut until = Instant::now() + time;
        while stdout.is_some() || stderr.is_some() || status.is_none() {
            let (mut one, mut other) = ([0; 8192], [0; 8192]);
            tokio::select! {
                read = read(&mut stdout, &mut one) => output.take(one.get(..read).unwrap_or_default(), &mut progress),
                read = read(&mut stderr, &mut other) => output.take(other.get(..read).unwrap_or_default(), &mut progress),
                ended = running.child.wait(), if status.is_none() => {
                    status = Some(ended?);
                    until = until.min(Instant::now() + LAST_WORDS);
                }
                () = tokio::time::sleep_until(until) => break,
            }
        }
        let left_behind = running.end().await;
        Ok(Ended { output, left_behind: left_behind && status.is_some(), status })
    }
}

/// Reads once; never ends when there is nothing more to read from. What was read is not lost when it is dropped.
async fn read(pipe: &mut Option<impl AsyncRead + Unpin>, bytes: &mut [u8]) -> usize {
    let Some(open) = pipe else { return std::future::pending().await };
    match open.read(bytes).await {
        Ok(read @ 1..) => read,
        _ => {
            *pipe = None;
            0
        }
    }
}

/// The beginning and the end of an output.
#[derive(Debug, Default)]
pub(super) struct Output {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    dropped: usize,
}

impl Output {
    const HEAD: usize = MAX_COMMAND_OUTPUT / 5 * 2;
    const TAIL: usize = MAX_COMMAND_OUTPUT - Self::HEAD;

    fn take(&mut self, bytes: &[u8], progress: &mut impl FnMut(&str)) {
        if !bytes.is_empty() {
            progress(&String::from_utf8_lossy(bytes));
        }
        let (first, rest) = bytes.split_at(bytes.len().min(Self::HEAD - self.head.len()));
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        let beyond = self.tail.len().saturating_sub(Self::TAIL);
        self.tail.drain(..beyond);
        self.dropped += beyond;
    }

    /// The output as text; what is no UTF-8 is replaced.
    pub(super) fn text(mut self) -> String {
        if self.dropped > 0 {
            let notice = format!("\n[… {} bytes are left out here …]\n", self.dropped);
            self.head.extend_from_slice(notice.as_bytes());
        }
        self.head.extend(self.tail);
        String::from_utf8_lossy(&self.head).into_owned()
    }
}

/// A running command with its group. Dropping it kills the group.
struct Running {
    child: Child,
    group: Option<Group>,
}

impl Running {
    fn start(mut command: Command) -> io::Result<Self> {
        Group::prepare(&mut command);
        let child = command.spawn()?;
        let group = Group::of(&child)?;
        Ok(Self { child, group: Some(group) })
    }

    /// Ends what is left, and says whether there was anything left of it.
    async fn end(mut self) -> bool {
        let left = self.group.take().is_some_and(|group| group.kill());
        // A killed process is gone in a moment, unless the system holds it; then tokio reaps it later.
        let _ = tokio::time::timeout(REAP, self.child.wait()).await;
        left
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(group) = self.group.take() {
            group.kill();
        }
    }
}

#[cfg(unix)]
mod unix {
    use rustix::process::{Pid, Signal, kill_process_group};

    /// A process group that the command leads.
    pub(super) struct Group(Option<Pid>);

    impl Group {
        pub(super) fn prepare(command: &mut tokio::process::Command) {
            command.process_group(0);
        }

        #[expect(clippy::unnecessary_wraps, reason = "on Windows a job may be refused")]
        pub(super) fn of(child: &tokio::process::Child) -> std::io::Result<Self> {
            Ok(Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw)))
        }

        /// Kills every process of the group, and says whether there was any.
        pub(super) fn kill(self) -> bool {
            self.0.is_some_and(|leader| kill_process_group(leader, Signal::KILL).is_ok())
        }
    }
}

#[cfg(windows)]
mod windows {
    use win32job::{ExtendedLimitInfo, Job};

    /// A job that ends every process in it when it is closed.
    pub(super) struct Group(Job);

    impl Group {
        pub(super) fn prepare(command: &mut tokio::process::Command) {
            /// No console window is shown.
            const CREATE_NO_WINDOW: u32 = 0x0800_0000;
            command.creation_flags(CREATE_NO_WINDOW);
        }

        pub(super) fn of(child: &tokio::process::Child) -> std::io::Result<Self> {
            let mut limits = ExtendedLimitInfo::new();
            limits.limit_kill_on_job_close();
            let job = Job::create_with_limit_info(&limits).map_err(std::io::Error::other)?;
            if let Some(handle) = child.raw_handle() {
                job.assign_process(handle as isize).map_err(std::io::Error::other)?;
            }
            Ok(Self(job))
        }

        /// Closes the job. Whether there was anybody left in it is not told.
        pub(super) fn kill(self) -> bool {
            drop(self.0);
            false
        }
    }
}

#[cfg(unix)]
use unix::Group;
#[cfg(windows)]
use windows::Group;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_keeps_its_beginning_and_its_end_and_counts_the_rest() {
        let mut output = Output::default();
        for piece in ["head", &"x".repeat(3 * MAX_COMMAND_OUTPUT), "tail"] {
            output.take(piece.as_bytes(), &mut |_| {});
        }
        let dropped = 2 * MAX_COMMAND_OUTPUT + 8;
        assert_eq!(output.dropped, dropped);
        let text = output.text();
        assert!(text.starts_with("headx") && text.ends_with("xtail"));
        assert!(text.contains(&format!("[… {dropped} bytes are left out here …]")));
    }
}
