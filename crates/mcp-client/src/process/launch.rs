//! What is really run for a command on Windows: a program, or `cmd.exe` with a script.
//!
//! Pure, like [`resolve`](crate::process::resolve) and [`quote`](crate::process::quote); [`child`](super::child) makes a
//! process of it.

use std::ffi::OsString;
use std::io;

use crate::environment::{Environment, NameCase};
use crate::process::command::ServerCommand;
use crate::process::quote::{QuoteError, cmd_arguments};
use crate::process::resolve::{DEFAULT_PATHEXT, NotFound, WindowsProgram, is_absolute, is_path, resolve};

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WindowsLaunch {
    /// A program, with the arguments as they are.
    Direct { program: OsString },
    /// `cmd.exe`, with a line that must not be quoted again.
    Script { shell: String, line: String },
}

/// Why a command cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LaunchError {
    #[error(transparent)]
    NotFound(#[from] NotFound),
    #[error(transparent)]
    Quote(#[from] QuoteError),
    #[error("argument {position} is no Unicode, which no script can take")]
    NotUnicode { position: usize },
    #[error("a script needs `cmd.exe`, but SystemRoot is not set to an absolute folder for it")]
    NoShell,
}

impl From<LaunchError> for io::Error {
    fn from(error: LaunchError) -> Self {
        let kind = match error {
            LaunchError::NotFound(_) => io::ErrorKind::NotFound,
            _ => io::ErrorKind::InvalidInput,
        };
        Self::new(kind, error)
    }
}

/// Finds out what to run for a command, by the variables that its process will have.
#[cfg_attr(not(any(windows, test)), expect(dead_code, reason = "for Windows; tested everywhere"))]
pub(crate) fn windows_launch(
    command: &ServerCommand,
    is_file: impl Fn(&str) -> bool,
) -> Result<WindowsLaunch, LaunchError> {
    let environment = command
        .variables()
        .iter()
        .fold(Environment::new(NameCase::Ignored), |all, (name, value)| all.with(name, value));
    let Some(program) = command.program().to_str() else {
        // No list of names can hold it; the system may know what it is.
        return Ok(WindowsLaunch::Direct { program: command.program().to_owned() });
    };
    let folder = command.folder().and_then(|folder| folder.to_str());
    let program = match folder {
        Some(folder) if is_path(program) && !is_absolute(program) && !program.contains(':') => {
            format!("{}\\{program}", folder.trim_end_matches(['\\', '/']))
        }
        _ => program.to_owned(),
    };
    let path = environment.text("PATH").unwrap_or_default();
    let pathext = environment.text("PATHEXT").unwrap_or(DEFAULT_PATHEXT);
    match resolve(&program, path, pathext, is_file)? {
        WindowsProgram::Executable(program) => Ok(WindowsLaunch::Direct { program: program.into() }),
        WindowsProgram::Script(script) => {
            let unicode = |(before, arg): (usize, &OsString)| {
                arg.to_str().map(str::to_owned).ok_or(LaunchError::NotUnicode { position: before + 1 })
            };
            let args = command.arguments().iter().enumerate().map(unicode).collect::<Result<Vec<_>, _>>()?;
            // Never by name: a `cmd.exe` on PATH or in COMSPEC may be anything.
            let root = environment
                .text("SystemRoot")
                .filter(|root| is_absolute(root))
                .ok_or(LaunchError::NoShell)?;
            let shell = format!("{}\\System32\\cmd.exe", root.trim_end_matches(['\\', '/']));
            Ok(WindowsLaunch::Script { shell, line: cmd_arguments(&script, &args)? })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(program: &str) -> ServerCommand {
        ServerCommand::new(program)
            .env("Path", r"C:\node;C:\bin")
            .env("PATHEXT", ".EXE;.CMD")
            .env("SYSTEMROOT", r"C:\Windows\")
            .current_dir(r"C:\work")
    }

    fn launch(command: &ServerCommand) -> Result<WindowsLaunch, LaunchError> {
        let files = [r"C:\node\npx.cmd", r"C:\bin\server.exe", r"C:\work\tools\run.cmd", r"C:\work\npx.exe"];
        windows_launch(command, |path| files.iter().any(|file| file.eq_ignore_ascii_case(path)))
    }

    fn direct(program: &str) -> Result<WindowsLaunch, LaunchError> {
        Ok(WindowsLaunch::Direct { program: program.into() })
    }

    fn script(line: &str) -> Result<WindowsLaunch, LaunchError> {
        Ok(WindowsLaunch::Script { shell: r"C:\Windows\System32\cmd.exe".into(), line: line.into() })
    }

    #[test]
    fn a_shim_goes_through_the_systems_own_cmd_and_a_program_starts_directly() {
        let npx = command("npx").args(["-y", "pkg name"]);
        assert_eq!(launch(&npx), script(r#"/d /v:off /s /c "C^:\node\npx.CMD -y ^"pkg^ name^"""#));
        assert_eq!(launch(&command("server").arg("a b")), direct(r"C:\bin\server.EXE"));
        assert_eq!(launch(&command("server.exe")), direct(r"C:\bin\server.exe"));
    }

    #[test]
    fn a_relative_path_is_taken_from_the_servers_folder() {
        assert_eq!(launch(&command(r"tools\run")), script(r#"/d /v:off /s /c "C^:\work\tools\run.CMD""#));
        assert_eq!(launch(&command(r"C:\bin\server.exe")), direct(r"C:\bin\server.exe"));
    }

    #[test]
    fn what_cannot_be_run_says_why() {
        let NotFound { command: name, unusable } = match launch(&command("gone")) {
            Err(LaunchError::NotFound(error)) => error,
            other => panic!("{other:?}"),
        };
        assert_eq!((name.as_str(), unusable.len()), ("gone", 0));
        let no_root = ServerCommand::new("npx").env("PATH", r"C:\node").env("PATHEXT", ".CMD");
        assert_eq!(launch(&no_root), Err(LaunchError::NoShell));
        let newline = command("npx").arg("a\nb");
        let error = io::Error::from(launch(&newline).unwrap_err());
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(
            error.to_string(),
            "argument 1 has a line end or a NUL character, which no script can take"
        );
        assert_eq!(io::Error::from(launch(&command("gone")).unwrap_err()).kind(), io::ErrorKind::NotFound);
    }
}
