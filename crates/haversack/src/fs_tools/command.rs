//! `run_command`.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use haversack_agent_core::policy::ApprovalKey;
use haversack_agent_core::tool::{Claim, Effects, ToolError, ToolErrorKind, ToolOutput, ToolSpec};
use haversack_agent_core::tool_context::{Tool, ToolContext};
use haversack_mcp_client::environment::{Environment, EnvironmentPolicy};
use serde_json::{Value, json};

use super::RUN_COMMAND;
use super::place::{number, text};
use super::process::{Ended, Shell};
use super::safe_list::is_safe_command;

/// How long a command may take when neither the host nor the call says.
pub const DEFAULT_COMMAND_TIME: Duration = Duration::from_secs(120);

/// How long a command may take at most.
pub const MAX_COMMAND_TIME: Duration = Duration::from_secs(600);

/// The longest command line, in bytes: no person can judge a longer one, and a system takes about this much.
const MAX_LINE: usize = 32 * 1024;

/// Variables by which a shell runs something before the command, or finds other files than the command says.
const SHELL_VARIABLES: &[&str] =
    &["ENV", "BASH_ENV", "CDPATH", "GLOBIGNORE", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND"];

pub(super) struct RunCommand {
    spec: ToolSpec,
    shell: Shell,
    time: Duration,
}

impl RunCommand {
    pub(super) fn new(shell: Shell, time: Duration) -> Self {
        let description = "Runs a command line in the project's root and gives its output and exit code. There is no \
            terminal and no input; what it leaves running in the background is ended with it.";
        let schema = json!({
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "The command line."},
                "seconds": {"type": "integer", "minimum": 1, "description": "How long it may take at most."},
            },
            "required": ["command"],
        });
        Self { spec: ToolSpec::new(RUN_COMMAND, description).with_schema(schema), shell, time }
    }
}

#[async_trait]
impl Tool for RunCommand {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn approval_keys(&self, arguments: &Value) -> Vec<ApprovalKey> {
        vec![ApprovalKey::command(text(arguments, "command"))]
    }

    fn effects(&self, arguments: &Value) -> Effects {
        let mut effects = Effects::default();
        if is_safe_command(text(arguments, "command")) {
            effects.read_only = Some(true);
            effects.destructive = Some(false);
            effects.claimed_by = Claim::Host;
        }
        effects
    }

    /// The call ends itself, in time to say what there was of output.
    fn time_limit(&self) -> Option<Duration> {
        Some(MAX_COMMAND_TIME + Duration::from_secs(10))
    }

    async fn call(&self, arguments: Value, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let line = text(&arguments, "command");
        if line.trim().is_empty() || line.contains('\0') || line.len() > MAX_LINE {
            let what = "the `command` is empty, has a NUL in it, or is too long";
            return Err(ToolError::invalid_arguments(what));
        }
        let seconds = number(&arguments, "seconds")?.and_then(|seconds| u64::try_from(seconds).ok());
        let time = seconds.map_or(self.time, Duration::from_secs).min(MAX_COMMAND_TIME);
        let run = self.shell.run(line, time, |piece| context.progress(piece));
        tokio::select! {
            ended = run => told(ended.map_err(|error| {
                ToolError::failed(format!("the shell could not be started: {error}"))
            })?, time),
            () = context.cancellation().cancelled() => {
                Err(ToolError::new(ToolErrorKind::Interrupted, "the command was ended with its run"))
            }
        }
    }
}

fn told(ended: Ended, time: Duration) -> Result<ToolOutput, ToolError> {
    let mut text = ended.output.text();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    if ended.left_behind {
        text.push_str("[what it left running in the background was ended]\n");
    }
    let Some(status) = ended.status else {
        let seconds = time.as_secs();
        let text = format!(
            "{text}[it was ended after {seconds} s; `seconds` allows up to {}]",
            MAX_COMMAND_TIME.as_secs()
        );
        return Err(ToolError::new(ToolErrorKind::Timeout, text));
    };
    if status.success() {
        return Ok(ToolOutput::text(if text.is_empty() { "(no output)\n".to_owned() } else { text }));
    }
    // "exit status: 1" or "signal: 9 (SIGKILL)", as the standard library puts it.
    Ok(ToolOutput::error(format!("{text}[{status}]")))
}

/// What commands see of the host's variables: what the policy lets through, without what makes a shell run something
/// else, and with only absolute folders to look for programs in.
pub(super) fn environment(host: &Environment, policy: &EnvironmentPolicy) -> Environment {
    let none: [(OsString, OsString); 0] = [];
    let child = policy.child(host, &[], none);
    let surprises = |name: &str| SHELL_VARIABLES.contains(&name) || name.starts_with("BASH_FUNC_");
    child
        .iter()
        .filter(|(name, _)| !name.to_str().is_some_and(surprises))
        .map(|(name, value)| {
            let value = if name.eq_ignore_ascii_case("PATH") { absolute(value) } else { value.to_owned() };
            (name.to_owned(), value)
        })
        .collect()
}

/// A search path without the working folder, by whatever name.
fn absolute(path: &std::ffi::OsStr) -> OsString {
    let folders = std::env::split_paths(path).filter(|folder: &std::path::PathBuf| Path::is_absolute(folder));
    std::env::join_paths(folders).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn commands_see_no_secrets_no_shell_hooks_and_no_relative_search_path() {
        let host: Environment = [
            ("PATH", "/usr/bin:.::bin:/bin"),
            ("EDITOR", "vi"),
            ("API_TOKEN", "s3cret"),
            ("BASH_ENV", "/tmp/x"),
            ("ENV", "/tmp/x"),
            ("BASH_FUNC_ls%%", "() { :; }"),
            ("VSCODE_PID", "1"),
        ]
        .into();
        let policy = EnvironmentPolicy::new(haversack_mcp_client::environment::Inherit::AllButSecrets);
        let seen = environment(&host, &policy);
        let names: Vec<_> = seen.iter().map(|(name, _)| name.to_str().unwrap().to_owned()).collect();
        assert_eq!(names, ["EDITOR", "PATH"]);
        assert_eq!(seen.text("PATH"), Some("/usr/bin:/bin"));
    }
}
