//! Writing skills: what is saved, what is refused and why, and that nothing leads out of the folder.
#![expect(clippy::needless_pass_by_value, reason = "arguments read best where they are made")]

use std::fs;
use std::path::Path;

use haversack_skill_runtime::authoring::{SkillAuthor, TemplateKind};
use haversack_skill_runtime::reply::Reply;
use haversack_skills::document::{Document, ParseOptions};
use serde_json::{Value, json};
use tempfile::TempDir;

fn text(tree_id: &str, more: &str) -> String {
    format!("---\nname: x\ndescription: Does x.\ntree_id: {tree_id}\n{more}---\nThe body.\n")
}

struct House {
    folder: TempDir,
    author: SkillAuthor,
}

impl House {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("skills")).unwrap();
        let author = SkillAuthor::new(folder.path().join("skills")).unwrap();
        Self { folder, author }
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn generate(&self, dir: &str, text: &str) -> Reply {
        self.author.generate(&json!({"skillMdContent": text, "skillDir": dir}))
    }

    fn manage(&self, arguments: Value) -> Value {
        let reply = self.author.manage(&arguments);
        assert_eq!(reply.value["ok"], reply.ok, "the protocol's word is that of the reply");
        reply.value
    }
}

#[test]
fn the_templates_and_examples_can_be_read_and_run() {
    let house = House::new();
    for kind in TemplateKind::ALL {
        let parsed = house.author.parse(&json!({"skillMdContent": kind.body(), "validate": true}));
        assert!(parsed.ok, "{}: {}", kind.name(), parsed.text());
        assert_eq!(parsed.value["validateErrors"], json!([]), "{}: {}", kind.name(), parsed.text());
        assert_eq!(parsed.value["validateError"], Value::Null);
        let document = Document::parse(kind.body().as_bytes(), &ParseOptions::new());
        assert!(document.fields().is_some() && document.body().contains('<'), "{}", kind.name());
    }
    let mode = |kind: TemplateKind| {
        house.author.parse(&json!({"skillMdContent": kind.body()})).value["metadata"]["mode"].clone()
    };
    assert_eq!(mode(TemplateKind::Tool), "tool");
    assert_eq!(mode(TemplateKind::Agent), "agent");
    assert_eq!(mode(TemplateKind::Internal), "prompt");
    for name in ["greet", "shout", "proof-reader"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../examples/skill_modes")
            .join(name)
            .join("SKILL.md");
        let parsed = house
            .author
            .parse(&json!({"skillMdContent": fs::read_to_string(file).unwrap(), "validate": true}));
        assert!(parsed.ok && parsed.value["validateErrors"] == json!([]), "{name}: {}", parsed.text());
    }
}

#[test]
fn a_parse_says_everything_that_is_read_and_where_it_fails() {
    let house = House::new();
    let parse = |text: &str| house.author.parse(&json!({"skill_md_content": text, "validate": true}));
    let parsed = parse(&text("a/b", "agent_config: {role_title: R, max_bash_calls: 0}\nskill_mode: agent\n"));
    assert!(parsed.ok);
    assert_eq!(parsed.value["metadata"]["treeId"], "a/b");
    assert_eq!(parsed.value["metadata"]["agentConfig"]["maxBashCalls"], 0, "a zero is not nothing");
    assert_eq!(parsed.value["frontmatter"]["agent_config"]["role_title"], "R");
    let faulty = parse(&text("a/b", "skill_mode: agent\nagent_config: {runtime_kind: robot}\n"));
    let codes: Vec<&Value> =
        faulty.value["validateErrors"].as_array().unwrap().iter().map(|e| &e["code"]).collect();
    assert_eq!(codes, ["missing_role_title", "invalid_runtime_kind"], "all of them");
    assert_eq!(faulty.value["validateError"]["field"], "agent_config.role_title");
    assert_eq!(faulty.value["validateError"]["resolvedMode"], "agent");
    for broken in ["no front matter", "---\nname: a\n", "---\nkey: : v:\n---\n", "---\n- a\n---\n", ""] {
        let parsed = parse(broken);
        assert!(!parsed.ok, "{broken}");
        if !broken.is_empty() {
            assert!(
                parsed.value["parseErrors"][0].as_str().unwrap().starts_with("line "),
                "{}",
                parsed.text()
            );
        }
    }
}

#[test]
fn a_new_skill_is_saved_once_nothing_is_wrong_with_it() {
    let house = House::new();
    let saved = house.generate("tools/x", &text("tools/x", ""));
    assert!(saved.ok, "{}", saved.text());
    let file = house.path("skills/tools/x/SKILL.md");
    assert_eq!(fs::read_to_string(&file).unwrap(), text("tools/x", ""));
    assert_eq!(saved.value["filePath"], file.canonicalize().unwrap().display().to_string());
    assert_eq!(saved.value["metadata"]["treeId"], "tools/x");
    let again = json!({"skillMdContent": text("tools/x", "summary: s\n"), "skillDir": "tools/x", "noOverwrite": true});
    let refused = house.author.generate(&again);
    assert!(
        !refused.ok && refused.value["filePath"].as_str().unwrap().ends_with("SKILL.md"),
        "{}",
        refused.text()
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), text("tools/x", ""), "what is there stays");
    assert!(house.generate("tools/x", &text("tools/x", "summary: s\n")).ok);
    assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
    assert!(
        house.generate(house.path("skills").to_str().unwrap(), &text("r", "")).ok,
        "the root itself is a folder, too"
    );

    let token = format!("summary: ghp_{}\n", "a1".repeat(12));
    for (dir, content, why) in [
        ("a", String::new(), "skillMdContent"),
        ("", text("a", ""), "skillDir"),
        ("a", "no front matter".to_owned(), "line 1"),
        ("a", text("a", "skill_mode: robot\n"), "invalid_skill_mode"),
        ("a", text("a", &token), "literal_secret_rejected"),
        ("a", text("a", "secret_refs: [api]\n"), "missing_secret_profile"),
    ] {
        let reply = house.generate(dir, &content);
        assert!(!reply.ok && reply.value["saved"] == json!(false), "{why}");
        assert!(reply.text().contains(why), "{why}: {}", reply.text());
    }
    assert!(!house.path("skills/a").exists(), "nothing was written");
    let lenient = house.author.clone().without_secret_scan().with_profiles(|name| name == "api");
    let content = text("a", &format!("{token}secret_refs: [api]\n"));
    assert!(lenient.generate(&json!({"skillMdContent": content, "skillDir": "a"})).ok, "a host may say so");
    let template = house
        .author
        .generate(&json!({"skillMdContent": text("b", ""), "skillDir": "b", "baseTemplate": "x"}));
    assert!(!template.ok && template.text().contains("baseTemplate"));
}

#[test]
fn nothing_is_written_or_read_outside_of_the_folder() {
    let house = House::new();
    house.write("skills-sibling/keep", "");
    house.write("outside/x/SKILL.md", &text("x", ""));
    let outside = house.path("outside");
    for dir in [
        "../outside/new",
        "a/../../outside/new",
        house.path("skills-sibling").to_str().unwrap(),
        outside.to_str().unwrap(),
    ] {
        let reply = house.generate(dir, &text("new", ""));
        assert!(!reply.ok && reply.text().contains("leads out"), "{dir}: {}", reply.text());
    }
    assert!(house.generate("..x", &text("..x", "")).ok, "a name that only begins with two dots");
    for id in ["../outside/x", outside.join("x").to_str().unwrap()] {
        for action in ["get", "delete", "export"] {
            assert_eq!(house.manage(json!({"action": action, "treeId": id}))["ok"], false, "{action} {id}");
        }
        let update = json!({"action": "update", "treeId": id, "skillMdContent": text(id, "")});
        assert_eq!(house.manage(update)["ok"], false, "{id}");
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&outside, house.path("skills/link")).unwrap();
        std::os::unix::fs::symlink(outside.join("x/SKILL.md"), house.path("skills/SKILL.md")).unwrap();
        assert!(!house.generate("link/new", &text("new", "")).ok);
        for action in ["get", "delete"] {
            assert_eq!(house.manage(json!({"action": action, "treeId": "link/x"}))["ok"], false, "{action}");
        }
        assert_eq!(
            house.manage(json!({"action": "list"}))["entries"].as_array().unwrap().len(),
            1,
            "links are not followed"
        );
        assert!(!house.generate(".", &text("x", "")).ok, "the file itself is a link");
    }
    assert_eq!(fs::read_to_string(outside.join("x/SKILL.md")).unwrap(), text("x", ""));
    assert!(!outside.join("new").exists());
}

#[test]
fn a_workspace_bounds_every_action() {
    let house = House::new();
    fs::create_dir(house.path("skills/inner")).unwrap();
    house.write("skills/other/SKILL.md", &text("other", ""));
    let author = house.author.clone().with_workspace(house.path("skills/inner")).unwrap();
    assert!(author.generate(&json!({"skillMdContent": text("a", ""), "skillDir": "inner/a"})).ok);
    assert!(!author.generate(&json!({"skillMdContent": text("a", ""), "skillDir": "a"})).ok);
    for action in ["get", "delete", "export"] {
        assert!(!author.manage(&json!({"action": action, "treeId": "other"})).ok, "{action}");
    }
    let wide = house.author.clone().with_workspace(house.folder.path()).unwrap();
    let beside = house.path("beside");
    assert!(
        wide.generate(&json!({"skillMdContent": text("b", ""), "skillDir": beside.to_str().unwrap()})).ok
    );
}

#[test]
fn skills_are_managed_by_their_ids() {
    let house = House::new();
    house.write("skills/a/SKILL.md", &text("a", "tree_group: g1\n"));
    house.write(
        "skills/moved/SKILL.md",
        &text("tools/b", "tree_group: g2\nskill_mode: agent\nagent_config: {role_title: R}\n"),
    );
    house.write("skills/broken/SKILL.md", "---\nkey: : v:\n---\n");
    house.write("skills/none/SKILL.md", "---\nname: none\ndescription: d\n---\n");
    house.write("skills/.git/x/SKILL.md", &text("git", ""));

    let listed = house.manage(json!({"action": "list"}));
    let ids: Vec<&Value> = listed["entries"].as_array().unwrap().iter().map(|e| &e["treeId"]).collect();
    assert_eq!(ids, ["a", "tools/b"]);
    assert_eq!(listed["entries"][1]["skillMode"], "agent");
    let problems = listed["problems"].to_string();
    assert!(problems.contains("broken") && problems.contains("another path than its folder"), "{problems}");
    let some = house.manage(json!({"action": "list", "treeGroupFilter": "g2"}));
    assert_eq!(some["entries"].as_array().unwrap().len(), 1);

    let got = house.manage(json!({"action": "get", "tree_id": "tools/b"}));
    assert!(
        got["skillMdContent"].as_str().unwrap().contains("role_title"),
        "found by its id, not by its folder"
    );
    assert_eq!(house.manage(json!({"action": "get", "treeId": "moved"}))["ok"], false);
    let broken = house.manage(json!({"action": "get", "treeId": "broken"}));
    assert!(
        broken["ok"] == json!(true) && broken["parseErrors"][0].is_string(),
        "it can be mended: {broken}"
    );

    for (id, content, why) in [
        ("a", text("b", ""), "have to be the same"),
        ("a", "---\nname: a\ndescription: d\n---\n".to_owned(), "no `tree_id`"),
        ("a", "none".to_owned(), "cannot be read"),
        ("a", text("a", "skill_mode: agent\n"), "could not run"),
        ("a", text("a", &format!("summary: ghp_{}\n", "a1".repeat(12))), "could not run"),
    ] {
        let reply = house.manage(json!({"action": "update", "treeId": id, "skillMdContent": content}));
        assert!(reply["error"].as_str().unwrap().contains(why), "{why}: {reply}");
    }
    assert_eq!(
        house.manage(json!({"action": "update", "treeId": "a", "skillMdContent": text("a", "summary: n\n")}))
            ["ok"],
        true
    );
    let made =
        house.manage(json!({"action": "update", "treeId": "new/c", "skillMdContent": text("new/c", "")}));
    assert!(made["ok"] == json!(true) && house.path("skills/new/c/SKILL.md").is_file());
    let mended = json!({"action": "update", "treeId": "broken", "skillMdContent": text("broken", "")});
    assert_eq!(house.manage(mended)["ok"], true);
}

#[test]
fn a_skill_is_removed_with_its_folder_if_nothing_else_is_in_it() {
    let house = House::new();
    house.write("skills/a/SKILL.md", &text("a", ""));
    house.write("skills/moved/SKILL.md", &text("tools/b", ""));
    assert_eq!(house.manage(json!({"action": "delete", "treeId": "tools/b"}))["ok"], true);
    assert!(!house.path("skills/moved").exists(), "its folder was empty");
    house.write("skills/a/notes.md", "kept");
    assert_eq!(house.manage(json!({"action": "delete", "treeId": "a"}))["ok"], true);
    assert!(house.path("skills/a/notes.md").is_file());
    assert_eq!(house.manage(json!({"action": "delete", "treeId": "a"}))["ok"], false);
    for wrong in [
        json!({"action": "burn"}),
        json!({}),
        json!([]),
        json!({"action": "get"}),
        json!({"action": "get", "treeId": 5}),
    ] {
        assert!(house.manage(wrong)["error"].is_string());
    }
    house.write("skills/d1/SKILL.md", &text("twice", ""));
    house.write("skills/d2/SKILL.md", &text("twice", ""));
    let twice = house.manage(json!({"action": "delete", "treeId": "twice"}));
    assert!(twice["error"].as_str().unwrap().contains("several"), "{twice}");
}

#[test]
fn a_suggestion_comes_with_its_template_also_from_a_folder_of_the_hosts() {
    let house = House::new();
    let asked = json!({"userRequest": "deploy runbook", "preferredCapabilities": ["bash"]});
    let found = house.author.suggest(&asked);
    assert!(found.ok);
    assert_eq!(found.value["recommendedTemplate"], "operations");
    assert!(found.value["templateBody"].as_str().unwrap().contains("## Steps"));
    for wrong in [
        json!({}),
        json!({"userRequest": " "}),
        json!({"userRequest": "a", "preferredCapabilities": "b"}),
        json!(1),
    ] {
        let reply = house.author.suggest(&wrong);
        assert!(!reply.ok && reply.value["error"].is_string(), "{wrong}");
    }
    house.write("templates/operations.md", "our own");
    let own = house.author.clone().with_templates(house.path("templates"));
    assert_eq!(own.suggest(&asked).value["templateBody"], "our own");
    assert!(!own.suggest(&json!({"userRequest": "agent"})).ok, "a template that is not there");
}
