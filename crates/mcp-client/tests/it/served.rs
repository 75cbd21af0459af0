//! Skills that a server offers: only bytes that are what was listed are given out, and nothing is read ahead of need.

use std::sync::{Arc, Mutex};

use haversack_mcp_client::fingerprint::Fingerprint;
use haversack_mcp_client::protocol::{EraChoice, ServedSkill};
use haversack_mcp_client::{Client, ClientOptions, Error};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, DuplexStream};

const SKILL: &str = "skill://docs/pdf/SKILL.md";
const TEXT: &str = "---\nname: pdf\ndescription: Reads.\n---\nBody.\n";
const FORMS: &str = "skill://docs/pdf/forms.bin";

fn digest(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    let hex: String = sha2::Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

fn entry() -> Value {
    json!({
        "uri": SKILL,
        "frontmatter": {"name": "pdf", "description": "Reads."},
        "resources": [
            {"uri": SKILL, "digest": digest(TEXT.as_bytes()), "size": TEXT.len()},
            {"uri": FORMS, "digest": digest(b"\x00\x01\x02"), "size": 3},
        ],
    })
}

/// What the server was asked, and what it answers to reads.
#[derive(Clone, Default)]
struct Server {
    methods: Arc<Mutex<Vec<String>>>,
    text: Option<&'static str>,
    silent: bool,
}

impl Server {
    fn answer(&self, method: &str, params: &Value) -> Option<Value> {
        let extensions = if self.silent { json!({}) } else { json!({"io.modelcontextprotocol/skills": {}}) };
        Some(match method {
            "initialize" => {
                json!({"protocolVersion": "2025-11-25", "serverInfo": {"name": "s", "version": "1"},
                "capabilities": {"resources": {}, "extensions": extensions}})
            }
            "skills/list" if params["cursor"] == "2" => json!({"skills": [entry(), {"uri": "skill://x"}]}),
            "skills/list" => {
                let mut first = entry();
                first["uri"] = json!("skill://pdf/SKILL.md");
                first["resources"] = json!("dynamic");
                json!({"skills": [first], "nextCursor": "2"})
            }
            "skills/get" => json!({"skill": entry()}),
            "resources/read" if params["uri"] == FORMS => {
                json!({"contents": [{"uri": FORMS, "mimeType": "application/octet-stream", "blob": "AAEC"}]})
            }
            "resources/read" => {
                json!({"contents": [{"uri": SKILL, "text": self.text.unwrap_or(TEXT)}]})
            }
            _ => return None,
        })
    }

    async fn serve(self, stream: DuplexStream) {
        let (reader, mut writer) = tokio::io::split(stream);
        let mut lines = tokio::io::BufReader::new(reader).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let message: Value = serde_json::from_str(&line).unwrap();
            let Some(id) = message.get("id") else { continue };
            let method = message["method"].as_str().unwrap();
            self.methods.lock().unwrap().push(method.to_owned());
            let answer = match self.answer(method, &message["params"]) {
                Some(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
                None => json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown"}}),
            };
            writer.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
        }
    }

    async fn client(&self) -> Client {
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        tokio::spawn(self.clone().serve(theirs));
        let (reader, writer) = tokio::io::split(ours);
        let options = ClientOptions::new("test", "1").with_era(EraChoice::Legacy);
        Client::connect(reader, writer, options).await.unwrap()
    }

    fn reads(&self) -> usize {
        self.methods.lock().unwrap().iter().filter(|method| *method == "resources/read").count()
    }
}

#[tokio::test]
async fn listing_reads_no_file_and_a_bad_entry_costs_only_itself() {
    let server = Server::default();
    let client = server.client().await;
    let listing = client.list_skills().await.unwrap();
    let names: Vec<_> = listing.items.iter().map(ServedSkill::folder).collect();
    assert_eq!(names, ["skill://pdf", "skill://docs/pdf"]);
    assert_eq!(listing.problems.len(), 1, "{:?}", listing.problems);
    assert_eq!(server.reads(), 0);
    client.close().await;
}

#[tokio::test]
async fn a_server_without_the_extension_is_not_asked() {
    let server = Server { silent: true, ..Server::default() };
    let client = server.client().await;
    assert!(!client.serves_skills());
    assert!(client.list_skills().await.unwrap().items.is_empty());
    assert!(!server.methods.lock().unwrap().iter().any(|method| method.starts_with("skills/")));
    client.close().await;
}

#[tokio::test]
async fn files_are_given_out_only_as_they_are_listed() {
    let server = Server::default();
    let client = server.client().await;
    let skill = client.get_skill(SKILL).await.unwrap();
    assert_eq!(client.read_skill_file(&skill, SKILL).await.unwrap(), TEXT.as_bytes());
    assert_eq!(client.read_skill_file(&skill, FORMS).await.unwrap(), [0, 1, 2]);

    let reads = server.reads();
    let unlisted = client.read_skill_file(&skill, "skill://docs/pdf/other.md").await.unwrap_err();
    assert!(matches!(unlisted, Error::NotSent { .. }), "{unlisted}");
    assert_eq!(server.reads(), reads, "an unlisted file is not asked for");
    client.close().await;

    for (text, word) in [("---\nname: pdf\ndescription: Reads.\n---\nEvil.\n", "SHA-256"), ("short", "bytes")]
    {
        let server = Server { text: Some(text), ..Server::default() };
        let client = server.client().await;
        let error = client.read_skill_file(&skill, SKILL).await.unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
        client.close().await;
    }
}

#[tokio::test]
async fn another_skill_than_the_asked_one_is_refused() {
    let client = Server::default().client().await;
    let error = client.get_skill("skill://other/SKILL.md").await.unwrap_err();
    assert!(error.to_string().contains("another skill"), "{error}");
    client.close().await;
}

#[tokio::test]
async fn the_fingerprint_of_served_skills_changes_with_server_address_and_digest_only() {
    let client = Server::default().client().await;
    let skill = client.get_skill(SKILL).await.unwrap();
    let listing = client.list_skills().await.unwrap();
    client.close().await;
    let of = |server: &str, skill: &ServedSkill| Fingerprint::of_served(server, [skill]);
    let mut other_words = skill.clone();
    other_words.frontmatter.insert("description".to_owned(), json!("changed"));
    assert_eq!(of("a", &skill), of("a", &other_words), "the digest of SKILL.md covers the front matter");
    assert_ne!(of("a", &skill), of("b", &skill));
    let (first, second) = (&listing.items[0], &listing.items[1]);
    assert_ne!(of("a", first), of("a", second));
    assert_eq!(Fingerprint::of_served("a", [first, second]), Fingerprint::of_served("a", [second, first]));
}
