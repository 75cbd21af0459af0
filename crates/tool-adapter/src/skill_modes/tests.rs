use futures_util::FutureExt as _;
use haversack_agent_core::clock::TokioClock;
use haversack_agent_core::testing::ScriptedModel;
use haversack_agent_core::tool_fn::tool_fn;
use serde_json::{Value, json};

use super::*;

fn upper() -> Arc<dyn Tool> {
    Arc::new(tool_fn(ToolSpec::new("upper", "").read_only(), async |args: Value, _| {
        Ok(args["text"].as_str().unwrap_or_default().to_uppercase())
    }))
}

fn skill(name: &str, fields: &str) -> ModeSkill {
    let text = format!("---\nname: {name}\ndescription: Does {name}.\n{fields}---\nThe body.\n");
    ModeSkill::new(name, format!("Does {name}."), text)
}

const PIPELINE: &str = "tool_schema:\n  steps:\n  - tool: upper\n    input_map: {text: '{{ input.word }}'}\n";
const AGENT: &str = "skill_mode: agent\nagent_config: {role_title: Reviewer}\n";

fn modes() -> SkillModes {
    let agents = AgentSkills::new(ScriptedModel::new([]), TokioClock::new());
    SkillModes::new(Runner::new).with_agents(agents)
}

fn names(made: &MadeTools) -> Vec<String> {
    made.tools.iter().map(|tool| tool.spec().name.to_string()).collect()
}

#[test]
fn each_skill_becomes_what_its_mode_says() {
    let skills = [skill("text", ""), skill("rev", AGENT), skill("shout", PIPELINE)];
    let made = modes().make(skills, &[upper()]);
    assert_eq!(names(&made), ["skill_shout", "rev"], "pipelines first");
    let kinds: Vec<Made> = made.skills.iter().map(|(_, made)| made.clone()).collect();
    assert_eq!(kinds, [Made::Prompt, Made::Agent("rev".into()), Made::Pipeline("skill_shout".into())]);
    let call = made.tools[0].call(json!({"word": "yo"}), ToolContext::detached("1"));
    assert_eq!(call.now_or_never().unwrap().unwrap().structured.unwrap()["output"], "YO");
}

#[test]
fn what_cannot_run_is_no_tool_and_says_why() {
    for (skill, why) in [
        (skill("a", "skill_mode: agent\n"), "missing_agent_config"),
        (skill("a", "skill_mode: robot\n"), "invalid_skill_mode"),
        (skill("a", &PIPELINE.replace("upper", "lower")), "`lower` is not known"),
        (skill("a", &format!("{PIPELINE}summary: ghp_{}\n", "a1".repeat(12))), "literal_secret_rejected"),
        (skill("a", &format!("{PIPELINE}secret_refs: [x]\n")), "missing_secret_profile"),
        (skill("upper", AGENT), "as another one is"),
    ] {
        let made = modes().with_profiles(|_| false).make([skill], &[upper()]);
        assert!(made.tools.is_empty());
        let Made::Unusable(reasons) = &made.skills[0].1 else { panic!("{:?}", made.skills) };
        assert!(reasons.iter().any(|reason| reason.contains(why)), "{why}: {reasons:?}");
    }
    let without_agents = SkillModes::new(Runner::new).make([skill("rev", AGENT)], &[]);
    assert!(matches!(&without_agents.skills[0].1, Made::Unusable(why) if why[0].contains("no agents")));
}
