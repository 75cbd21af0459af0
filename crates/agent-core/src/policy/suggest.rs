//! Rules to offer beside an ask.

use crate::policy::pattern::{ApprovalKey, KeyPattern, is_plain_command};
use crate::policy::proposal::Proposal;
use crate::policy::rule::Rule;
use crate::policy::ruling::Ruling;

/// Rules that would make this ask needless from now on, narrowest first. Each of them alone covers the whole call.
///
/// There are none where a grant cannot help, because a rule or a hook insists on being asked, and none for a command
/// with shell syntax, which nobody can judge in advance. A destructive tool gets no rule beyond the exact call.
pub fn suggest(proposal: &Proposal<'_>, ruling: &Ruling<'_>) -> Vec<Rule> {
    let unjudged = |key: &ApprovalKey| matches!(key, ApprovalKey::Command(c) if !is_plain_command(c));
    if !ruling.reason.yields_to_grants() || proposal.keys.iter().any(unjudged) {
        return Vec::new();
    }
    let rule = |keys: Vec<KeyPattern>| Rule::allow(&*proposal.spec.name).for_keys(keys);
    let destructive = proposal.effects.destructive == Some(true);
    if proposal.keys.is_empty() {
        return if destructive { Vec::new() } else { vec![rule(Vec::new())] };
    }
    let mut rules = vec![rule(proposal.keys.iter().cloned().map(KeyPattern::Exact).collect())];
    if !destructive {
        let wider: Vec<_> = proposal.keys.iter().map(widened).collect();
        let wider = rule(wider);
        if !rules.contains(&wider) {
            rules.push(wider);
        }
        // A shell as a whole is everything that the machine can do: that is for the host to grant, not to offer.
        if !proposal.keys.iter().any(|key| matches!(key, ApprovalKey::Command(_))) {
            rules.push(rule(Vec::new()));
        }
    }
    rules
}

/// The next wider pattern that a person can still take in: the folder of a file, the first words of a command.
fn widened(key: &ApprovalKey) -> KeyPattern {
    let wider = match key {
        ApprovalKey::Path(path) => path
            .rsplit_once('/')
            .filter(|(folder, _)| !folder.is_empty() && !folder.contains('*') && !folder.contains(".."))
            .map(|(folder, _)| KeyPattern::path(format!("{folder}/**"))),
        ApprovalKey::Command(command) => command_prefix(command).map(KeyPattern::Command),
        ApprovalKey::Other(_) => None,
    };
    wider.unwrap_or_else(|| KeyPattern::Exact(key.clone()))
}

/// Programs whose first words say nothing about what they do: interpreters and shells, build drivers that run what a
/// project says, downloaders, programs that move or destroy files, and those that run others or grant privileges.
/// A prefix of such a command would be a blank cheque.
const OPAQUE_PROGRAMS: &[&str] = &[
    // shells and interpreters
    "sh",
    "bash",
    "zsh",
    "fish",
    "dash",
    "ksh",
    "cmd",
    "powershell",
    "pwsh",
    "python",
    "python2",
    "python3",
    "node",
    "deno",
    "bun",
    "ruby",
    "perl",
    "php",
    "lua",
    "rscript",
    "osascript",
    "awk",
    "gawk",
    "sed",
    // build drivers
    "make",
    "cmake",
    "ninja",
    "cargo",
    "go",
    "dotnet",
    "java",
    "gradle",
    "mvn",
    "bazel",
    "rake",
    "just",
    // downloaders
    "curl",
    "wget",
    "scp",
    "sftp",
    "rsync",
    "ssh",
    "ftp",
    "nc",
    "ncat",
    // moving and destroying
    "rm",
    "rmdir",
    "mv",
    "cp",
    "dd",
    "del",
    "erase",
    "rd",
    "move",
    "copy",
    "ln",
    "chmod",
    "chown",
    "shred",
    "truncate",
    "mkfs",
    "kill",
    "pkill",
    "killall",
    "find",
    "tee",
    "tar",
    "unzip",
    // running others, privileges
    "sudo",
    "su",
    "doas",
    "runas",
    "env",
    "xargs",
    "nohup",
    "time",
    "timeout",
    "exec",
    "eval",
    "nice",
    "watch",
    "docker",
    "podman",
    "kubectl",
    "npx",
    "pnpx",
    "bunx",
    "uvx",
    "pipx",
];

/// Second words that only lead to the word that matters: `npm run test` is one thing, `npm run` is not.
const LEADING_WORDS: &[&str] = &["run", "run-script", "exec", "x", "dlx", "create", "init"];

/// The first two words of a command, or three after a leading word; none where that would say too little.
fn command_prefix(command: &str) -> Option<String> {
    let is_name = |word: &&str| {
        !word.starts_with('-')
            && !word.contains(['"', '\'', '=', '/', '\\', '.', ':', '*', '?', '~', '{', '['])
    };
    let words: Vec<_> = command.split_whitespace().take_while(is_name).take(3).collect();
    let (program, second) = (words.first()?, words.get(1)?);
    let opaque = |word: &str| OPAQUE_PROGRAMS.iter().any(|p| p.eq_ignore_ascii_case(word));
    if opaque(program) {
        return None;
    }
    let length = if LEADING_WORDS.contains(second) { 3 } else { 2 };
    let prefix = words.get(..length)?;
    let last = prefix.last()?;
    (!opaque(last)).then(|| prefix.join(" "))
}
