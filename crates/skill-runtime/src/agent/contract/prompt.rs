//! A contract as its agent reads it.

use std::fmt::Write as _;

use crate::agent::contract::{Contract, Permission};

impl Contract {
    /// The contract as its agent reads it.
    pub fn to_prompt(&self) -> String {
        let mut out = format!(
            "## Delegation Contract\n\n- Contract: {}\n- Task: {}\n",
            self.contract_id, self.task_brief
        );
        if !self.success_criteria.is_empty() {
            let _ = writeln!(out, "- Done when: {}", self.success_criteria);
        }
        if !self.parent_contract.is_empty() {
            let _ = writeln!(out, "- Contract above: {}", self.parent_contract);
        }
        let _ = writeln!(out, "- Time limit: {} ms", self.timeout_ms);
        self.write_scope(&mut out);
        self.write_constraints(&mut out);
        out.push_str(RULES);
        out
    }

    fn write_scope(&self, out: &mut String) {
        if self.scope.is_empty() {
            return;
        }
        out.push_str("\n### Allowed Scope\n\n");
        for entry in &self.scope {
            let words: Vec<&str> = entry.permissions.iter().map(|p| p.word()).collect();
            let _ = writeln!(out, "- `{}` [{}]", entry.path, words.join(", "));
        }
    }

    fn write_constraints(&self, out: &mut String) {
        let c = &self.constraints;
        let mut lines = Vec::new();
        let flags = [
            (c.no_network, "No network access"),
            (c.no_spawn, "No sub-agents"),
            (c.sandbox_required, "Everything that is executed runs in the sandbox"),
        ];
        lines.extend(flags.iter().filter(|(set, _)| *set).map(|(_, text)| (*text).to_owned()));
        lines.extend(c.max_bash_calls.map(|max| format!("Commands at most: {max}")));
        if let Some(commands) = &c.allowed_commands {
            let listed = if commands.is_empty() { "none".to_owned() } else { commands.join(", ") };
            lines.push(format!("Commands that may run: {listed}"));
        }
        lines.extend(c.max_tokens.map(|max| format!("Tokens at most: {max}")));
        if lines.is_empty() {
            return;
        }
        out.push_str("\n### Constraints\n\n");
        for line in lines {
            let _ = writeln!(out, "- {line}");
        }
    }
}

impl Permission {
    fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Execute => "execute",
        }
    }
}

/// The rules, and the shape of the report: an agent that is asked for a record has to be shown one.
const RULES: &str = "
### Rules

1. Work only inside the scope above; without one, only where your tools reach. Going beyond it ends the work.
2. Keep to the constraints; they are enforced, and trying to get around one ends the work.
3. When you lack a right, stop and report `needs_auth` with what you would need; when you need an answer, report `needs_help`.
4. End with one JSON object as your whole last message, in this shape, leaving out what does not apply:

```json
{\"status\": \"completed | partial | blocked | needs_auth | needs_help | failed\",
 \"result\": \"what came of it\",
 \"reasoning_summary\": \"why, in a few sentences\",
 \"resume_hint\": \"where to go on, if it is not done\",
 \"artifacts\": {\"files_modified\": [], \"files_created\": [], \"commands_run\": []},
 \"auth_request\": {\"reason\": \"\", \"risk_level\": \"low | medium | high\"},
 \"help_request\": {\"question\": \"\", \"context\": \"\", \"options\": []}}
```
";
