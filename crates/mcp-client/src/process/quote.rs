//! The command line with which `cmd.exe` runs a script.
//!
//! `.cmd` and `.bat` files are run by `cmd.exe`, which reads a command line by rules of its own, and then reads the
//! script's own line, into which the arguments are put as they are (`%*`), by the same rules again. An argument has to
//! survive both readings and the splitting by the program in the end. Arguments that did not have been a way to run
//! other people's commands in many languages ([BatBadBut](https://kb.cert.org/vuls/id/123335), CVE-2024-24576).
//!
//! So each argument is written in three layers:
//!
//! 1. *For the program:* in double quotes, unless it is plain; a quote inside is doubled, backslashes before a quote or
//!    before the end are doubled. Doubled, not `\"`: to the second reading, `\"` would end the quotes and leave what
//!    follows bare; after `""` it is inside of quotes again.
//! 2. *For the second reading:* nothing more, as inside of quotes `cmd.exe` takes `& | < > ( ) ^` as they are, and it does
//!    not look for variables in what it puts in for `%*`.
//! 3. *For the first reading:* each character that is not plain gets a caret before it, the quotes too. So nothing is
//!    special in it, and no `%NAME%` has its name: what stands between the signs ends in a caret.
//!
//! The whole stands in one outer pair of quotes, which `/s` makes `cmd.exe` take away whatever is inside; `/d` keeps
//! commands of the registry from running first, `/v:off` keeps `!` from being special.
//!
//! Out of reach is a script that reads its arguments yet another time (`call`, `for`, delayed expansion), which is its
//! own fault, and is why line ends and NUL are refused.

use std::fmt::Write as _;

/// The longest line that `cmd.exe` takes, in UTF-16 units.
pub const MAX_LINE_UNITS: usize = 8191;

/// An argument or a path that cannot be given to a script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuoteError {
    /// No command line can hold it.
    #[error("argument {position} has a line end or a NUL character, which no script can take")]
    Unrepresentable {
        /// Which argument, counted from 1; 0 is the script.
        position: usize,
    },
    /// The line is longer than [`MAX_LINE_UNITS`].
    #[error("the command line has {units} UTF-16 units; cmd.exe takes {MAX_LINE_UNITS}")]
    TooLong {
        /// Its length in UTF-16 units.
        units: usize,
    },
}

/// What follows `cmd.exe` to run a script with arguments, to be passed as it is and quoted no further.
///
/// ```
/// use haversack_mcp_client::process::quote::cmd_arguments;
///
/// let line = cmd_arguments(r"C:\nodejs\npx.cmd", &["-y", "a & b"]).unwrap();
/// assert_eq!(line, r#"/d /v:off /s /c "C^:\nodejs\npx.cmd -y ^"a^ ^&^ b^"""#);
/// ```
///
/// # Errors
///
/// A NUL, carriage return or line feed, or a line that is too long.
pub fn cmd_arguments<A: AsRef<str>>(script: &str, args: &[A]) -> Result<String, QuoteError> {
    let mut line = String::from("/d /v:off /s /c \"");
    check(0, script)?;
    push_escaped(&mut line, script);
    for (before, arg) in args.iter().enumerate() {
        check(before + 1, arg.as_ref())?;
        line.push(' ');
        push_escaped(&mut line, &quote_for_program(arg.as_ref()));
    }
    line.push('"');
    // `cmd.exe` itself, in quotes and with its folder, stands before it; the folder of Windows is short.
    let units = line.encode_utf16().count();
    if units > MAX_LINE_UNITS { Err(QuoteError::TooLong { units }) } else { Ok(line) }
}

fn check(position: usize, text: &str) -> Result<(), QuoteError> {
    if text.contains(['\0', '\r', '\n']) { Err(QuoteError::Unrepresentable { position }) } else { Ok(()) }
}

/// One argument as the C runtime of Windows splits it off, in quotes unless it is plain.
///
/// A quote inside is written twice, which the runtime has read as one since Visual C++ 2008, and which keeps the quotes
/// balanced for `cmd.exe`.
#[must_use]
pub fn quote_for_program(arg: &str) -> String {
    if !arg.is_empty() && arg.chars().all(is_plain) {
        return arg.to_owned();
    }
    let mut quoted = String::with_capacity(arg.len() + 2);
    quoted.push('"');
    let mut backslashes = 0;
    for c in arg.chars() {
        match c {
            '\\' => backslashes += 1,
            '"' => {
                // Twice as many, and then the quote twice.
                push_backslashes(&mut quoted, backslashes);
                backslashes = 0;
                quoted.push('"');
            }
            _ => backslashes = 0,
        }
        quoted.push(c);
    }
    push_backslashes(&mut quoted, backslashes);
    quoted.push('"');
    quoted
}

fn push_backslashes(quoted: &mut String, count: usize) {
    quoted.extend(std::iter::repeat_n('\\', count));
}

/// What no reading takes for anything but itself, and where no script's `%1` ends.
fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '\\' | ':' | '@' | '+')
}

fn push_escaped(line: &mut String, text: &str) {
    for c in text.chars() {
        // The colon too: `%NAME:a=b%` would otherwise have its name before the first caret.
        if c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '\\') || !c.is_ascii() {
            line.push(c);
        } else {
            // Writing to a `String` cannot fail.
            let _ = write!(line, "^{c}");
        }
    }
}
