use std::time::Duration;

use haversack_skills::watch::{WatchOptions, Watcher};
use haversack_skills::{Limits, Registry, Rescan, Root, Roots};

use crate::tree::{Tree, skill};

/// Longer than any machine takes; a test that waits this long has failed.
const FOREVER: Duration = Duration::from_secs(60);

fn registry(tree: &Tree) -> Registry {
    Registry::scan(&Roots::new().with_root(Root::user(tree.at("user"))), &Limits::default())
}

/// Rescans when told to, until the registry is as wanted; returns how often it was told.
fn until(registry: &mut Registry, watcher: &mut Watcher, wanted: impl Fn(&Registry) -> bool) -> usize {
    let mut rescans = 0;
    while !wanted(registry) {
        assert!(watcher.wait(FOREVER), "no change was reported");
        rescans += 1;
        if registry.rescan() != Rescan::Unchanged {
            watcher.follow(registry);
        }
    }
    rescans
}

#[test]
fn thousands_of_changes_are_a_few_rescans_and_few_watches() {
    let tree = Tree::new();
    tree.skill("user/first", "first").write("user/first/build/seed", "");
    let mut registry = registry(&tree);
    let mut watcher = Watcher::new(&registry, &WatchOptions::default()).unwrap();
    // The root and one skill; the folder in the skill costs nothing.
    assert_eq!((watcher.watched(), watcher.unwatched()), (2, 0));
    for number in 0..500 {
        tree.write(&format!("user/first/build/{number}"), "a build inside a skill");
        tree.skill(&format!("user/s{number}"), &format!("s{number}"));
    }
    let rescans = until(&mut registry, &mut watcher, |registry| registry.skills().len() == 501);
    assert!(rescans < 100, "{rescans} rescans for a thousand changes");
    assert_eq!(watcher.watched(), 502);
}

#[test]
fn an_edit_a_removal_and_a_root_that_appears_are_seen() {
    let tree = Tree::new();
    tree.write("other", "");
    let mut registry = registry(&tree);
    let mut watcher = Watcher::new(&registry, &WatchOptions::default()).unwrap();
    tree.skill("user/a", "a");
    until(&mut registry, &mut watcher, |registry| registry.skills().len() == 1);
    tree.write("user/a/SKILL.md", skill("a", "Another text."));
    until(&mut registry, &mut watcher, |registry| registry.skills()[0].description() == "Another text.");
    std::fs::remove_dir_all(tree.at("user/a")).unwrap();
    until(&mut registry, &mut watcher, |registry| registry.skills().is_empty());
}

#[test]
fn looking_is_no_change_and_folders_beyond_the_bound_are_counted() {
    let tree = Tree::new();
    for number in 0..5 {
        tree.skill(&format!("user/s{number}"), &format!("s{number}"));
    }
    let mut registry = registry(&tree);
    let watcher = Watcher::new(&registry, &WatchOptions::default().with_folders(2)).unwrap();
    assert_eq!((watcher.watched(), watcher.unwatched()), (2, 4));
    for _ in 0..20 {
        registry.rescan();
    }
    assert!(!watcher.wait(Duration::ZERO));
}
