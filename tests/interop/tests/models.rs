//! Real model servers: llama.cpp's own, over a model that is wired to say a script, and a mock of many APIs for the wires
//! that have no server to run here.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests say what broke by panicking"
)]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use futures_util::StreamExt as _;
use haversack_agent_core::agent::Agent;
use haversack_agent_core::message::Message;
use haversack_agent_core::model::{Model, ModelError, ModelErrorKind, ModelEvent, ModelRequest};
use haversack_agent_core::outcome::Outcome;
use haversack_agent_core::retry::RetryPolicy;
use haversack_agent_core::session::Session;
use haversack_agent_core::tool::ToolSpec;
use haversack_agent_core::tool_fn::tool_fn;
use haversack_http::ReqwestClient;
use haversack_interop_tests::{peer, shared};
use haversack_providers::{Anthropic, Gemini, Ollama, OpenAiChat, OpenAiResponses};
use serde_json::{Value, json};

/// A server on this machine; it ends with the test.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    /// Starts a program that says its address at the end of a line once it is ready.
    fn start(command: &mut Command) -> Self {
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the server starts");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line =
            lines.by_ref().map(Result::unwrap).find(|line| line.contains("http://")).expect("an address");
        let url = line.split("http://").nth(1).map(|rest| format!("http://{}", rest.trim())).unwrap();
        // What it says later must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, url }
    }

    /// llama.cpp over the scripted model.
    fn llama(folder: &Path) -> Option<Self> {
        let (make, serve) = (
            shared("corpus/providers/scripted_llamacpp/make_scripted_gguf.py")?,
            shared("corpus/providers/scripted_llamacpp/serve.py")?,
        );
        let python = folder.join("bin/python");
        let model =
            folder.join(format!("scripted-{}-{:?}.gguf", std::process::id(), std::thread::current().id()));
        let made = Command::new(&python).arg(make).arg(&model).output().expect("python runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        // Port 0: the system picks one, and the server says which.
        let server = Self::start(Command::new(&python).arg(serve).arg(&model).arg("0"));
        drop(std::fs::remove_file(&model));
        Some(server)
    }

    fn aimock(folder: &Path, more: &[&str]) -> Self {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("aimock/fixtures.json");
        let program = folder.join("node_modules/.bin/llmock");
        Self::start(
            Command::new(program)
                .args(["--port", "0", "--chunk-size", "7", "--fixtures"])
                .arg(fixtures)
                .args(more),
        )
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn http() -> ReqwestClient {
    ReqwestClient::new().unwrap()
}

/// All that a call gives.
async fn call(model: &dyn Model, text: &str) -> (Vec<ModelEvent>, Option<ModelError>) {
    let request = ModelRequest::new([Message::user(text)].into_iter().collect());
    let (mut events, mut error) = (Vec::new(), None);
    let mut stream = model.stream(request);
    while let Some(item) = stream.next().await {
        match item {
            Ok(event) => events.push(event),
            Err(failure) => error = Some(failure),
        }
    }
    (events, error)
}

fn weather() -> ToolSpec {
    ToolSpec::new("get_weather", "The weather of the coming days").read_only().with_schema(json!({
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city", "days"],
    }))
}

/// A whole run: question, call, result, answer.
async fn run(model: impl Model, question: &str) -> (Outcome, Session, Vec<Value>) {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let tool = tool_fn(weather(), move |arguments: Value, _context| {
        sink.lock().unwrap().push(arguments);
        async { Ok("sunny") }
    });
    let agent = Agent::builder(model).tool(tool).retry(RetryPolicy::never()).build().unwrap();
    let mut session = Session::new();
    let outcome = agent.start(&mut session, question).outcome().await.unwrap_or_else(|e| panic!("{e}"));
    let seen = seen.lock().unwrap().clone();
    (outcome, session, seen)
}

#[tokio::test]
async fn llama_cpp_runs_an_agent_over_each_of_its_three_apis() {
    let Some(folder) = peer("llama") else { return };
    let Some(server) = Server::llama(&folder) else { return };
    let (root, v1) = (server.url.clone(), format!("{}/v1", server.url));
    for streams in [true, false] {
        let models: Vec<(&str, Box<dyn Model>)> = vec![
            ("chat", {
                let model = OpenAiChat::new(http(), &v1, "m");
                Box::new(if streams { model } else { model.without_streaming() })
            }),
            ("responses", {
                let model = OpenAiResponses::new(http(), &v1, "m");
                Box::new(if streams { model } else { model.without_streaming() })
            }),
            ("anthropic", {
                let model = Anthropic::new(http(), &root, "m");
                Box::new(if streams { model } else { model.without_streaming() })
            }),
        ];
        for (api, model) in models {
            let (outcome, session, calls) = run(model, "what is the weather?").await;
            let Outcome::Done { text, .. } = &outcome else { panic!("{api}: {outcome:?}") };
            assert!(!text.is_empty(), "{api} says nothing at the end");
            assert_eq!(calls.len(), 1, "{api}: {calls:?}");
            assert!(calls.iter().all(|arguments| arguments["city"].is_string()), "{api}: {calls:?}");
            assert_eq!(session.messages().len(), 4, "{api}: question, call, result, answer");
        }
    }
}

#[tokio::test]
async fn llama_cpp_gives_parallel_calls_and_umlauts_over_the_anthropic_shape() {
    let Some(folder) = peer("llama") else { return };
    let Some(server) = Server::llama(&folder) else { return };
    let (_, session, calls) = run(Anthropic::new(http(), &server.url, "m"), "go script=two now").await;
    let answer = session.messages().iter().find(|message| message.tool_calls().count() > 0).unwrap();
    assert_eq!(answer.tool_calls().count(), 2);
    assert_eq!(calls.len(), 2);
    let (_, _, calls) = run(Anthropic::new(http(), &server.url, "m"), "go script=pre now").await;
    assert_eq!(calls.first().map(|c| c["city"].clone()), Some("Zürich 🌧".into()));
}

#[tokio::test]
async fn llama_cpp_says_that_a_prompt_does_not_fit() {
    let Some(folder) = peer("llama") else { return };
    let Some(server) = Server::llama(&folder) else { return };
    let long = "x".repeat(20_000);
    for model in [
        Box::new(Anthropic::new(http(), &server.url, "m")) as Box<dyn Model>,
        Box::new(OpenAiChat::new(http(), format!("{}/v1", server.url), "m")),
    ] {
        let (_, error) = call(&*model, &long).await;
        let kind = error.expect("a prompt of 20,000 tokens does not fit").kind;
        assert!(
            matches!(kind, ModelErrorKind::ContextOverflow { limit: Some(_), used: Some(_) }),
            "{kind:?}"
        );
    }
}

/// The wires of the mock, each with its way of streaming.
fn wires(url: &str) -> Vec<(&'static str, Box<dyn Model>)> {
    vec![
        ("gemini", Box::new(Gemini::new(http(), url, "gemini-2.5-flash").with_key("mock-key"))),
        (
            "gemini, whole",
            Box::new(Gemini::new(http(), url, "gemini-2.5-flash").with_key("mock-key").without_streaming()),
        ),
        ("ollama", Box::new(Ollama::new(http(), url, "llama3"))),
        ("ollama, whole", Box::new(Ollama::new(http(), url, "llama3").without_streaming())),
        ("anthropic", Box::new(Anthropic::new(http(), url, "claude-sonnet-4-5").with_key("mock-key"))),
        ("chat", Box::new(OpenAiChat::new(http(), format!("{url}/v1"), "gpt-4o").with_key("mock-key"))),
        (
            "responses",
            Box::new(OpenAiResponses::new(http(), format!("{url}/v1"), "gpt-4o").with_key("mock-key")),
        ),
    ]
}

#[tokio::test]
async fn aimock_runs_an_agent_over_every_wire() {
    let Some(folder) = peer("aimock") else { return };
    let server = Server::aimock(&folder, &[]);
    for (wire, model) in wires(&server.url) {
        let (outcome, session, calls) = run(model, "what is the weather?").await;
        let Outcome::Done { text, .. } = &outcome else { panic!("{wire}: {outcome:?}") };
        assert_eq!(text, "It is sunny in Zürich 🌞.", "{wire}");
        assert_eq!(calls, [json!({"city": "Zürich", "days": 3})], "{wire}");
        assert_eq!(session.messages().len(), 4, "{wire}");
    }
}

#[tokio::test]
async fn aimock_s_refusals_are_rate_limits_that_say_when_to_come_back() {
    let Some(folder) = peer("aimock") else { return };
    let server = Server::aimock(&folder, &["--chaos-ratelimit", "1"]);
    for (wire, model) in wires(&server.url) {
        let error = call(&*model, "hello").await.1.unwrap_or_else(|| panic!("{wire}: no error"));
        assert_eq!(error.kind, ModelErrorKind::RateLimited, "{wire}: {error}");
        assert!(error.retry_after.is_some(), "{wire}: {error:?}");
    }
}

#[tokio::test]
async fn aimock_s_broken_connections_and_broken_json_are_errors_and_no_answers() {
    let Some(folder) = peer("aimock") else { return };
    let server = Server::aimock(&folder, &["--chaos-disconnect", "1"]);
    for (wire, model) in wires(&server.url) {
        let (events, error) = call(&*model, "hello").await;
        let kind = error.unwrap_or_else(|| panic!("{wire}: {events:?}")).kind;
        assert!(matches!(kind, ModelErrorKind::Transport | ModelErrorKind::Interrupted), "{wire}: {kind:?}");
    }
    let server = Server::aimock(&folder, &["--chaos-malformed", "1"]);
    for (wire, model) in wires(&server.url) {
        let (events, error) = call(&*model, "hello").await;
        assert!(error.is_some(), "{wire}: {events:?}");
        assert!(!events.iter().any(|event| matches!(event, ModelEvent::Stop { .. })), "{wire}");
    }
}

#[tokio::test]
async fn aimock_s_stream_that_breaks_in_the_middle_is_interrupted_with_what_was_said() {
    let Some(folder) = peer("aimock") else { return };
    let server = Server::aimock(&folder, &[]);
    for (wire, model) in wires(&server.url).into_iter().filter(|(wire, _)| !wire.contains("whole")) {
        let (events, error) = call(&*model, "break").await;
        let Some(error) = error else { panic!("{wire}: {events:?}") };
        assert!(
            matches!(error.kind, ModelErrorKind::Interrupted | ModelErrorKind::Transport),
            "{wire}: {error:?}"
        );
        let said: String = events
            .iter()
            .filter_map(|e| if let ModelEvent::Text(t) = e { Some(&**t) } else { None })
            .collect();
        let whole = "One two three four five six seven eight nine ten.";
        assert!(!said.is_empty() && whole.starts_with(&said) && said != whole, "{wire}: {said:?}");
    }
}
