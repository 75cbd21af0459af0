//! A model of how `cmd.exe` and the C runtime of Windows read a command line, for tests on any system.
//!
//! It follows the public descriptions of the phases that matter here: percent expansion on the command line and in a
//! batch file, the reading of quotes and carets, the outer quotes under `/s /c`, and the splitting by the Universal C
//! Runtime. Where a real `cmd.exe` would run a second command, redirect, or open a block, the model says so instead.

/// What reading a line came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// One command with this text after its carets are gone.
    Command(String),
    /// A character with a meaning of its own stood bare: another command could have run.
    Special(char),
}

/// Takes what follows `cmd.exe`, and gives what `/s /c` leaves.
pub(crate) fn without_outer_quotes(line: &str) -> &str {
    line.strip_prefix("/d /v:off /s /c \"").unwrap().strip_suffix('"').unwrap()
}

/// Percent expansion of a line typed at the prompt: a name that is not defined stays. `PATH` is defined.
pub(crate) fn expand_percent(line: &str) -> String {
    let defined = |name: &str| {
        // `%NAME:from=to%` and `%NAME:~1,2%` are the variable up to the colon.
        let name = name.split(':').next().unwrap();
        (name.eq_ignore_ascii_case("path")).then_some("LEAKED")
    };
    let mut expanded = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('%') {
        expanded.push_str(before);
        match after.split_once('%').and_then(|(name, then)| Some((defined(name)?, then))) {
            Some((value, then)) => {
                expanded.push_str(value);
                rest = then;
            }
            None => {
                expanded.push('%');
                rest = after;
            }
        }
    }
    expanded + rest
}

/// The reading of quotes, carets and characters with a meaning.
pub(crate) fn read(line: &str) -> Read {
    let mut text = String::new();
    let mut in_quotes = false;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                in_quotes = !in_quotes;
                text.push(c);
            }
            '^' if !in_quotes => text.extend(chars.next()),
            '&' | '|' | '<' | '>' | '(' | ')' | '\n' if !in_quotes => return Read::Special(c),
            c => text.push(c),
        }
    }
    Read::Command(text)
}

/// The first word of a command and what follows it: a bare blank, comma, semicolon or equals sign ends the word.
///
/// Takes the line *before* carets are gone, since an escaped blank does not end the word.
pub(crate) fn split_script(line: &str) -> (String, &str) {
    let mut script = String::new();
    let mut chars = line.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '^' => script.extend(chars.next().map(|(_, c)| c)),
            ' ' | ',' | ';' | '=' | '\t' => return (script, line.get(at..).unwrap()),
            c => script.push(c),
        }
    }
    (script, "")
}

/// The splitting of a command line into arguments by the Universal C Runtime, without the program's name.
pub(crate) fn split_arguments(line: &str) -> Vec<String> {
    let chars: Vec<char> = line.chars().collect();
    let mut args = Vec::new();
    let mut at = 0;
    loop {
        while matches!(chars.get(at), Some(' ' | '\t')) {
            at += 1;
        }
        if at >= chars.len() {
            return args;
        }
        let mut arg = String::new();
        let mut in_quotes = false;
        loop {
            let backslashes = chars[at..].iter().take_while(|&&c| c == '\\').count();
            at += backslashes;
            if chars.get(at) == Some(&'"') {
                arg.extend(std::iter::repeat_n('\\', backslashes / 2));
                if backslashes % 2 == 1 {
                    arg.push('"');
                } else if in_quotes && chars.get(at + 1) == Some(&'"') {
                    arg.push('"');
                    at += 1;
                } else {
                    in_quotes = !in_quotes;
                }
                at += 1;
                continue;
            }
            arg.extend(std::iter::repeat_n('\\', backslashes));
            match chars.get(at) {
                None => break,
                Some(' ' | '\t') if !in_quotes => break,
                Some(&c) => arg.push(c),
            }
            at += 1;
        }
        args.push(arg);
    }
}
