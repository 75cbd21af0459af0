//! Files of skills as resources, and the skills extension.

use haversack_skill_server::Host;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::wire::{Wire, folder, serve};

const FORMS: &str =
    "---\nname: forms\ndescription: Fills in forms.\nmetadata:\n  version: \"1.0\"\n  n: 5\n---\n\n# Forms\n";

fn skills() -> tempfile::TempDir {
    let skills = folder(&[("forms", FORMS), ("x", "---\nname: Not_Listed\ndescription: X.\n---\nX.\n")]);
    let forms = skills.path().join("forms");
    std::fs::create_dir_all(forms.join("references/deep")).unwrap();
    std::fs::write(forms.join("references/a b.md"), "A.\n").unwrap();
    std::fs::write(forms.join("references/deep/d.bin"), [0_u8, 255]).unwrap();
    std::fs::write(forms.join(".env"), "KEY=secret").unwrap();
    std::fs::write(skills.path().join("outside"), "secret").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("../outside", forms.join("link.md")).unwrap();
    skills
}

fn digest(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

#[tokio::test]
async fn an_entry_names_every_file_with_its_size_and_digest_and_says_what_the_front_matter_says() {
    let skills = skills();
    let server = serve(skills.path(), Host::new());
    for mut wire in [Wire::legacy(&server, json!({})).await, Wire::modern(&server, &json!({}))] {
        let listed = wire.request("skills/list", json!({})).await["result"]["skills"].clone();
        let want = json!([{
            "uri": "skill://forms/SKILL.md",
            "frontmatter": {"name": "forms", "description": "Fills in forms.", "metadata": {"version": "1.0", "n": 5}},
            "resources": [
                {"uri": "skill://forms/SKILL.md", "digest": digest(FORMS.as_bytes()), "size": FORMS.len()},
                {"uri": "skill://forms/references/a%20b.md", "digest": digest(b"A.\n"), "size": 3},
                {"uri": "skill://forms/references/deep/d.bin", "digest": digest(&[0, 255]), "size": 2},
            ],
        }]);
        assert_eq!(listed, want);
        let one = wire.request("skills/get", json!({"uri": "skill://forms/SKILL.md"})).await;
        assert_eq!(one["result"]["skill"], want[0]);
        for file in want[0]["resources"].as_array().unwrap() {
            let read = wire.request("resources/read", json!({"uri": file["uri"]})).await;
            let contents = &read["result"]["contents"][0];
            let bytes = match contents["text"].as_str() {
                Some(text) => text.as_bytes().to_vec(),
                None => {
                    use base64::Engine as _;
                    base64::prelude::BASE64_STANDARD.decode(contents["blob"].as_str().unwrap()).unwrap()
                }
            };
            assert_eq!(file["digest"], digest(&bytes), "{file}");
        }
    }
}

#[tokio::test]
async fn a_changed_file_has_a_new_digest_in_the_next_answer() {
    let skills = skills();
    let server = serve(skills.path(), Host::new());
    let mut wire = Wire::legacy(&server, json!({})).await;
    let get = json!({"uri": "skill://forms/SKILL.md"});
    let before = wire.request("skills/get", get.clone()).await["result"]["skill"]["resources"][1].clone();
    std::fs::write(skills.path().join("forms/references/a b.md"), "B.\n").unwrap();
    let after = wire.request("skills/get", get).await["result"]["skill"]["resources"][1].clone();
    assert_eq!((&before["uri"], &before["size"]), (&after["uri"], &after["size"]));
    assert_eq!(after["digest"], digest(b"B.\n"));
    assert_ne!(before["digest"], after["digest"]);
}

#[tokio::test]
async fn a_folder_lists_what_lies_directly_in_it() {
    let skills = skills();
    let server = serve(skills.path(), Host::new());
    let mut wire = Wire::modern(&server, &json!({}));
    let mut read = async |uri: &str| wire.request("resources/directory/read", json!({"uri": uri})).await;
    let top = read("skill://forms").await["result"]["resources"].clone();
    let shown: Vec<(&Value, &Value)> =
        top.as_array().unwrap().iter().map(|r| (&r["uri"], &r["mimeType"])).collect();
    assert_eq!(
        shown,
        [
            (&json!("skill://forms/SKILL.md"), &json!("text/markdown")),
            (&json!("skill://forms/references"), &json!("inode/directory")),
        ]
    );
    let below = read("skill://forms/references").await["result"]["resources"].clone();
    assert_eq!(below.as_array().unwrap().len(), 2);
    for uri in [
        "skill://forms/SKILL.md",
        "skill://forms/gone",
        "skill://gone",
        "skill://forms/",
        "skill://forms/..",
        "skill://",
        "file:///",
    ] {
        assert_eq!(read(uri).await["error"]["code"], -32602, "{uri}");
    }
}

#[tokio::test]
async fn no_address_leads_to_a_file_that_is_not_the_skills() {
    let skills = skills();
    let server = serve(skills.path(), Host::new());
    let mut modern = Wire::modern(&server, &json!({}));
    let mut legacy = Wire::legacy(&server, json!({})).await;
    for uri in [
        "skill://forms/../outside",
        "skill://forms/%2e%2e/outside",
        "skill://forms/..%2foutside",
        "skill://forms/references/../../outside",
        "skill://forms//etc/passwd",
        "skill://forms/link.md",
        "skill://forms/.env",
        "skill://forms/references",
        "skill://forms",
        "skill://gone/SKILL.md",
        "file:///etc/passwd",
        "",
    ] {
        let refused = modern.request("resources/read", json!({"uri": uri})).await;
        assert_eq!(refused["error"]["code"], -32602, "{uri}: {refused}");
        assert_eq!(refused["error"]["data"]["uri"], uri);
        let refused = legacy.request("resources/read", json!({"uri": uri})).await;
        assert_eq!(refused["error"]["code"], -32002, "{uri}: {refused}");
        assert!(legacy.request("skills/get", json!({"uri": uri})).await.get("error").is_some(), "{uri}");
    }
    // A skill whose name the extension does not take is still read as a resource.
    let read = legacy.request("resources/read", json!({"uri": "skill://Not_Listed/SKILL.md"})).await;
    assert!(read["result"]["contents"][0]["text"].as_str().unwrap().ends_with("X.\n"), "{read}");
}
