use std::fs;
use std::sync::Arc;

use haversack_skills::consent::{
    Consent, ConsentError, ConsentStore, Decision, JsonStore, MemoryStore, Question,
};
use haversack_skills::{CatalogueOptions, Filter, Registry};

use crate::tree::{Tree, names, skill};

fn shown(registry: &Registry, consent: Consent) -> Vec<String> {
    registry.snapshot(&Filter::new(consent)).skills().map(|skill| skill.name().to_owned()).collect()
}

fn project() -> Tree {
    let tree = Tree::new();
    tree.skill("project/.agents/skills/ours", "ours").skill("user/mine", "mine");
    tree
}

fn question(tree: &Tree) -> Option<Question> {
    tree.scan("project").question(&tree.at("project"))
}

#[test]
fn without_an_answer_or_with_a_no_only_trusted_skills_are_there() {
    let tree = project();
    let mut registry = tree.scan("project");
    assert_eq!(names(&registry), ["mine", "ours"]);
    let question = registry.question(&tree.at("project")).unwrap();
    for (consent, want) in [
        (Consent::withheld(), &["mine"][..]),
        (Consent::not_needed(), &["mine"]),
        (question.decide(Decision::Refused), &["mine"]),
        (question.decide(Decision::Allowed), &["mine", "ours"]),
        (Consent::everything(), &["mine", "ours"]),
    ] {
        assert_eq!(shown(&registry, consent.clone()), want, "{consent:?}");
    }
    let held = registry.snapshot(&Filter::new(Consent::withheld()));
    assert_eq!(held.withheld()[0].name, "ours");
    assert!(!held.catalogue(&CatalogueOptions::default(), &[]).text.contains("ours"));
}

#[test]
fn nobody_is_asked_about_trusted_or_invalid_skills() {
    let tree = Tree::new();
    tree.skill("user/mine", "mine").write("project/.agents/skills/bad/SKILL.md", "no front matter");
    assert!(question(&tree).is_none());
}

#[test]
fn a_yes_is_asked_for_once_and_again_when_the_skills_change() {
    let tree = project();
    let store = MemoryStore::new();
    let asks = |tree: &Tree| question(tree).unwrap().look_up(&store).unwrap().is_none();
    assert!(asks(&tree));
    question(&tree).unwrap().record(&store, Decision::Allowed).unwrap();
    assert!(!asks(&tree));
    // The user's own skills are none of the question's business.
    tree.skill("user/other", "other");
    assert!(!asks(&tree));
    let again = |change: &dyn Fn(&Tree), what: &str| {
        let tree = project();
        question(&tree).unwrap().record(&store, Decision::Allowed).unwrap();
        assert!(!asks(&tree), "{what}");
        change(&tree);
        assert!(asks(&tree), "{what}");
    };
    again(
        &|tree| {
            tree.write("project/.agents/skills/ours/SKILL.md", skill("ours", "Does ours!"));
        },
        "text",
    );
    again(
        &|tree| {
            tree.write("project/.agents/skills/ours/run.sh", "rm -rf");
        },
        "a new file",
    );
    again(
        &|tree| {
            tree.skill("project/.agents/skills/new", "new");
        },
        "a new skill",
    );
    again(
        &|tree| {
            tree.skill("project/.gbs/skills/ours", "ours");
        },
        "another root",
    );
    again(
        &|tree| {
            fs::rename(tree.at("project/.agents/skills/ours"), tree.at("project/.agents/skills/moved"))
                .unwrap();
        },
        "another folder",
    );
}

#[test]
fn a_no_is_remembered_until_it_is_forgotten() {
    let tree = project();
    let store = MemoryStore::new();
    let first = question(&tree).unwrap();
    first.record(&store, Decision::Refused).unwrap();
    tree.skill("project/.agents/skills/new", "new");
    let consent = question(&tree).unwrap().look_up(&store).unwrap().expect("not asked again");
    assert!(!consent.is_allowed());
    store.forget(first.workspace()).unwrap();
    assert!(question(&tree).unwrap().look_up(&store).unwrap().is_none());
}

#[test]
fn a_fingerprint_depends_on_the_skills_and_not_on_where_the_workspace_is() {
    let tree = project();
    let here = question(&tree).unwrap();
    fs::rename(tree.at("project"), tree.at("moved")).unwrap();
    let there = tree.scan("moved").question(&tree.at("moved")).unwrap();
    assert_eq!(here.fingerprint(), there.fingerprint());
    assert_ne!(here.workspace(), there.workspace());
    assert_eq!(here.fingerprint().to_string().parse(), Ok(here.fingerprint()));
    assert!("xyz".parse::<haversack_skills::consent::Fingerprint>().is_err());
}

#[test]
fn a_withheld_skill_stands_before_no_other() {
    let tree = project();
    tree.write("user/ours/SKILL.md", skill("ours", "The user's own."));
    let mut registry = tree.scan("project");
    let question = registry.question(&tree.at("project")).unwrap();
    let text = |consent| {
        let snapshot = registry.snapshot(&Filter::new(consent));
        snapshot.get("ours").unwrap().description().to_owned()
    };
    assert_eq!(text(Consent::withheld()), "The user's own.");
    assert_eq!(text(question.decide(Decision::Allowed)), "Does ours.");
}

#[test]
fn the_question_names_eight_skills_with_their_origins_and_counts_the_rest() {
    let tree = Tree::new();
    for number in 0..11 {
        tree.skill(&format!("project/.claude/skills/s{number:02}"), &format!("s{number:02}"));
    }
    let text = question(&tree).unwrap().text();
    assert_eq!(text.lines().count(), 10, "{text}");
    assert!(
        text.contains("11 skills")
            && text.contains("  s07 (.claude/skills)\n")
            && text.ends_with("and 3 more"),
        "{text}"
    );
}

#[cfg(unix)]
#[test]
fn the_question_says_when_a_skill_lies_outside_the_workspace() {
    let tree = Tree::new();
    tree.skill("elsewhere/far", "far").skill("project/lib/near", "near");
    tree.link(tree.at("elsewhere/far"), "project/.agents/skills/far");
    tree.link("../../lib/near", "project/.agents/skills/near");
    let question = question(&tree).unwrap();
    let outside: Vec<_> = question.skills().iter().map(|asked| asked.outside.is_some()).collect();
    assert_eq!(outside, [true, false]);
    assert!(question.text().contains("elsewhere"));
}

#[test]
fn the_json_store_keeps_decisions_whole_and_to_its_owner() {
    let tree = project();
    let question = question(&tree).unwrap();
    let path = tree.at("state/deep/consent.json");
    let store = JsonStore::new(&path);
    assert!(store.read(question.workspace()).unwrap().is_none());
    store.forget(question.workspace()).unwrap();
    assert!(!path.exists());
    question.record(&store, Decision::Allowed).unwrap();
    let again = JsonStore::new(&path);
    assert!(question.look_up(&again).unwrap().unwrap().is_allowed());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    again.forget(question.workspace()).unwrap();
    assert!(store.read(question.workspace()).unwrap().is_none());
    let left: Vec<_> =
        fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().ends_with(".new")), "{left:?}");
}

#[test]
fn a_store_that_cannot_be_understood_is_an_error_and_is_left_alone() {
    let tree = project();
    let question = question(&tree).unwrap();
    for text in ["", "{", "[]", r#"{"version":2,"workspaces":{}}"#, r#"{"version":1}"#] {
        tree.write("consent.json", text);
        let store = JsonStore::new(tree.at("consent.json"));
        assert!(matches!(question.look_up(&store), Err(ConsentError::Malformed { .. })), "{text}");
        assert!(
            matches!(question.record(&store, Decision::Allowed), Err(ConsentError::Malformed { .. })),
            "{text}"
        );
        assert_eq!(fs::read_to_string(tree.at("consent.json")).unwrap(), text);
    }
}

#[test]
fn decisions_made_at_the_same_time_are_all_kept() {
    let tree = project();
    let question = Arc::new(question(&tree).unwrap());
    let remembered = {
        let store = MemoryStore::new();
        question.record(&store, Decision::Allowed).unwrap();
        store.read(question.workspace()).unwrap().unwrap()
    };
    let path = tree.at("consent.json");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let path = path.clone();
            scope.spawn(move || {
                let store = JsonStore::new(path);
                for number in 0..10 {
                    store.write(&format!("{thread}-{number}"), remembered).unwrap();
                }
            });
        }
    });
    let store = JsonStore::new(&path);
    for thread in 0..4 {
        for number in 0..10 {
            assert_eq!(store.read(&format!("{thread}-{number}")).unwrap(), Some(remembered));
        }
    }
}
