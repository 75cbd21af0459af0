//! The command line: what there is to say, and who does it.

mod args;
mod out;
mod host;
mod check;
mod call;
mod serve;

use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory as _, Parser as _};

use args::{Cli, Command};

/// How long what still runs may take to end after the answer is there.
const END_LIMIT: Duration = Duration::from_millis(500);

/// Why a command ended without doing what it was to do: a wrong use of the command line, or a failure.
#[derive(Debug)]
pub(crate) enum Ending {
    /// Exit status 2, as for the faults that clap finds.
    Usage(String),
    /// Exit status 1.
    Failed(String),
    /// Exit status 1; what is to be said is on standard output.
    Told,
}

impl<E: std::error::Error> From<E> for Ending {
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        Self::Failed(text)
    }
}

pub(crate) fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Ending::Told) => ExitCode::FAILURE,
        Err(Ending::Usage(text)) => {
            out::complain(&format!("{text}\n\nFor more information, try '--help'."));
            ExitCode::from(2)
        }
        Err(Ending::Failed(text)) => {
            out::complain(&text);
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> Result<(), Ending> {
    out::log_to_stderr(cli.log);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = match cli.command.unwrap_or(Command::Serve(cli.serve)) {
        Command::Serve(args) => runtime.block_on(serve::serve(args)),
        Command::Validate(args) => check::validate(&args),
        Command::Compile(args) => runtime.block_on(check::compile(args)),
        Command::List(args) => runtime.block_on(check::list(args)),
        Command::Call(args) => runtime.block_on(call::call(args)),
        Command::Completions { shell } => {
            let mut command = Cli::command();
            let name = command.get_name().to_owned();
            clap_complete::generate(shell, &mut command, name, &mut std::io::stdout());
            Ok(())
        }
    };
    // A read of standard input cannot be taken back; it must not hold up the end.
    runtime.shutdown_timeout(END_LIMIT);
    done
}
