//! Which file a command means on Windows.
//!
//! Windows itself finds only `.exe` files for a bare name, so `npx`, which is `npx.cmd`, is not found. `cmd.exe` would
//! find it, but looks into the working folder first, where a repository may have put a program of the same name. So
//! the search is ours: the folders of `PATH` in order, and in each the endings of `PATHEXT` in order. The working
//! folder is never searched, and neither is a folder of `PATH` that is not absolute.
//!
//! The functions here are pure: text in, text out, and a question whether a file exists. They run on every system.

use std::fmt;

/// Endings that are tried when `PATHEXT` is not set, as Windows does.
pub const DEFAULT_PATHEXT: &str = ".COM;.EXE;.BAT;.CMD";

/// What Windows can start for a command, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WindowsProgram {
    /// A program that starts directly: `.exe`, `.com`, or a file that was named with another ending.
    Executable(String),
    /// A script for `cmd.exe`: `.cmd` or `.bat`.
    Script(String),
}

/// A command that no file was found for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub struct NotFound {
    /// The command.
    pub command: String,
    /// Files that were found but that Windows cannot start, such as `.ps1` or `.js`.
    pub unusable: Vec<String>,
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no program `{}` was found on PATH", self.command)?;
        if !self.unusable.is_empty() {
            write!(f, "; cannot be started directly: {}", self.unusable.join(", "))?;
        }
        Ok(())
    }
}

/// Finds the file that a command means.
///
/// - `command` with a separator or a drive is a path and is not searched for. If it has no ending that can be started,
///   the endings of `pathext` are tried first, since `node_modules\.bin\tool` is a script for another system and
///   `tool.cmd` beside it is the right one.
/// - A bare name is searched for in the absolute folders of `path`, in order. With an ending of `pathext` it is taken as
///   it is before endings are added.
///
/// `pathext` is the variable's text, [`DEFAULT_PATHEXT`] when it is not set. `is_file` says whether a path is a file.
///
/// ```
/// use haversack_mcp_client::process::resolve::{WindowsProgram, resolve};
///
/// let found = resolve("npx", r"C:\Windows;C:\nodejs", ".EXE;.CMD", |path| path == r"C:\nodejs\npx.CMD");
/// assert_eq!(found, Ok(WindowsProgram::Script(r"C:\nodejs\npx.CMD".into())));
/// ```
///
/// # Errors
///
/// [`NotFound`], with the files that were there but cannot be started.
pub fn resolve(
    command: &str,
    path: &str,
    pathext: &str,
    is_file: impl Fn(&str) -> bool,
) -> Result<WindowsProgram, NotFound> {
    let endings: Vec<&str> =
        pathext.split(';').map(str::trim).filter(|ending| ending.starts_with('.')).collect();
    let candidates = candidates(command, &endings);
    let mut unusable = Vec::new();
    let mut try_in = |start: &str| {
        candidates.iter().map(|name| format!("{start}{name}")).filter(|path| is_file(path)).find_map(|path| {
            let program = program_of(&path);
            if program.is_none() {
                unusable.push(path);
            }
            program
        })
    };
    let found = if is_path(command) {
        try_in("")
    } else {
        search_folders(path).into_iter().find_map(|folder| try_in(&folder))
    };
    found.ok_or_else(|| NotFound { command: command.into(), unusable })
}

/// The names to look for in one folder, best first.
fn candidates(command: &str, endings: &[&str]) -> Vec<String> {
    let with_endings = endings.iter().map(|ending| format!("{command}{ending}"));
    let has_known_ending = endings
        .iter()
        .chain(&[".exe", ".com", ".cmd", ".bat"])
        .any(|ending| ends_with_ignoring_case(command, ending));
    let as_it_is = std::iter::once(command.to_owned());
    if has_known_ending {
        as_it_is.chain(with_endings).collect()
    } else {
        with_endings.chain(as_it_is).collect()
    }
}

fn program_of(path: &str) -> Option<WindowsProgram> {
    let has = |endings: &[&str]| endings.iter().any(|ending| ends_with_ignoring_case(path, ending));
    if has(&[".cmd", ".bat"]) {
        Some(WindowsProgram::Script(path.into()))
    } else if has(&[".exe", ".com"]) {
        Some(WindowsProgram::Executable(path.into()))
    } else {
        None
    }
}

/// Whether a command names a place and not just a program.
pub(crate) fn is_path(command: &str) -> bool {
    command.contains(['\\', '/', ':'])
}

/// The absolute folders of `PATH`, each with its separator. A folder may stand in quotes, and then hold a `;`.
fn search_folders(path: &str) -> Vec<String> {
    let mut folders = vec![String::new()];
    let mut in_quotes = false;
    for c in path.chars() {
        match c {
            '"' => in_quotes = !in_quotes,
            ';' if !in_quotes => folders.push(String::new()),
            c => {
                if let Some(folder) = folders.last_mut() {
                    folder.push(c);
                }
            }
        }
    }
    folders.retain(|folder| is_absolute(folder));
    for folder in &mut folders {
        if !folder.ends_with(['\\', '/']) {
            folder.push('\\');
        }
    }
    folders
}

/// `C:\…`, `C:/…` or `\\server\…`. What begins with one separator depends on the current drive.
pub(crate) fn is_absolute(folder: &str) -> bool {
    match folder.as_bytes() {
        [drive, b':', b'\\' | b'/', ..] => drive.is_ascii_alphabetic(),
        [first, second, ..] => matches!((first, second), (b'\\' | b'/', b'\\' | b'/')),
        _ => false,
    }
}

fn ends_with_ignoring_case(text: &str, ending: &str) -> bool {
    text.len()
        .checked_sub(ending.len())
        .and_then(|start| text.get(start..))
        .is_some_and(|end| end.eq_ignore_ascii_case(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(command: &str, files: &[&str]) -> Result<WindowsProgram, NotFound> {
        let path = r#"C:\Windows;.;;relative;\rooted;"C:\odd;name";C:\node\;\\share\bin"#;
        resolve(command, path, ".COM;.EXE;.BAT;.CMD;.JS", |path| {
            files.iter().any(|file| file.eq_ignore_ascii_case(path))
        })
    }

    fn script(path: &str) -> Result<WindowsProgram, NotFound> {
        Ok(WindowsProgram::Script(path.into()))
    }

    fn executable(path: &str) -> Result<WindowsProgram, NotFound> {
        Ok(WindowsProgram::Executable(path.into()))
    }

    #[test]
    fn a_bare_name_is_searched_for_in_path_and_pathext_order() {
        assert_eq!(found("npx", &[r"C:\node\npx.cmd", r"C:\node\npx"]), script(r"C:\node\npx.CMD"));
        assert_eq!(found("x", &[r"C:\node\x.exe", r"C:\Windows\x.cmd"]), script(r"C:\Windows\x.CMD"));
        assert_eq!(found("x", &[r"C:\node\x.exe", r"C:\node\x.cmd"]), executable(r"C:\node\x.EXE"));
        assert_eq!(found("x", &[r"C:\odd;name\x.exe"]), executable(r"C:\odd;name\x.EXE"));
        assert_eq!(found("x", &[r"\\share\bin\x.exe"]), executable(r"\\share\bin\x.EXE"));
    }

    #[test]
    fn an_ending_that_is_given_is_kept() {
        assert_eq!(found("npx.cmd", &[r"C:\node\npx.cmd"]), script(r"C:\node\npx.cmd"));
        assert_eq!(found("python3.11", &[r"C:\node\python3.11.exe"]), executable(r"C:\node\python3.11.EXE"));
        assert_eq!(found("a.exe", &[r"C:\node\a.exe.cmd"]), script(r"C:\node\a.exe.CMD"));
    }

    #[test]
    fn a_path_is_not_searched_for() {
        assert_eq!(found(r"C:\p\s.exe", &[r"C:\p\s.exe"]), executable(r"C:\p\s.exe"));
        assert_eq!(found(r".bin\tool", &[r".bin\tool", r".bin\tool.cmd"]), script(r".bin\tool.CMD"));
        assert!(found(r"sub\npx", &[r"C:\node\sub\npx.cmd"]).is_err());
    }

    #[test]
    fn the_working_folder_and_folders_that_depend_on_it_are_never_searched() {
        for file in ["x.exe", r".\x.exe", r"relative\x.exe", r"\rooted\x.exe", r"\x.exe"] {
            assert!(found("x", &[file]).is_err(), "{file}");
        }
    }

    #[test]
    fn what_cannot_be_started_is_named() {
        let Err(error) = found("x", &[r"C:\node\x.js", r"C:\node\x"]) else { panic!("was found") };
        assert_eq!(error.unusable, [r"C:\node\x.JS", r"C:\node\x"]);
        assert_eq!(
            error.to_string(),
            r"no program `x` was found on PATH; cannot be started directly: C:\node\x.JS, C:\node\x"
        );
    }
}
