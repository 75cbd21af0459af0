//! What there is, as tables: skills, servers, tools, commands, tokens.

use haversack::agent_core::ledger::{AttemptEnd, Ledger};
use haversack::prelude::Agent;
use haversack::{Report, SkillState};

use crate::chat::command::COMMANDS;
use crate::chat::screen::{Screen, Style};
use crate::chat::turn::thousands;
use crate::chat::wrap::columns;

/// Columns that a long cell needs to be broken in place.
const LEAST_CELL: usize = 24;

/// Rows of cells, aligned; the last cell of a row may be long.
fn table(screen: &Screen, rows: &[Vec<String>]) {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| columns(cell)).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count).map(width).collect();
    // A long last cell goes on below its beginning, where there is room for words.
    let before: usize = widths.iter().rev().skip(1).map(|width| width + 2).sum::<usize>() + 2;
    let has_room = screen.width().is_some_and(|width| width >= before + LEAST_CELL);
    let hanging = if has_room { before } else { 4 };
    for row in rows {
        let mut line = String::from(" ");
        for (at, cell) in row.iter().enumerate() {
            line.push(' ');
            line.push_str(cell);
            if at + 1 < row.len() {
                let gap = widths.get(at).map_or(0, |width| width.saturating_sub(columns(cell)));
                line.extend(std::iter::repeat_n(' ', gap + 1));
            }
        }
        screen.moved_in(&[(Style::Plain, &line)], hanging);
    }
}

/// The commands.
pub fn help(screen: &Screen) {
    let rows: Vec<_> = COMMANDS
        .iter()
        .map(|(name, argument, what)| {
            vec![format!("{name} {argument}").trim().to_owned(), (*what).to_owned()]
        })
        .collect();
    table(screen, &rows);
    let more = "  /NAME or $NAME with words behind it starts with the skill NAME. Ctrl-C stops a turn, Ctrl-D ends. \
        A backslash at the end of a line goes on in the next one.";
    screen.line(Style::Plain, more);
}

/// The skills.
pub fn skills(screen: &Screen, report: &Report) {
    if report.skills.is_empty() {
        screen.line(Style::Plain, "  no skills: put them into .agents/skills/NAME/SKILL.md");
    }
    let rows: Vec<_> =
        report.skills.iter().map(|s| vec![s.name.clone(), s.origin.clone(), s.state.to_string()]).collect();
    table(screen, &rows);
}

/// The servers.
pub fn servers(screen: &Screen, report: &Report) {
    if report.servers.is_empty() {
        screen.line(Style::Plain, "  no servers: name them in .mcp.json");
    }
    let tools = |count: usize| if count == 1 { "1 tool".to_owned() } else { format!("{count} tools") };
    let rows: Vec<_> =
        report.servers.iter().map(|s| vec![s.name.to_string(), tools(s.tools), s.state.clone()]).collect();
    table(screen, &rows);
}

/// The tools.
pub fn tools(screen: &Screen, agent: &Agent) {
    if agent.tools().is_empty() {
        screen.line(Style::Plain, "  no tools");
    }
    let first_line = |text: &str| text.lines().next().unwrap_or_default().trim().to_owned();
    for spec in agent.tools() {
        screen.clipped(Style::Plain, &format!("  {}  {}", spec.name, first_line(&spec.description)));
    }
}

/// What the conversation cost, and what each section of the prompt does in every request.
pub fn tokens(screen: &Screen, report: &Report, ledger: &Ledger) {
    let total = ledger.total();
    let failed = ledger.entries().iter().filter(|entry| entry.end != AttemptEnd::Answered).count();
    let counted = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), thousands);
    let mut rows = vec![
        vec![
            "requests".to_owned(),
            format!("{}, {failed} of them failed or stopped", ledger.entries().len()),
        ],
        vec!["tokens in".to_owned(), counted(total.input)],
        vec!["  of them cached".to_owned(), counted(total.cached)],
        vec!["tokens out".to_owned(), counted(total.output)],
    ];
    let section = |s: &haversack::SectionCost| {
        vec![format!("prompt: {}", s.name), format!("about {} in each request", thousands(s.tokens as u64))]
    };
    rows.extend(report.sections.iter().map(section));
    table(screen, &rows);
}

/// What a prepared run has, in a line, and what went wrong.
pub fn summary(screen: &Screen, report: &Report) {
    for note in &report.notes {
        screen.line(Style::Notice, &format!("! {note}"));
    }
    let offered = report.skills.iter().filter(|s| s.state == SkillState::Offered).count();
    let ready = report.servers.iter().filter(|s| s.is_ready).count();
    let plural = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let line = format!(
        "{}, {} of {}, {}",
        plural(offered, "skill"),
        ready,
        plural(report.servers.len(), "server"),
        plural(report.tools.len(), "tool")
    );
    screen.line(Style::Faint, &line);
}
