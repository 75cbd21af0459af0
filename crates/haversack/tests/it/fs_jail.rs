//! Hostile trees: whatever a path is and whatever lies there, nothing outside the root is read or written.

use haversack::fs_tools::FsTools;
use proptest::prelude::*;
use serde_json::json;

use crate::project::{Project, Tools};

const SECRET: &str = "what is outside";

/// A project with everything that could lead out of it.
fn hostile() -> (Project, Tools) {
    let project = Project::new();
    let outside = project.root().join("../outside");
    std::fs::create_dir_all(&outside).unwrap();
    std::fs::write(outside.join("secret"), SECRET).unwrap();
    project.write("a/b/file", "inside");
    project.write("ä/日本/file", "inside");
    #[cfg(unix)]
    {
        use std::os::unix::fs::symlink;
        let root = project.root();
        symlink(&outside, root.join("absolute")).unwrap();
        symlink("../outside", root.join("relative")).unwrap();
        symlink("../../../outside/secret", root.join("a/b/link")).unwrap();
        symlink("../..", root.join("a/b/up")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        symlink("gone", root.join("dangling")).unwrap();
        symlink("a/b", root.join("inner")).unwrap();
        symlink("/", root.join("slash")).unwrap();
        symlink("/proc/self/root", root.join("proc")).unwrap();
        std::fs::hard_link(outside.join("secret"), root.join("hard")).unwrap();
    }
    let tools = Tools::of(&FsTools::new(project.root()));
    (project, tools)
}

fn untouched(project: &Project) {
    let outside = project.root().join("../outside");
    assert_eq!(std::fs::read_to_string(outside.join("secret")).unwrap(), SECRET);
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
    assert_eq!(std::fs::read_dir(project.root().join("..")).unwrap().count(), 2);
}

async fn try_everything(tools: &Tools, path: &str) {
    for (name, arguments) in [
        ("read_file", json!({"path": path})),
        ("list_files", json!({"path": path, "depth": 9})),
        ("search_files", json!({"path": path, "query": "outside"})),
        ("edit_file", json!({"path": path, "old": "outside", "new": "changed"})),
        ("write_file", json!({"path": path, "content": "changed"})),
    ] {
        let tool = tools.get(name);
        let _keys = (tool.approval_keys(&arguments), tool.effects(&arguments));
        let shown = tool.preview(&arguments).unwrap_or_default();
        let got = tools.call(name, arguments).await.unwrap_or_else(|error| error.message);
        assert!(!shown.contains(SECRET) && !got.contains(SECRET), "{name} {path}: {shown} {got}");
    }
}

#[tokio::test]
async fn no_path_leads_out() {
    let (project, tools) = hostile();
    let absolute = project.root().join("../outside/secret");
    for path in [
        "../outside/secret",
        "a/../../outside/secret",
        "a/b/../../../outside/secret",
        "/etc/passwd",
        "\\etc\\passwd",
        "C:\\Windows\\win.ini",
        "//server/share",
        "~/.ssh/id_rsa",
        "absolute/secret",
        "relative/secret",
        "relative",
        "a/b/link",
        "a/b/up/../outside/secret",
        "a/b/up/absolute/secret",
        "loop",
        "dangling",
        "slash/etc/passwd",
        "proc/etc/passwd",
        "a/b/file\0",
        "a\n/b",
        "\u{2025}/outside",
        "．．/outside/secret",
        "..%2foutside%2fsecret",
        "file:///etc/passwd",
        absolute.to_str().unwrap(),
    ] {
        try_everything(&tools, path).await;
    }
    untouched(&project);
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_is_answered_with_where_it_leads_so_that_what_is_judged_is_what_is_opened() {
    let (project, tools) = hostile();
    for (path, told) in [
        ("inner/file", "use the path `a/b/file` instead"),
        ("a/b/up/a/b/file", "use the path `a/b/file` instead"),
        ("relative/secret", "leads out"),
        ("loop", "leads out of the project or nowhere"),
    ] {
        for name in ["read_file", "edit_file"] {
            let arguments = json!({"path": path, "old": "inside", "new": "changed"});
            let error = tools.call(name, arguments).await.unwrap_err();
            assert!(error.message.contains(told), "{name} {path}: {error}");
        }
    }
    let unicode = tools.call("read_file", json!({"path": "ä/日本/file"})).await.unwrap();
    assert_eq!(unicode, "inside");
    let listed = tools.call("list_files", json!({"depth": 9})).await.unwrap();
    assert!(listed.contains("relative@") && !listed.contains("secret"), "{listed}");
    untouched(&project);
}

#[cfg(unix)]
#[tokio::test]
async fn a_hard_link_is_read_but_never_written_through() {
    let (project, tools) = hostile();
    tools.call("write_file", json!({"path": "hard", "content": "mine"})).await.unwrap();
    assert_eq!(std::fs::read_to_string(project.root().join("hard")).unwrap(), "mine");
    untouched(&project);
}

#[cfg(unix)]
#[tokio::test]
async fn a_root_that_is_a_link_itself_works_by_both_of_its_names() {
    let (project, _) = hostile();
    let alias = project.root().join("../alias");
    std::os::unix::fs::symlink(project.root(), &alias).unwrap();
    let tools = Tools::of(&FsTools::new(&alias));
    for path in [alias.join("a/b/file"), project.root().join("a/b/file")] {
        assert_eq!(tools.call("read_file", json!({"path": path})).await.unwrap(), "inside");
    }
}

/// A pipe would block a reader for ever, a device might do something.
#[cfg(unix)]
#[tokio::test]
async fn pipes_sockets_and_devices_are_never_opened() {
    let (project, tools) = hostile();
    let pipe = project.root().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let _socket = std::os::unix::net::UnixListener::bind(project.root().join("socket")).unwrap();
    for path in ["pipe", "socket"] {
        try_everything(&tools, path).await;
        let error = tools.call("read_file", json!({"path": path})).await.unwrap_err();
        assert!(error.message.contains("no regular file"), "{error}");
        let error = tools.call("write_file", json!({"path": path, "content": ""})).await.unwrap_err();
        assert!(error.message.contains("no regular file"), "{error}");
    }
    assert!(tools.call("search_files", json!({"query": "x"})).await.is_ok(), "a search passes them by");
}

/// A thread swaps a folder, and then a file, for a link that leads out, as fast as it can.
#[cfg(unix)]
#[test]
fn links_swapped_in_during_a_call_never_lead_out() {
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};

    let (project, tools) = hostile();
    let root = project.root();
    std::fs::create_dir_all(root.join("swap")).unwrap();
    std::fs::write(root.join("swap/secret"), "inside").unwrap();
    let stop = AtomicBool::new(false);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    // Judged when the thread has ended, so that a failure cannot leave it dancing.
    let results: Vec<String> = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                // Any of these may fail when the tool is in between; the dance goes on.
                let _ = std::fs::rename(root.join("swap"), root.join("aside"));
                let _ = symlink("../outside", root.join("swap"));
                let _ = std::fs::remove_file(root.join("swap"));
                let _ = std::fs::rename(root.join("aside"), root.join("swap"));
                let _ = std::fs::remove_file(root.join("swap/secret"));
                let _ = symlink("../../outside/secret", root.join("swap/secret"));
                let _ = std::fs::remove_file(root.join("swap/secret"));
                let _ = std::fs::write(root.join("swap/secret"), "inside");
            }
        });
        let calls = async {
            let mut results = Vec::new();
            for _ in 0..200 {
                for (name, arguments) in [
                    ("read_file", json!({"path": "swap/secret"})),
                    ("search_files", json!({"path": "swap", "query": "outside|inside"})),
                    ("write_file", json!({"path": "swap/secret", "content": "inside"})),
                ] {
                    let result = tools.call(name, arguments).await;
                    results.push(result.unwrap_or_else(|error| error.message));
                }
            }
            results
        };
        let results = runtime.block_on(calls);
        stop.store(true, Ordering::Relaxed);
        results
    });
    assert!(results.iter().all(|text| !text.contains(SECRET)), "{results:?}");
    assert_eq!(std::fs::read_to_string(root.join("../outside/secret")).unwrap(), SECRET);
    assert_eq!(std::fs::read_dir(root.join("../outside")).unwrap().count(), 1);
}

fn any_part() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "..", ".", "", "a", "b", "up", "link", "file", "absolute", "relative", "secret", "inner",
            "slash", "proc", "loop", "dangling", "outside", "etc", "passwd", "~", "hard",
        ])
        .prop_map(str::to_owned),
        "\\PC{0,3}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_path_made_of_any_parts_leads_out(
        parts in prop::collection::vec(any_part(), 0..8),
        slash in prop::sample::select(vec!["/", "\\"]),
        absolute in any::<bool>(),
    ) {
        // `hard` is the same file as outside by intent of whoever made the link; a reader may see it.
        prop_assume!(!parts.iter().any(|part| part == "hard"));
        let (project, tools) = hostile();
        std::fs::remove_file(project.root().join("hard")).ok();
        let path = format!("{}{}", if absolute { slash } else { "" }, parts.join(slash));
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(try_everything(&tools, &path));
        untouched(&project);
    }
}
