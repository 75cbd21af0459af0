use std::fs;

use haversack_agent_core::tool_context::ToolContext;
use haversack_skills::consent::Consent;
use haversack_skills::{Filter, Limits, Registry, Root, Roots};
use serde_json::json;

use super::*;

fn tool(skills: &[(&str, &str)]) -> (tempfile::TempDir, Option<SkillTool>) {
    let user = tempfile::tempdir().unwrap();
    for (name, body) in skills {
        let folder = user.path().join(name);
        fs::create_dir_all(folder.join("references")).unwrap();
        fs::write(
            folder.join("SKILL.md"),
            format!("---\nname: {name}\ndescription: Does {name}.\n---\n{body}"),
        )
        .unwrap();
        fs::write(folder.join("references/more.md"), "more of it").unwrap();
    }
    let registry = Registry::scan(&Roots::new().with_root(Root::user(user.path())), &Limits::default());
    let reader = Reader::new(registry.snapshot(&Filter::new(Consent::not_needed())));
    (user, SkillTool::for_reader(Arc::new(reader)))
}

fn call(tool: &SkillTool, arguments: Value) -> Result<String, ToolError> {
    let answer = futures_util::FutureExt::now_or_never(tool.call(arguments, ToolContext::detached("1")));
    answer.expect("reading is done at once").map(|output| output.blocks[0].as_text().unwrap().to_owned())
}

#[test]
fn without_a_usable_skill_there_is_no_tool() {
    assert!(tool(&[]).1.is_none());
    assert!(tool(&[("forms", "Fill.")]).1.is_some_and(|t| t.spec().effects.is_trusted_read_only()));
}

#[test]
fn the_three_levels_and_the_search_are_one_tool() {
    let (_user, tool) = tool(&[("forms", "Fill in."), ("style", "House style.")]);
    let tool = tool.unwrap();
    for (arguments, part) in [
        (json!({"name": "forms"}), "<skill name=\"forms\">\nFill in."),
        (json!({"name": " forms "}), "already"),
        (json!({"name": "forms", "resource": "references/more.md"}), "more of it"),
        (json!({"name": "forms", "resource": "."}), "references/more.md"),
        (json!({"search": "house style"}), "style"),
        (json!({"name": "style", "search": "ignored beside a name"}), "House style."),
    ] {
        let text = call(&tool, arguments.clone()).unwrap();
        assert!(text.contains(part), "{arguments}: {text}");
    }
}

#[test]
fn wrong_calls_are_errors_that_say_what_to_do() {
    let (_user, tool) = tool(&[("forms", "Fill in.")]);
    let tool = tool.unwrap();
    for (arguments, part) in [
        (json!({}), "search"),
        (json!({"name": "nothing"}), "forms"),
        (json!({"name": "forms", "page": 0}), "from 1"),
        (json!({"name": "forms", "page": 9}), "pages"),
        (json!({"name": "forms", "page": -1}), "from 1"),
        (json!({"name": "forms", "resource": "../forms/SKILL.md"}), "../forms/SKILL.md"),
        (json!({"name": "forms", "resource": "missing.md"}), "missing.md"),
    ] {
        let error = call(&tool, arguments.clone()).unwrap_err();
        assert!(error.message.contains(part), "{arguments}: {error}");
    }
}
