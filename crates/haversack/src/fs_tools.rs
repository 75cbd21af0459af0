//! Tools of a coding host: read, list, search and edit files inside a root, and run commands there.
//!
//! They are here so that a real host takes one line; a host with tools of its own leaves the feature out.
//!
//! ```
//! use haversack::fs_tools::FsTools;
//! use haversack::Haversack;
//! # fn build(model: impl haversack::prelude::Model) -> Result<Haversack, haversack::Error> {
//! let haversack = Haversack::builder(model).project(".").fs_tools(FsTools::new(".")).build()?;
//! # Ok(haversack)
//! # }
//! ```
//!
//! | tool | what it does | asks (in [`Mode::Ask`] / [`Mode::AcceptKnown`]) |
//! | --- | --- | --- |
//! | `read_file` | a page of a text file | no; yes for files that hold credentials |
//! | `list_files` | the entries of a folder, or files by a glob | no |
//! | `search_files` | lines that match a regular expression | no; files that hold credentials are left out |
//! | `edit_file` | replaces a text that stands in a file once | yes / no; sensitive files always |
//! | `write_file` | writes a whole file | yes / no; sensitive files always |
//! | `run_command` | runs a command line in the root | yes, except for the [safe list](is_safe_command) |
//!
//! # What holds
//!
//! - **Nothing outside the root is opened.** Paths are taken apart as text and opened part by part, relative to the
//!   folder that is already open (the `cap-std` crate makes the calls, on Unix and Windows). A link is not followed:
//!   the model is told where it leads, if that is inside. So what is swapped between a check and the opening cannot
//!   lead elsewhere, and what a rule or a person judged is what is opened. Pipes, sockets and devices are never opened.
//! - **Somebody is asked about sensitive files each time**, whatever was granted: [`SENSITIVE_READS`],
//!   [`SENSITIVE_WRITES`], [`sensitive_rules`].
//! - **An edit is shown as a diff** before it is approved ([`Ask::preview`](crate::prelude::Ask::preview)), and written
//!   beside the file and renamed, so that there is the old text or the new one. When the file has changed since so that
//!   the text to replace is not there, nothing is written.
//! - **A command is what it says.** It runs in the shell that is set (`/bin/sh`, `cmd.exe`), in the root, without a
//!   terminal or input, in a process group of its own that is ended with the call, with bounded time and output. It
//!   sees the host's [environment](FsTools::with_environment) without secrets, and no program is looked up in the
//!   working folder. A command is **not jailed**: whoever approves one approves all that it does.
//!
//! The tools need tokio: files are read on its blocking threads.
//!
//! [`Mode::Ask`]: haversack_agent_core::policy::Mode::Ask
//! [`Mode::AcceptKnown`]: haversack_agent_core::policy::Mode::AcceptKnown

mod sensitive;
mod jail;
mod place;
mod blocking;
mod read;
mod walk;
mod list;
mod search;
mod diff;
mod edit;
mod safe_list;
mod process;
mod command;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use haversack_agent_core::tool_context::Tool;
use haversack_mcp_client::environment::{Environment, EnvironmentPolicy, Inherit};

use place::Root;

pub use command::{DEFAULT_COMMAND_TIME, MAX_COMMAND_TIME};
pub use edit::MAX_EDIT_BYTES;
pub use list::MAX_LISTED;
pub use process::MAX_COMMAND_OUTPUT;
pub use read::{MAX_READ_BYTES, PAGE_BYTES};
pub use safe_list::is_safe_command;
pub use search::{MAX_MATCHES, MAX_SEARCHED_BYTES};
pub use sensitive::{SENSITIVE_READS, SENSITIVE_WRITES, sensitive_rules};
pub use walk::{MAX_DEPTH, MAX_WALKED, SKIPPED_FOLDERS};

/// The name of the tool that reads a file.
pub const READ_FILE: &str = "read_file";
/// The name of the tool that lists files.
pub const LIST_FILES: &str = "list_files";
/// The name of the tool that searches files.
pub const SEARCH_FILES: &str = "search_files";
/// The name of the tool that replaces a text in a file.
pub const EDIT_FILE: &str = "edit_file";
/// The name of the tool that writes a whole file.
pub const WRITE_FILE: &str = "write_file";
/// The name of the tool that runs a command.
pub const RUN_COMMAND: &str = "run_command";

/// Which tools there are, and within which bounds they work.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FsTools {
    root: PathBuf,
    edits: bool,
    commands: bool,
    environment: Option<Environment>,
    policy: EnvironmentPolicy,
    shell: PathBuf,
    command_time: Duration,
}

impl FsTools {
    /// All tools over a root folder.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            edits: true,
            commands: true,
            environment: None,
            policy: EnvironmentPolicy::new(Inherit::AllButSecrets),
            shell: PathBuf::from("/bin/sh"),
            command_time: DEFAULT_COMMAND_TIME,
        }
    }

    /// Leaves out what changes files and what runs commands.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        (self.edits, self.commands) = (false, false);
        self
    }

    /// Leaves out the tool that runs commands.
    #[must_use]
    pub fn without_commands(mut self) -> Self {
        self.commands = false;
        self
    }

    /// Sets the variables that commands see a part of. By default those of
    /// [`HaversackBuilder::environment`](crate::HaversackBuilder::environment), or none.
    #[must_use]
    pub fn with_environment(mut self, environment: Environment) -> Self {
        self.environment = Some(environment);
        self
    }

    /// Sets which part of the variables commands see. By default all but secrets, the internals of an editor, and
    /// those by which a shell runs something first.
    #[must_use]
    pub fn with_environment_policy(mut self, policy: EnvironmentPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the shell that runs command lines, by its absolute path; it has to take `-c`. `/bin/sh` by default. On
    /// Windows it is always the system's own `cmd.exe`.
    #[must_use]
    pub fn with_shell(mut self, shell: impl Into<PathBuf>) -> Self {
        self.shell = shell.into();
        self
    }

    /// Sets how long a command may take when its call does not say. [`DEFAULT_COMMAND_TIME`] by default, at most
    /// [`MAX_COMMAND_TIME`].
    #[must_use]
    pub fn with_command_time(mut self, time: Duration) -> Self {
        self.command_time = time.min(MAX_COMMAND_TIME);
        self
    }

    /// The root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The tools, for a host that puts its agent together itself. Such a host also adds [`sensitive_rules`] to its
    /// policy.
    ///
    /// # Errors
    ///
    /// When the root cannot be opened.
    pub fn tools(&self) -> io::Result<Vec<Arc<dyn Tool>>> {
        let root = Arc::new(Root::open(&self.root)?);
        let mut tools: Vec<Arc<dyn Tool>> = vec![
            Arc::new(read::ReadFile::new(Arc::clone(&root))),
            Arc::new(list::ListFiles::new(Arc::clone(&root))),
            Arc::new(search::SearchFiles::new(Arc::clone(&root))),
        ];
        if self.edits {
            tools.push(Arc::new(edit::EditFile::new(Arc::clone(&root))));
            tools.push(Arc::new(edit::WriteFile::new(Arc::clone(&root))));
        }
        if self.commands {
            let environment = self.environment.clone().unwrap_or_default();
            let environment = command::environment(&environment, &self.policy);
            let shell = process::Shell::new(&self.shell, environment, root.jail.real());
            tools.push(Arc::new(command::RunCommand::new(shell, self.command_time)));
        }
        Ok(tools)
    }

    /// Takes these variables unless the host set others.
    pub(crate) fn or_environment(mut self, environment: &Environment) -> Self {
        self.environment.get_or_insert_with(|| environment.clone());
        self
    }
}
