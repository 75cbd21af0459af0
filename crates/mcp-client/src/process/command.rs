//! What to run.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

/// A server to be started: a program with its arguments, environment and folder.
///
/// It is run directly, never through a shell, so nothing in an argument is ever interpreted. (On Windows `.cmd` and
/// `.bat` files have to go through `cmd.exe`; their arguments are quoted for it.)
///
/// The child sees exactly the variables given here and nothing of the host's environment, unless the host passes it
/// on. Programs are looked up on the `PATH` that is given to the child.
///
/// ```
/// use haversack_mcp_client::ServerCommand;
///
/// let command = ServerCommand::new("npx")
///     .args(["-y", "@modelcontextprotocol/server-filesystem", "/srv/notes"])
///     .env("PATH", "/usr/local/bin:/usr/bin:/bin")
///     .current_dir("/srv/notes");
/// assert_eq!(command.program(), "npx");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ServerCommand {
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    current_dir: Option<PathBuf>,
}

impl ServerCommand {
    /// A program without arguments, in an empty environment and the host's working folder.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self { program: program.into(), args: Vec::new(), env: Vec::new(), current_dir: None }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable of the child's environment; of the same name twice, the later one counts.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        let name = name.into();
        self.env.retain(|(existing, _)| *existing != name);
        self.env.push((name, value.into()));
        self
    }

    /// Sets variables of the child's environment.
    #[must_use]
    pub fn envs<N: Into<OsString>, V: Into<OsString>>(self, vars: impl IntoIterator<Item = (N, V)>) -> Self {
        vars.into_iter().fold(self, |command, (name, value)| command.env(name, value))
    }

    /// Sets the folder the child works in.
    #[must_use]
    pub fn current_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.current_dir = Some(folder.into());
        self
    }

    /// The program.
    pub fn program(&self) -> &OsStr {
        &self.program
    }

    /// The arguments.
    pub fn arguments(&self) -> &[OsString] {
        &self.args
    }

    /// The variables, in the order in which they were set.
    pub fn variables(&self) -> &[(OsString, OsString)] {
        &self.env
    }

    /// The folder, if one was set.
    pub fn folder(&self) -> Option<&Path> {
        self.current_dir.as_deref()
    }

    /// The last part of the program's path, to name the server by.
    pub(crate) fn short_name(&self) -> String {
        let program = Path::new(&self.program);
        program.file_name().unwrap_or(&self.program).to_string_lossy().into_owned()
    }
}

/// Shows the names of variables and never their values, which are often secrets.
impl fmt::Debug for ServerCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&OsString> = self.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("ServerCommand")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("env", &names)
            .field("current_dir", &self.current_dir)
            .finish()
    }
}
