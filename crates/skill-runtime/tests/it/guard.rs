//! Paths stay in their folder, through links too.
#![cfg(unix)]

use std::os::unix::fs::symlink;

use haversack_skill_runtime::guard::PathGuard;

#[test]
fn no_link_and_no_dots_lead_out_of_a_guarded_folder() {
    let (base, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let root = base.path().join("root");
    std::fs::create_dir_all(root.join("in")).unwrap();
    symlink(outside.path(), root.join("out")).unwrap();
    symlink("in", root.join("link")).unwrap();
    symlink(root.join("nowhere"), root.join("dangling")).unwrap();
    let guard = PathGuard::new(&root).unwrap();
    for (path, inside) in [
        ("", true),
        ("in", true),
        ("link/new/SKILL.md", true),
        ("..x/SKILL.md", true),
        ("new/deep/er", true),
        ("out", false),
        ("out/new", false),
        ("dangling", false),
        ("dangling/x", false),
        ("..", false),
        ("in/../../root2", false),
        ("in/..", false),
    ] {
        assert_eq!(guard.inside(path).is_ok(), inside, "{path}");
    }
    assert!(guard.inside(root.join("in")).is_ok());
    assert!(guard.inside(base.path().join("root2")).is_err(), "a sibling with the same beginning");
    assert_eq!(guard.inside("link/x").unwrap(), guard.root().join("in/x"));
}
