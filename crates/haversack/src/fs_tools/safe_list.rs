//! Commands that only look, and need nobody's yes.

/// Whether a whole command line is one of those that only look at a project: a fixed list of words, with nothing in it
/// that a shell would give a meaning to.
///
/// `git diff` and `git show` are not among them: a repository can name programs that they run.
///
/// ```
/// use haversack::fs_tools::is_safe_command;
///
/// assert!(is_safe_command("git status --short") && is_safe_command("git log --oneline -n 5"));
/// assert!(!is_safe_command("git diff") && !is_safe_command("ls; rm -r ."));
/// ```
pub fn is_safe_command(command: &str) -> bool {
    if command.contains(|c: char| c.is_control()) {
        return false;
    }
    let words: Vec<&str> = command.split(' ').filter(|word| !word.is_empty()).collect();
    match words.as_slice() {
        ["git", "status"]
        | ["git", "status", "--short" | "-s" | "--porcelain" | "-sb"]
        | ["git", "branch"]
        | ["git", "branch", "--show-current" | "-a" | "--list"]
        | ["git", "rev-parse", "--abbrev-ref", "HEAD"]
        | ["pwd" | "dir" | "ls"]
        | ["ls", "-l" | "-la"]
        | ["node" | "npm", "--version"] => true,
        ["git", "log", rest @ ..] => is_plain_log(rest),
        _ => false,
    }
}

/// `--oneline`, `-n N` and `-N`, in any order.
fn is_plain_log(words: &[&str]) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match words {
        [] => true,
        ["--oneline", rest @ ..] => is_plain_log(rest),
        ["-n", count, rest @ ..] if is_number(count) => is_plain_log(rest),
        [count, rest @ ..] if count.strip_prefix('-').is_some_and(is_number) => is_plain_log(rest),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_command_counts() {
        for command in [
            "git status",
            "git  status -sb",
            "git log",
            "git log -3 --oneline",
            "git log -n 20",
            "git branch -a",
            "git rev-parse --abbrev-ref HEAD",
            "pwd",
            "ls -la",
            "npm --version",
        ] {
            assert!(is_safe_command(command), "{command}");
        }
        for command in [
            "",
            "git",
            "git status\nrm x",
            "git status --short x",
            "git log -p",
            "git log -n",
            "git log -n x",
            "git log --output=x",
            "git log -",
            "git branch new",
            "git -C .. status",
            "git show",
            "ls ..",
            "ls *",
            "ls -la;id",
            "ls\t-la",
            "ls\u{a0}-la",
            "pwd > x",
            "./ls",
            "node --version --eval=1",
        ] {
            assert!(!is_safe_command(command), "{command}");
        }
    }
}
