use std::fs;

use haversack_agent_core::tool_context::ToolContext;
use haversack_mcp_client::ClientOptions;
use haversack_mcp_client::protocol::EraChoice;
use haversack_skills::consent::Consent;
use haversack_skills::{Filter, Reader, Registry, Root, Roots};
use serde_json::json;
use sha2::Digest as _;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};

use super::*;
use crate::skill_tool::SkillTool;

const BODY: &str = "---\nname: pdf\ndescription: Reads PDF forms.\nversion: 2\n---\nRead <skill> forms.\n";

/// A server of skills: what it lists, what it reads, and what it was asked to read.
#[derive(Clone)]
struct Server {
    listed: Value,
    files: Vec<(&'static str, String)>,
    reads: Arc<Mutex<Vec<String>>>,
}

fn digest(text: &str) -> String {
    let hex: String = sha2::Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

fn entry(folder: &str, frontmatter: impl Into<Value>, files: &[(&str, &str)]) -> Value {
    let files: Vec<_> = files
        .iter()
        .map(|(path, text)| json!({"uri": format!("{folder}/{path}"), "digest": digest(text), "size": text.len()}))
        .collect();
    json!({"uri": format!("{folder}/SKILL.md"), "frontmatter": frontmatter.into(), "resources": files})
}

fn pdf(folder: &str) -> Value {
    let frontmatter = json!({"name": "pdf", "description": "Reads PDF forms.", "version": 2});
    entry(folder, frontmatter, &[("SKILL.md", BODY), ("references/fields.md", "Fields."), ("a.bin", "a\0b")])
}

impl Server {
    fn new(listed: Value) -> Self {
        let files = vec![
            ("skill://docs/pdf/SKILL.md", BODY.to_owned()),
            ("skill://docs/pdf/references/fields.md", "Fields.".to_owned()),
            ("skill://docs/pdf/a.bin", "a\0b".to_owned()),
        ];
        Self { listed, files, reads: Arc::default() }
    }

    fn with_file(mut self, uri: &'static str, text: &str) -> Self {
        self.files.retain(|(known, _)| *known != uri);
        self.files.push((uri, text.to_owned()));
        self
    }

    fn answer(&self, method: &str, params: &Value) -> Option<Value> {
        match method {
            "initialize" => {
                Some(json!({"protocolVersion": "2025-11-25", "serverInfo": {"name": "s", "version": "1"},
                "capabilities": {"resources": {}, "extensions": {"io.modelcontextprotocol/skills": {}}}}))
            }
            "skills/list" => Some(json!({"skills": self.listed})),
            "resources/read" => {
                let uri = params["uri"].as_str().unwrap();
                self.reads.lock().unwrap().push(uri.to_owned());
                let (_, text) = self.files.iter().find(|(known, _)| *known == uri)?;
                Some(json!({"contents": [{"uri": uri, "text": text}]}))
            }
            _ => None,
        }
    }

    async fn serve(self, stream: tokio::io::DuplexStream) {
        let (reader, mut writer) = tokio::io::split(stream);
        let mut lines = tokio::io::BufReader::new(reader).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let message: Value = serde_json::from_str(&line).unwrap();
            let Some(id) = message.get("id") else { continue };
            let answer = match self.answer(message["method"].as_str().unwrap(), &message["params"]) {
                Some(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
                None => json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "unknown"}}),
            };
            writer.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
        }
    }

    async fn offer(&self, name: &str) -> ServedOffer {
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        tokio::spawn(self.clone().serve(theirs));
        let (reader, writer) = tokio::io::split(ours);
        let options = ClientOptions::new("test", "1").with_era(EraChoice::Legacy);
        let client = Client::connect(reader, writer, options).await.unwrap();
        let listed = client.list_skills().await.unwrap().items;
        ServedOffer::new(name, client, listed)
    }

    fn reads(&self) -> usize {
        self.reads.lock().unwrap().len()
    }
}

fn names(offer: &ServedOffer) -> Vec<&str> {
    offer.names().collect()
}

/// The tool over one local skill, `pdf`, and the served ones.
fn tool(served: ServedSkills) -> (tempfile::TempDir, SkillTool) {
    let user = tempfile::tempdir().unwrap();
    fs::create_dir(user.path().join("pdf")).unwrap();
    fs::write(user.path().join("pdf/SKILL.md"), "---\nname: pdf\ndescription: Local PDF.\n---\nMine.")
        .unwrap();
    let registry = Registry::scan(&Roots::new().with_root(Root::user(user.path())), &Limits::default());
    let reader = Reader::new(registry.snapshot(&Filter::new(Consent::not_needed())));
    (user, SkillTool::with_served(Arc::new(reader), Arc::new(served)).unwrap())
}

async fn call(tool: &SkillTool, arguments: Value) -> Result<String, String> {
    let output = tool.call(arguments, ToolContext::detached("1")).await.map_err(|error| error.to_string())?;
    Ok(output.blocks[0].as_text().unwrap().to_owned())
}

#[tokio::test]
async fn a_served_skill_is_listed_found_and_loaded_in_pages_and_nothing_is_read_before() {
    let server = Server::new(json!([pdf("skill://docs/pdf")]));
    let served = ServedSkills::new([server.offer("docs").await], Limits::default().with_page_chars(8, 4));
    let (section, omitted) = served.section(&CatalogueOptions::default());
    assert!(section.unwrap().ends_with("\n- docs:pdf: Reads PDF forms.") && omitted.is_empty());
    let (_user, tool) = tool(served);
    let found = call(&tool, json!({"search": "forms"})).await.unwrap();
    assert_eq!(found, "- docs:pdf: Reads PDF forms.");
    assert!(call(&tool, json!({"search": "nothing like it"})).await.unwrap().starts_with("No skill fits"));
    let files = call(&tool, json!({"name": "docs:pdf", "resource": "."})).await.unwrap();
    assert_eq!(files, "a.bin (3 bytes)\nreferences/fields.md (7 bytes)");
    assert_eq!(server.reads(), 0, "no prefetch");

    let body = call(&tool, json!({"name": "docs:pdf"})).await.unwrap();
    assert!(
        body.starts_with("<skill name=\"docs:pdf\" server=\"docs\" page=\"1\" pages=\"3\">\nRead "),
        "{body}"
    );
    assert!(body.contains("page 2") && body.contains("comes from the MCP server docs"), "{body}");
    let second = call(&tool, json!({"name": "docs:pdf", "page": 2})).await.unwrap();
    assert!(second.contains("\n&lt;skill>"), "no text can open a wrapper: {second}");
    let read = server.reads();
    assert!(call(&tool, json!({"name": "docs:pdf"})).await.unwrap().contains("in this conversation already"));
    assert_eq!(server.reads(), read, "a pointer reads nothing");
    let file = call(&tool, json!({"name": "docs:pdf", "resource": "references/fields.md", "page": 2})).await;
    assert!(
        file.unwrap()
            .contains("path=\"references/fields.md\" page=\"2\" pages=\"2\">\nds.\n</skill_resource>")
    );
}

#[tokio::test]
async fn a_local_skill_is_never_shadowed_and_names_are_the_servers_own() {
    let server = Server::new(json!([pdf("skill://docs/pdf")]));
    let served = ServedSkills::new([server.offer("a").await, server.offer("b").await], Limits::default());
    assert_eq!(served.names().collect::<Vec<_>>(), ["a:pdf", "b:pdf"]);
    let (_user, tool) = tool(served);
    assert!(call(&tool, json!({"name": "pdf"})).await.unwrap().contains("Mine."));
    assert!(call(&tool, json!({"name": "b:pdf"})).await.unwrap().contains("forms."));
    assert!(call(&tool, json!({"name": "c:pdf"})).await.is_err());

    let twice = Server::new(json!([pdf("skill://docs/pdf"), pdf("skill://other/pdf")])).offer("a").await;
    assert_eq!(names(&twice), ["a:docs/pdf", "a:other/pdf"]);
    let schemes = Server::new(json!([pdf("skill://x/pdf"), pdf("https://x/pdf")])).offer("a").await;
    assert_eq!((names(&schemes).len(), schemes.refused().len()), (1, 1), "nothing is lost without a word");
}

#[tokio::test]
async fn what_is_not_what_was_agreed_to_is_never_shown() {
    let uri = "skill://docs/pdf/SKILL.md";
    let other = BODY.replace("forms.\n", "secret");
    let same_length = BODY.replace("Read <", "Burn <");
    // What the server gives, what it lists in the front matter, and what the error has to say.
    let listed = json!({"name": "pdf", "description": "Reads PDF forms.", "version": 2});
    let with = |field: &str, value: Value| {
        let mut changed = listed.clone();
        changed[field] = value;
        changed
    };
    let cases = [
        (other.as_str(), listed.clone(), "bytes"),
        (&same_length, listed.clone(), "SHA-256"),
        (BODY, with("version", json!(3)), "`version`"),
        (BODY, with("version", json!("2")), "`version`"),
        (BODY, with("license", json!("MIT")), "`license`"),
        (BODY, json!({"name": "pdf", "description": "Reads PDF forms."}), "`version`"),
    ];
    for (given, frontmatter, word) in cases {
        let entry = entry("skill://docs/pdf", frontmatter, &[("SKILL.md", BODY)]);
        let server = Server::new(json!([entry])).with_file(uri, given);
        let served = ServedSkills::new([server.offer("docs").await], Limits::default());
        let error = served.load("docs:pdf", 1).await.unwrap_err().to_string();
        assert!(error.contains(word) && !error.contains("Burn"), "{error}, expected {word}");
    }
}

#[tokio::test]
async fn files_that_are_not_listed_no_text_or_too_large_are_refused() {
    let server = Server::new(json!([pdf("skill://docs/pdf")])).with_file("skill://docs/pdf/other.md", "x");
    let served = ServedSkills::new([server.offer("docs").await], Limits::default().with_resource_bytes(6));
    for (path, word) in [
        ("other.md", "lists no file"),
        ("../pdf/a.bin", "lists no file"),
        ("references/fields.md", "too large"),
        ("a.bin", "not a text"),
    ] {
        let error = served.resource("docs:pdf", path, 1).await.unwrap_err().to_string();
        assert!(error.contains(word), "{path}: {error}");
    }
    assert_eq!(server.reads(), 1, "only the one that looked like a text");
    assert!(served.load("docs:pdf", 9).await.unwrap_err().to_string().contains("page 9"));
}

#[tokio::test]
async fn consent_is_bound_to_the_digests_and_the_question_shows_what_is_offered() {
    let offer = Server::new(json!([pdf("skill://docs/pdf")])).offer("docs").await;
    let question = offer.question();
    assert!(
        question.contains("docs offers 1 skill") && question.contains("docs:pdf (3 files): Reads PDF"),
        "{question}"
    );
    let mut changed = pdf("skill://docs/pdf");
    changed["resources"][1]["digest"] = json!(digest("Other."));
    let changed = Server::new(json!([changed])).offer("docs").await;
    let renamed = Server::new(json!([pdf("skill://docs/pdf")])).offer("other").await;
    assert_ne!(offer.fingerprint(), changed.fingerprint());
    assert_ne!(offer.fingerprint(), renamed.fingerprint());
    assert_eq!(
        offer.fingerprint(),
        Server::new(json!([pdf("skill://docs/pdf")])).offer("docs").await.fingerprint()
    );
}

#[tokio::test]
async fn skills_that_nobody_can_agree_to_are_refused_with_a_reason() {
    let mut dynamic = pdf("skill://a/pdf");
    dynamic["resources"] = json!("dynamic");
    let frontmatter = json!({"name": "mine", "description": "x", "disable-model-invocation": true});
    let hidden = entry("skill://a/mine", frontmatter, &[("SKILL.md", "x")]);
    let offer = Server::new(json!([dynamic, hidden])).offer("s").await;
    assert!(offer.is_empty());
    let refused: Vec<_> = offer.refused().iter().map(|refused| refused.name.as_str()).collect();
    assert_eq!(refused, ["s:mine", "s:pdf"]);
}

#[tokio::test]
async fn without_a_served_skill_nothing_is_left_of_the_feature() {
    let none = ServedSkills::new([], Limits::default());
    assert_eq!(none.section(&CatalogueOptions::default()), (None, Vec::new()));
    let registry = Registry::scan(&Roots::new(), &Limits::default());
    let reader = Arc::new(Reader::new(registry.snapshot(&Filter::new(Consent::not_needed()))));
    assert!(SkillTool::with_served(Arc::clone(&reader), Arc::new(none)).is_none());

    let many: Vec<_> = (0..30)
        .map(|n| {
            entry(
                &format!("skill://s{n:02}"),
                json!({"name": format!("s{n:02}"), "description": "d".repeat(500)}),
                &[("SKILL.md", "x")],
            )
        })
        .collect();
    let many = ServedSkills::new([Server::new(json!(many)).offer("m").await], Limits::default());
    let (section, omitted) = many.section(&CatalogueOptions::default());
    let section = section.unwrap();
    assert_eq!((section.matches("\n- m:s").count(), omitted.len()), (12, 18));
    assert!(section.ends_with("… and 18 more: find them with the `search` of `skill`."), "{section}");
    assert!(section.lines().all(|line| line.chars().count() < 300));
}
