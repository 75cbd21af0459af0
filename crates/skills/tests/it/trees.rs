use std::fs;

use haversack_skills::{Bound, Limits, LinkPolicy, Registry, Rescan, Root, Roots, ShadowReason, Source};

use crate::tree::{Tree, names, next_tick, skill, skipped};

fn plain(tree: &Tree, path: &str) -> Registry {
    let root = Root::new(tree.at(path), Source::Host, path);
    Registry::scan(&Roots::new().with_root(root), &Limits::default())
}

#[test]
fn project_stands_before_package_before_user_and_each_loser_is_named() {
    let tree = Tree::new();
    tree.skill("user/a", "same").skill("project/.gbs/skills/a", "same");
    tree.write("project/package.json", r#"{"dependencies":{"dep":"1"}}"#)
        .write("project/node_modules/dep/package.json", r#"{"gbsSkills":["skills/a"]}"#)
        .skill("project/node_modules/dep/skills/a", "same");
    let winner = |tree: &Tree| {
        let registry = tree.scan("project");
        assert_eq!(names(&registry), ["same"]);
        let label = registry.origin(&registry.skills()[0]).label.clone();
        (label, registry.shadowed().len())
    };
    assert_eq!(winner(&tree), (".gbs/skills".into(), 2));
    fs::remove_dir_all(tree.at("project/.gbs")).unwrap();
    assert_eq!(winner(&tree), ("dep".into(), 1));
    fs::remove_dir_all(tree.at("project/node_modules")).unwrap();
    assert_eq!(winner(&tree), ("user skills".into(), 0));
}

#[test]
fn the_project_folders_have_an_order() {
    let tree = Tree::new();
    for folder in [".claude", ".agents", ".gbs"] {
        tree.skill(&format!("project/{folder}/skills/a"), "a");
    }
    for folder in [".gbs", ".agents", ".claude"] {
        let registry = tree.scan("project");
        assert_eq!(registry.origin(&registry.skills()[0]).label, format!("{folder}/skills"));
        assert!(registry.shadowed().iter().all(|shadowed| shadowed.reason == ShadowReason::Precedence));
        fs::remove_dir_all(tree.at("project").join(folder)).unwrap();
    }
}

#[test]
fn a_valid_skill_stands_before_an_invalid_one_of_the_same_name() {
    let tree = Tree::new();
    tree.write("project/.gbs/skills/a/SKILL.md", "---\nname: a\n---\n").skill("user/a", "a");
    let registry = tree.scan("project");
    assert_eq!(names(&registry), ["a"]);
    assert_eq!(registry.origin(&registry.skills()[0]).source, Source::User);
    assert_eq!(registry.invalid().len(), 1);
    assert_eq!(registry.shadowed()[0].reason, ShadowReason::Validity);
}

#[test]
fn one_bad_file_costs_no_other_and_is_listed_with_its_reason() {
    let tree = Tree::new();
    tree.skill("s/good", "good")
        .write("s/Missing/SKILL.md", "no front matter\n")
        .write("s/big/SKILL.md", "x".repeat(256 * 1024 + 1))
        .write("s/binary/SKILL.md", b"---\nname: \xff\n---\n")
        .write("s/no-description/SKILL.md", "---\nname: x\n---\n")
        .write("s/list/SKILL.md", "---\nname: list\ndescription: [a]\n---\n")
        .write("s/unclosed/SKILL.md", "---\nname: u\ndescription: d\n");
    fs::create_dir_all(tree.at("s/folder/SKILL.md")).unwrap();
    let registry = plain(&tree, "s");
    assert_eq!(names(&registry), ["good"]);
    let invalid: Vec<_> =
        registry.invalid().iter().map(|skill| (skill.name(), skill.problems()[0].code.as_str())).collect();
    assert_eq!(
        invalid,
        [
            ("big", "too-large"),
            ("binary", "not-utf8"),
            ("folder", "front-matter-missing"),
            ("list", "description-missing"),
            ("missing", "front-matter-missing"),
            ("unclosed", "front-matter-unclosed"),
            ("x", "description-missing"),
        ]
    );
}

#[test]
fn names_are_judged_by_what_would_break_and_the_folder_helps_out() {
    let long = "a".repeat(64);
    let too_long = "a".repeat(65);
    for (name, want) in [
        ("Not Valid", None),
        ("-a", None),
        ("a--b", None),
        ("a-", None),
        (too_long.as_str(), None),
        (long.as_str(), Some(long.as_str())),
        ("local_search", Some("local_search")),
        ("a.b", Some("a.b")),
        ("plug:demo", Some("plug:demo")),
        ("3000", Some("3000")),
        ("Capital", Some("Capital")),
        ("技能", Some("技能")),
        ("a/b", None),
        ("\"\\u202ea\"", None),
        ("", Some("folder")),
        ("null", Some("folder")),
    ] {
        let tree = Tree::new();
        tree.write("s/Folder/SKILL.md", format!("---\nname: {name}\ndescription: d\n---\n"));
        let registry = plain(&tree, "s");
        assert_eq!(names(&registry).first().copied(), want, "{name:?}");
        if want.is_none() {
            assert_eq!(registry.invalid()[0].name(), "folder", "{name:?}");
        }
    }
}

#[test]
fn a_walk_stops_at_a_skill_and_passes_over_foreign_hidden_and_ignored_folders() {
    let tree = Tree::new();
    tree.skill("s/outer", "outer")
        .skill("s/outer/references/inner", "inner")
        .skill("s/group/grouped", "grouped")
        .skill("s/node_modules/x", "foreign")
        .skill("s/.git/x", "foreign-b")
        .skill("s/target/x", "foreign-c")
        .skill("s/.hidden/x", "hidden")
        .skill("s/ignored/x", "ignored")
        .skill("s/group/kept/x", "kept")
        .skill("s/group/local/x", "local")
        .write("s/.gitignore", "ignored/\nlocal/\nkept/\n")
        .write("s/group/.gitignore", "!kept/\n")
        .write("s/lower/skill.md", "---\nname: lower\ndescription: d\n---\n")
        .write("s/flat.md", "---\nname: flat\ndescription: d\n---\n")
        .write("s/README.md", "hello");
    let registry = plain(&tree, "s");
    assert_eq!(names(&registry), ["grouped", "kept", "outer"]);
    let mut got = skipped(&tree, &registry);
    got.sort();
    assert_eq!(
        got,
        [
            ("s/.git".into(), "foreign"),
            ("s/.hidden".into(), "hidden"),
            ("s/flat.md".into(), "flat-file"),
            ("s/group/local".into(), "ignored"),
            ("s/ignored".into(), "ignored"),
            ("s/lower/skill.md".into(), "wrong-case"),
            ("s/node_modules".into(), "foreign"),
            ("s/target".into(), "foreign"),
        ]
    );
}

#[test]
fn each_bound_is_reported_when_it_is_hit_and_only_then() {
    let tree = Tree::new();
    for group in 0..4 {
        for number in 0..5 {
            tree.skill(&format!("s/g{group}/s{number}"), &format!("s{group}{number}"));
        }
    }
    tree.skill("s/1/2/3/4/5/6", "six").skill("s/1/2/3/4/5/x/7", "seven");
    let scan = |limits: &Limits| {
        let root = Root::new(tree.at("s"), Source::Host, "s");
        let registry = Registry::scan(&Roots::new().with_root(root), limits);
        let bounds: Vec<_> = registry.bounds_hit().map(|hit| (hit.bound, hit.limit)).collect();
        (registry.skills().len(), bounds)
    };
    let defaults = Limits::default();
    assert_eq!(scan(&defaults), (21, vec![(Bound::Depth, 6)]));
    assert_eq!(scan(&defaults.clone().with_depth(7)), (22, vec![]));
    let (found, bounds) = scan(&defaults.clone().with_depth(7).with_folders(3));
    assert_eq!(bounds, [(Bound::Folders, 3)]);
    assert!(found < 22);
    let (found, bounds) = scan(&defaults.with_depth(7).with_entries(10));
    assert_eq!(bounds, [(Bound::Entries, 10)]);
    assert!(found < 22);
}

#[test]
fn ten_thousand_entries_in_one_folder_are_within_the_defaults() {
    let tree = Tree::new();
    for number in 0..10_000 {
        if number % 100 == 0 {
            tree.skill(&format!("s/{number:05}"), &format!("s{number}"));
        } else {
            tree.write(&format!("s/{number:05}"), "");
        }
    }
    let registry = plain(&tree, "s");
    assert_eq!(registry.skills().len(), 100);
    assert_eq!(registry.bounds_hit().count(), 0);
}

#[test]
fn folders_above_up_to_the_repository_count_and_the_nearest_wins() {
    let tree = Tree::new();
    tree.skill(".agents/skills/outside", "outside")
        .write("repo/.git/HEAD", "")
        .skill("repo/.agents/skills/a", "a")
        .skill("repo/.claude/skills/root", "root")
        .write("repo/packages/one/.agents/skills/a/SKILL.md", skill("a", "The nearer."));
    let registry = tree.scan("repo/packages/one");
    assert_eq!(names(&registry), ["a", "root"]);
    assert_eq!(registry.skills()[0].description(), "The nearer.");
    assert_eq!(registry.origin(&registry.skills()[1]).label, "../../.claude/skills");
    // Without a repository there is no going up.
    assert!(names(&tree.scan("elsewhere")).is_empty());
    let roots = Roots::new().with_project(tree.at("repo/packages/one")).without_parents();
    assert_eq!(names(&Registry::scan(&roots, &Limits::default())), ["a"]);
}

#[test]
fn a_worktree_is_a_repository_too() {
    let tree = Tree::new();
    tree.write("work/.git", "gitdir: /somewhere\n").skill("work/.claude/skills/a", "a");
    assert_eq!(names(&tree.scan("work/deep/er")), ["a"]);
}

#[test]
fn a_monorepo_is_searched_downwards_when_asked_for() {
    let tree = Tree::new();
    tree.write("repo/.git/HEAD", "")
        .write("repo/.gitignore", "generated/\n")
        .skill("repo/.agents/skills/root", "root")
        .skill("repo/packages/one/.agents/skills/one", "one")
        .skill("repo/packages/two/.claude/skills/two", "two")
        .skill("repo/node_modules/x/.agents/skills/x", "x")
        .skill("repo/generated/.agents/skills/y", "y")
        .skill("repo/docs/SKILL", "none");
    let up = Roots::new().with_project(tree.at("repo"));
    assert_eq!(names(&Registry::scan(&up, &Limits::default())), ["root"]);
    let down = up.with_nested_projects();
    let mut registry = Registry::scan(&down, &Limits::default());
    assert_eq!(names(&registry), ["one", "root", "two"]);
    let label = registry.origin(&registry.skills()[0]).label.clone();
    assert_eq!(label, "packages/one/.agents/skills");
    tree.skill("repo/packages/three/.gbs/skills/three", "three");
    assert!(matches!(registry.rescan(), Rescan::Changed(_)));
    assert_eq!(names(&registry), ["one", "root", "three", "two"]);
    let few = Limits::default().with_folders(2);
    let registry = Registry::scan(&down, &few);
    // Two folders are listed, and what lies in a sub-folder of these is found all the same.
    assert_eq!(names(&registry), ["root"]);
    let registry_of_packages = Registry::scan(
        &Roots::new().with_project(tree.at("repo/packages")).without_parents().with_nested_projects(),
        &Limits::default().with_folders(1),
    );
    assert_eq!(names(&registry_of_packages), ["one", "three", "two"]);
    assert!(registry.bounds_hit().any(|hit| hit.bound == Bound::Folders));
}

#[test]
fn a_root_that_the_repository_ignores_is_searched_all_the_same() {
    let tree = Tree::new();
    tree.write("repo/.git/HEAD", "").write("repo/.gitignore", ".claude/\nprivate/\n");
    tree.skill("repo/.claude/skills/a", "a")
        .skill("repo/.agents/skills/private/x", "x")
        .skill("repo/.agents/skills/b", "b");
    assert_eq!(names(&tree.scan("repo")), ["a", "b"]);
}

#[test]
fn packages_name_their_skills_and_nothing_else_of_theirs_is_looked_at() {
    let tree = Tree::new();
    let many: Vec<_> = (0..12).map(|number| format!("\"s/{number}\"")).collect();
    tree.write("project/package.json", r#"{"dependencies":{"one":"","@scope/two":"","broken":"","../x":"","absent":""},"devDependencies":{"many":""},"peerDependencies":{"peer":""}}"#)
        .write("project/node_modules/one/package.json", r#"{"gbsSkills":["skills/a", 7, "../../secret", "none", "/etc"]}"#)
        .skill("project/node_modules/one/skills/a", "a")
        .skill("project/node_modules/one/skills/unlisted", "unlisted")
        .write("project/node_modules/@scope/two/package.json", r#"{"gbsSkills":["b"]}"#)
        .skill("project/node_modules/@scope/two/b", "b")
        .write("project/node_modules/broken/package.json", "{")
        .write("project/node_modules/peer/package.json", r#"{"gbsSkills":["p"]}"#)
        .skill("project/node_modules/peer/p", "p")
        .write("project/node_modules/many/package.json", format!(r#"{{"gbsSkills":[{}]}}"#, many.join(",")));
    for number in 0..12 {
        tree.skill(&format!("project/node_modules/many/s/{number}"), &format!("m{number}"));
    }
    let registry = tree.scan("project");
    let found = names(&registry);
    assert_eq!(found.len(), 12, "{found:?}");
    assert!(found.contains(&"a") && found.contains(&"b") && found.contains(&"m9") && !found.contains(&"m10"));
    assert_eq!(registry.origin(&registry.skills()[1]).label, "@scope/two");
    let why: Vec<_> = skipped(&tree, &registry).into_iter().map(|(_, why)| why).collect();
    assert_eq!(why.iter().filter(|why| **why == "bad-package-skill").count(), 4, "{why:?}");
    assert_eq!(why.iter().filter(|why| **why == "bad-manifest").count(), 1, "{why:?}");
    assert!(registry.bounds_hit().any(|hit| hit.bound == Bound::PackageSkills));
}

#[test]
fn nothing_changed_means_unchanged_and_every_change_is_seen() {
    let tree = Tree::new();
    tree.skill("s/a", "a").skill("s/group/b", "b").write("s/.gitignore", "").write("s/c/note.txt", "");
    let root = Root::new(tree.at("s"), Source::Host, "s");
    let roots = Roots::new().with_root(root).with_root(Root::user(tree.at("later")));
    let mut registry = Registry::scan(&roots, &Limits::default());
    assert_eq!(registry.rescan(), Rescan::Unchanged);
    let changed = |registry: &mut Registry| match registry.rescan() {
        Rescan::Changed(changes) => {
            [changes.added, changes.removed, changes.changed].map(|names| names.join(" "))
        }
        _ => ["unchanged", "", ""].map(str::to_owned),
    };
    // The same length, in the same tick as the scan.
    tree.write("s/a/SKILL.md", skill("a", "Does b."));
    assert_eq!(changed(&mut registry), ["", "", "a"]);
    assert_eq!(registry.skills()[0].description(), "Does b.");
    tree.skill("s/c", "c");
    assert_eq!(changed(&mut registry), ["c", "", ""]);
    tree.skill("s/d/e", "e");
    assert_eq!(changed(&mut registry), ["e", "", ""]);
    fs::remove_dir_all(tree.at("s/group/b")).unwrap();
    assert_eq!(changed(&mut registry), ["", "b", ""]);
    tree.write("s/.gitignore", "d/");
    assert_eq!(changed(&mut registry), ["", "e", ""]);
    tree.skill("later/f", "f");
    assert_eq!(changed(&mut registry), ["f", "", ""]);
    fs::rename(tree.at("s/a"), tree.at("s/z")).unwrap();
    assert_eq!(changed(&mut registry), ["", "", "a"]);
    tree.write("s/z/SKILL.md", skill("renamed", "x"));
    assert_eq!(changed(&mut registry), ["renamed", "a", ""]);
    assert_eq!(registry.rescan(), Rescan::Unchanged);
    next_tick(&tree);
    assert_eq!(registry.rescan(), Rescan::Unchanged);
    fs::remove_dir_all(tree.at("s")).unwrap();
    assert_eq!(changed(&mut registry), ["", "c renamed", ""]);
}

#[cfg(unix)]
mod links {
    use super::*;

    #[test]
    fn a_linked_skill_and_a_linked_root_are_found_once() {
        let tree = Tree::new();
        tree.skill("elsewhere/far", "far").skill("s/here", "here");
        tree.link(tree.at("elsewhere/far"), "s/far")
            .link("here", "s/again")
            .link("../s", "s/loop")
            .link(".", "s/self");
        tree.link("nowhere", "s/dangling").link(tree.at("s"), "linked");
        tree.write("s/file", "").link("file", "s/to-a-file");
        let registry = plain(&tree, "s");
        assert_eq!(names(&registry), ["far", "here"]);
        assert_eq!(registry.skills()[1].folder(), tree.at("s/here"));
        let mut got = skipped(&tree, &registry);
        got.sort();
        let want = ["again", "dangling", "loop", "self"].map(|name| format!("s/{name}"));
        assert_eq!(got.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>(), want);
        assert_eq!(got[1].1, "link-broken");
        assert!([0, 2, 3].iter().all(|at| got[*at].1 == "seen-before"));
        // Two roots, one folder.
        let roots = Roots::new().with_root(Root::new(tree.at("s"), Source::Host, "s")).with_root(Root::new(
            tree.at("linked"),
            Source::Host,
            "linked",
        ));
        let registry = Registry::scan(&roots, &Limits::default());
        assert_eq!(names(&registry), ["far", "here"]);
        assert_eq!(registry.shadowed().len(), 2);
        assert!(registry.shadowed().iter().all(|shadowed| shadowed.reason == ShadowReason::SameFolder));
    }

    #[test]
    fn a_link_policy_decides_what_is_followed() {
        let tree = Tree::new();
        tree.write("repo/.git/HEAD", "").skill("repo/lib/near", "near").skill("far/far", "far");
        tree.link("../../lib/near", "repo/.agents/skills/near")
            .link(tree.at("far/far"), "repo/.agents/skills/far");
        tree.skill("repo/.agents/skills/real", "real").write("text.md", skill("filelink", "d"));
        tree.write("repo/.agents/skills/filelink/x", "")
            .link(tree.at("text.md"), "repo/.agents/skills/filelink/SKILL.md");
        for (policy, want) in [
            (LinkPolicy::Follow, &["far", "filelink", "near", "real"][..]),
            (LinkPolicy::Inside, &["near", "real"]),
            (LinkPolicy::Never, &["real"]),
        ] {
            let roots = Roots::new().with_project(tree.at("repo")).with_links(policy);
            let registry = Registry::scan(&roots, &Limits::default());
            assert_eq!(names(&registry), want, "{policy:?}");
            let refused =
                registry.skipped().filter(|skipped| skipped.reason.as_str() == "link-forbidden").count();
            assert_eq!(refused, 4 - want.len(), "{policy:?}");
        }
    }

    #[test]
    fn a_package_may_be_a_link_but_its_skills_must_lie_inside() {
        let tree = Tree::new();
        tree.write("project/package.json", r#"{"dependencies":{"dep":""}}"#)
            .write("store/dep/package.json", r#"{"gbsSkills":["skills/a","out"]}"#)
            .skill("store/dep/skills/a", "a")
            .skill("outside/b", "b")
            .link("../../store/dep", "project/node_modules/dep")
            .link("../../outside/b", "store/dep/out");
        let registry = tree.scan("project");
        assert_eq!(names(&registry), ["a"]);
        assert_eq!(skipped(&tree, &registry).len(), 1);
    }

    #[test]
    fn a_link_that_is_turned_elsewhere_is_a_change() {
        let tree = Tree::new();
        tree.skill("one", "one").skill("two", "two").link(tree.at("one"), "s/x");
        let mut registry = plain(&tree, "s");
        assert_eq!(names(&registry), ["one"]);
        fs::remove_file(tree.at("s/x")).unwrap();
        tree.link(tree.at("two"), "s/x");
        assert!(matches!(registry.rescan(), Rescan::Changed(_)));
        assert_eq!(names(&registry), ["two"]);
    }

    #[test]
    fn what_cannot_be_read_is_reported_and_costs_no_other() {
        use std::os::unix::fs::PermissionsExt;
        let tree = Tree::new();
        tree.skill("s/a", "a").skill("s/locked/b", "b").skill("s/file", "file");
        // A link to itself is unreadable for everybody, the system's administrator too.
        tree.link("SKILL.md", "s/circle/SKILL.md");
        let lock = |path: &str, mode| {
            fs::set_permissions(tree.at(path), fs::Permissions::from_mode(mode)).unwrap();
        };
        lock("s/locked", 0o000);
        lock("s/file/SKILL.md", 0o000);
        let registry = plain(&tree, "s");
        let reads_all = fs::read(tree.at("s/file/SKILL.md")).is_ok();
        lock("s/locked", 0o700);
        lock("s/file/SKILL.md", 0o600);
        let got = skipped(&tree, &registry);
        assert!(got.iter().all(|(_, why)| *why == "unreadable"), "{got:?}");
        let (found, unreadable) = if reads_all { (&["a", "b", "file"][..], 1) } else { (&["a"][..], 3) };
        assert_eq!(names(&registry), found);
        assert_eq!(got.len(), unreadable, "{got:?}");
        // Nothing is remembered against them.
        let mut registry = registry;
        registry.rescan();
        assert_eq!(names(&registry), ["a", "b", "file"]);
    }

    /// A writer that replaces a file, as editors do, while scans and loads go on: each sees one text or the other, whole.
    #[test]
    fn a_file_replaced_while_it_is_read_is_read_whole() {
        use std::sync::atomic::{AtomicBool, Ordering};
        let tree = Tree::new();
        let text = |letter: &str| {
            format!("---\nname: a\ndescription: {}\n---\n{}", letter.repeat(900), letter.repeat(5_000))
        };
        tree.write("user/a/SKILL.md", text("x"));
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for letter in ["y", "x"].iter().cycle() {
                    tree.write("new", text(letter));
                    fs::rename(tree.at("new"), tree.at("user/a/SKILL.md")).unwrap();
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
            for _ in 0..300 {
                let reader = tree.reader();
                let snapshot = reader.snapshot();
                let description = snapshot.get("a").expect("never absent, never invalid").description();
                assert!(description == "x".repeat(900) || description == "y".repeat(900));
                let body = reader.load("a", 1).unwrap().text;
                assert!(body.contains(&"x".repeat(5_000)) || body.contains(&"y".repeat(5_000)));
            }
            done.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let tree = Tree::new();
    for number in 0..700 {
        tree.skill(&format!("s/g{}/s{number}", number % 7), &format!("s{number}"));
    }
    tree.write("s/g1/bad/SKILL.md", "nothing");
    let scan = |threads| {
        let roots = Roots::new().with_root(Root::new(tree.at("s"), Source::Host, "s"));
        let registry = Registry::scan(&roots, &Limits::default().with_threads(threads));
        let skills = registry.skills().iter().chain(registry.invalid());
        skills.map(|skill| (skill.name().to_owned(), skill.folder().to_path_buf())).collect::<Vec<_>>()
    };
    let one = scan(1);
    assert_eq!(one.len(), 701);
    assert_eq!(one, scan(2));
    assert_eq!(one, scan(8));
}

/// The tree of the shared generator: what its manifest lists is found, what it calls broken is reported or mended, and no
/// decoy is taken.
#[test]
fn the_generated_trees_are_found_as_their_manifests_say() {
    let workspace = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shared = workspace.join("../shared");
    if !shared.is_dir() {
        eprintln!("SKIPPED: {} is not there", shared.display());
        return;
    }
    for layout in ["flat", "grouped", "repo"] {
        let tree = Tree::new();
        let script = shared.join("corpus/skills/gen_tree.py");
        let mut command = std::process::Command::new("python3");
        let made = command
            .arg(script)
            .arg(tree.path())
            .args(["120", "--noise", "--layout", layout])
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        let text = fs::read_to_string(tree.at("manifest.json")).unwrap();
        let manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
        let registry = match layout {
            "repo" => Registry::scan(
                &Roots::new().with_project(tree.path()).with_nested_projects(),
                &Limits::default(),
            ),
            _ => plain(&tree, "skills"),
        };
        let found: Vec<_> = registry.skills().iter().map(|skill| skill.folder().to_path_buf()).collect();
        for (name, folder) in manifest["skills"].as_object().unwrap() {
            assert!(names(&registry).contains(&name.as_str()), "{layout}: {name}");
            assert!(found.contains(&tree.at(folder.as_str().unwrap())), "{layout}: {folder}");
        }
        for (folder, why) in manifest["invalid"].as_object().unwrap() {
            let mended = found.contains(&tree.at(folder));
            let reported = registry.invalid().iter().any(|skill| skill.folder() == tree.at(folder));
            assert!(if why == "yaml" { mended } else { reported }, "{layout}: {folder}: {why}");
        }
        let all =
            manifest["skills"].as_object().unwrap().len() + manifest["invalid"].as_object().unwrap().len();
        assert_eq!(registry.skills().len() + registry.invalid().len(), all, "{layout}: a decoy was taken");
    }
}
