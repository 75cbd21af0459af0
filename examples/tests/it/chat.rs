//! The terminal host, driven in this process and as the built program.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use haversack::agent_core::policy::Mode;
use haversack::prelude::*;
use haversack_examples::chat::input::Input;
use haversack_examples::chat::screen::{Look, Screen};
use haversack_examples::chat::turn::Signals;
use haversack_examples::chat::{Options, run};

use crate::stage::{Stage, workspace};

const NOTE: &str =
    "Write down a field note: two herons at the north pond, light rain. Then search the archive for heron.";

/// What is shown, looked at as it comes.
#[derive(Clone)]
struct Shown {
    text: Arc<Mutex<String>>,
    watch: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Write for Shown {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut text = self.text.lock().unwrap();
        text.push_str(std::str::from_utf8(bytes).unwrap());
        (self.watch)(&text);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// One chat with these lines; what the screen showed, and the session at its end.
async fn chat(options: Options, lines: &[&str]) -> (String, Session) {
    watched(options, lines, Look::pipe(), Signals::silent(), |_| {}).await
}

async fn watched(
    options: Options,
    lines: &[&str],
    look: Look,
    signals: Signals,
    watch: impl Fn(&str) + Send + Sync + 'static,
) -> (String, Session) {
    let shown = Shown { text: Arc::default(), watch: Arc::new(watch) };
    let screen = Screen::new(shown.clone(), look, || Some(100));
    let session = run(options, screen, Input::scripted(lines.iter().copied()), signals).await.unwrap();
    let text = shown.text.lock().unwrap().clone();
    assert!(session.check().is_empty(), "{:?}\n{text}", session.check());
    (text, session)
}

fn options(stage: &Stage) -> Options {
    let mut options = Options::new(workspace());
    options.environment = stage.options().environment;
    options
}

fn has_in_order(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let at = rest.find(part).unwrap_or_else(|| panic!("{part:?} is not in the rest of:\n{text}"));
        rest = rest.get(at + part.len()..).unwrap();
    }
}

#[tokio::test]
async fn a_chat_asks_shows_streams_and_counts() {
    let stage = Stage::new();
    let lines = ["y", "y", NOTE, "what?", "a", "n the archive is closed", "/tokens", "/quit", "never read"];
    let (shown, session) = chat(options(&stage), &lines).await;
    let parts = [
        "model: the rehearsal",
        "field-notes (from .mcp.json)",
        "Start? [y/n] y",
        "brings 3 skills",
        "3 skills, 1 of 1 server, 10 tools",
        "• skill {\"name\":\"field-note\"}",
        "mcp__field-notes__add_note (mcp:field-notes) wants to run",
        "  title: Two herons at the north pond",
        "a always allow `mcp__field-notes__add_note`) what?",
        "please answer",
        "stored as note 1",
        "Denied by the user: the archive is closed",
        "5 steps, 3 calls · ",
        "tokens in",
        "prompt: skills",
        "not saved",
    ];
    has_in_order(&shown, &parts);
    assert_eq!(stage.notes().len(), 1);
    assert_eq!(session.grants().iter().count(), 1);
    assert!(!shown.contains("never read"));
    assert_eq!(stage.processes(), Vec::<String>::new());
}

#[tokio::test]
async fn an_edit_of_a_file_is_shown_as_a_diff_before_it_is_made() {
    let stage = Stage::new();
    let project = stage.folder.path().join("project");
    std::fs::create_dir(&project).unwrap();
    std::fs::write(project.join("birds.md"), "heron\nkingfisher\nduck\n").unwrap();
    let lines = ["Edit the file birds.md: replace `kingfisher` by `moorhen`.", "y"];
    let (shown, _) = chat(Options::new(&project), &lines).await;
    has_in_order(
        &shown,
        &["edit_file wants to run", "birds.md", "    heron", "  - kingfisher", "  + moorhen", "    duck"],
    );
    assert_eq!(std::fs::read_to_string(project.join("birds.md")).unwrap(), "heron\nmoorhen\nduck\n");
}

#[tokio::test]
async fn commands_list_and_change_what_there_is_and_mistakes_are_named() {
    let stage = Stage::new();
    let lines = [
        "y",
        "n",
        "/help",
        "/skills",
        "/servers",
        "/tools",
        "/mode",
        "/mode read-only",
        "/mode silly",
        "/skils",
        "/compact",
        "/save",
        "/resume",
        "/resume nothing.json",
        "/new",
        "Say hello.",
        "/skills all",
    ];
    let (shown, _) = chat(options(&stage), &lines).await;
    let parts = [
        "/compact",
        "field-note      .agents/skills  withheld",
        "field-notes  3 tools  ready",
        "mcp__field-notes__search_notes  Search the archive",
        "mode: ask",
        "mode: read-only, from the next message on",
        "there is no mode \"silly\"",
        "no command and no skill /skils",
        "nothing to sum up",
        "name a file: /save",
        "name a file: /resume",
        "nothing.json",
        "an empty session",
        "read-only > Say hello.",
        "(rehearsal)",
        "/skills takes nothing",
    ];
    has_in_order(&shown, &parts);
}

#[tokio::test]
async fn in_mode_read_only_nothing_is_changed_and_in_mode_autonomous_nothing_is_asked() {
    for (mode, notes) in [(Mode::ReadOnly, 0), (Mode::Autonomous, 1)] {
        let stage = Stage::new();
        let mut options = options(&stage);
        options.mode = mode;
        let (shown, _) = chat(options, &["y", "y", NOTE]).await;
        assert_eq!(stage.notes().len(), notes, "{mode}: {shown}");
    }
}

#[tokio::test]
async fn a_skill_is_started_by_its_name() {
    let stage = Stage::new();
    let (shown, session) = chat(options(&stage), &["n", "y", "/field-note a heron at the pond"]).await;
    let first = session.messages().first().unwrap().text();
    assert!(
        first.contains("# Writing a field note") && first.contains("a heron at the pond"),
        "{first}\n{shown}"
    );
}

#[tokio::test]
async fn a_chat_that_ends_at_a_question_is_kept_and_asks_again_when_it_is_resumed() {
    let stage = Stage::new();
    let file = stage.folder.path().join("chat.json");
    let save = format!("/save {}", file.display());
    let (shown, session) = chat(options(&stage), &["y", "y", &save, NOTE]).await;
    has_in_order(&shown, &["wants to run", "nobody answers", "paused"]);
    assert_eq!((session.pending_asks().len(), stage.notes().len()), (1, 0));

    let mut resumed = options(&stage);
    resumed.resume = Some(file);
    let (shown, session) = chat(resumed, &["y", "y", "y", "y"]).await;
    has_in_order(&shown, &["resumed: ", "wants to run", "stored as note 1", "1 note"]);
    assert!(session.pending_asks().is_empty());
    assert_eq!(stage.notes().len(), 1);
}

#[tokio::test]
async fn ctrl_c_stops_the_turn_and_not_the_chat() {
    for moment in ["• skill", "• mcp__field-notes__add_note"] {
        let stage = Stage::new();
        let signals = Signals::silent();
        let interrupt = Arc::clone(&signals.interrupt);
        let pressed = std::sync::atomic::AtomicBool::new(false);
        let mut options = options(&stage);
        options.assume_yes = true;
        let watch = move |text: &str| {
            if text.contains(moment) && !pressed.swap(true, std::sync::atomic::Ordering::Relaxed) {
                interrupt.notify_one();
            }
        };
        let lines = [NOTE, "Search the archive for owl."];
        let (shown, session) = watched(options, &lines, Look::terminal(true), signals, watch).await;
        has_in_order(&shown, &[moment, "stopped by the user", "Calling `mcp__field-notes__search_notes`"]);
        assert!(session.messages().len() > 4, "{shown}");
        assert_eq!(stage.processes(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn the_end_signal_in_the_middle_of_a_turn_ends_the_chat_in_order() {
    let stage = Stage::new();
    let signals = Signals::silent();
    let end = Arc::clone(&signals.end);
    let mut options = options(&stage);
    options.assume_yes = true;
    let watch = move |text: &str| {
        if text.contains("• skill") {
            end.notify_one();
        }
    };
    let (shown, _) = watched(options, &[NOTE, "Another message."], Look::pipe(), signals, watch).await;
    assert!(shown.contains("asked to end") && !shown.contains("Another message."), "{shown}");
    assert_eq!(stage.processes(), Vec::<String>::new());
}

#[test]
fn the_built_program_takes_its_lines_from_a_pipe_and_leaves_no_process() {
    let stage = Stage::new();
    let mut child = Command::new(env!("CARGO_BIN_EXE_chat"))
        .args(["--project", &workspace().to_string_lossy()])
        .env("FIELD_NOTES_SERVER", env!("CARGO_BIN_EXE_field-notes"))
        .env("FIELD_NOTES_FILE", stage.notes_file())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(format!("y\ny\n{NOTE}\ny\ny\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{shown}");
    has_in_order(&shown, &["Start? [y/n] y", "> Write down", "stored as note 1", "5 steps, 4 calls"]);
    assert!(!shown.contains('\u{1b}'), "a pipe gets no escape sequences: {shown:?}");
    assert_eq!((stage.notes().len(), stage.processes()), (1, Vec::new()));
}

#[test]
fn wrong_flags_are_one_line_that_says_what_to_do() {
    for (arguments, part) in [
        (&["--project", "no/such/folder"][..], "no/such/folder"),
        (&["--provider", "anthropic", "--model", "m"], "ANTHROPIC_API_KEY"),
        (&["--provider", "groq"], "--model"),
        (&["--provider", "compatible", "--model", "m"], "--base-url"),
        (&["--provider", "nobody"], "openrouter"),
        (&["--resume", "nothing.json"], "nothing.json"),
        (&["--mode", "silly"], "accept-known"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_chat"));
        let output =
            command.args(arguments).env_remove("ANTHROPIC_API_KEY").stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(part), "{arguments:?}: {said}");
    }
}
