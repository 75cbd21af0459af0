use haversack::fs_tools::{FsTools, MAX_EDIT_BYTES, MAX_MATCHES, MAX_READ_BYTES};
use serde_json::json;

use crate::project::{Project, Tools};

fn tools(project: &Project) -> Tools {
    Tools::of(&FsTools::new(project.root()))
}

#[tokio::test]
async fn a_file_is_read_by_relative_and_by_absolute_path_and_what_is_no_text_is_an_error() {
    let project = Project::new();
    project.write("src/a.rs", "fn a() {}\n");
    project.write("latin", "x");
    std::fs::write(project.root().join("latin"), b"caf\xe9\n").unwrap();
    std::fs::write(project.root().join("image"), b"\x89PNG\0\0").unwrap();
    std::fs::File::create(project.root().join("huge")).unwrap().set_len(MAX_READ_BYTES + 1).unwrap();
    let tools = tools(&project);
    let absolute = project.root().join("src/a.rs");
    for path in ["src/a.rs", "./src//a.rs", "src\\a.rs", "src/../src/a.rs", absolute.to_str().unwrap()] {
        assert_eq!(tools.call("read_file", json!({"path": path})).await.unwrap(), "fn a() {}\n", "{path}");
    }
    assert_eq!(tools.call("read_file", json!({"path": "latin"})).await.unwrap(), "caf\u{fffd}\n");
    for (path, why) in [
        ("image", "no text"),
        ("huge", "at most"),
        ("src", "is a folder"),
        ("none", "no such file"),
        ("src/a.rs/b", "no folder"),
        ("", "root"),
    ] {
        let error = tools.call("read_file", json!({"path": path})).await.unwrap_err();
        assert!(error.message.contains(why), "{path}: {error}");
    }
}

#[tokio::test]
async fn a_folder_is_listed_and_a_pattern_finds_files_below_it() {
    let project = Project::new();
    for file in ["b.rs", "a/c.rs", "a/d/e.rs", "a/d/f.txt", "node_modules/g/h.rs"] {
        project.write(file, "");
    }
    let tools = tools(&project);
    let list = async |arguments| tools.call("list_files", arguments).await.unwrap();
    assert_eq!(list(json!({})).await, "a/\nb.rs\nnode_modules/");
    assert_eq!(list(json!({"path": "a", "depth": 2})).await, "a/c.rs\na/d/\na/d/e.rs\na/d/f.txt");
    assert_eq!(list(json!({"pattern": "**/*.rs"})).await, "a/c.rs\na/d/e.rs\nb.rs");
    assert_eq!(list(json!({"path": "a", "pattern": "*.rs"})).await, "a/c.rs");
    assert_eq!(list(json!({"pattern": "*.none"})).await, "(nothing)");
    for number in 0..600 {
        project.write(&format!("many/{number:04}"), "");
    }
    let many = list(json!({"path": "many"})).await;
    assert!(
        many.lines().count() == 501
            && many.ends_with("[there are more; list a folder below, or use a pattern]")
    );
}

#[tokio::test]
async fn a_search_leaves_out_credentials_binaries_and_large_files_and_says_so() {
    let project = Project::new();
    project.write("src/a.rs", "let needle = 1;\nlet hay = 2;\n");
    project.write(".env", "needle=secret\n");
    project.write("keys/server.pem", "needle\n");
    project.write("image", "needle\0");
    project.write("large", &"needle\n".repeat(400_000));
    let tools = tools(&project);
    let search = async |arguments| tools.call("search_files", arguments).await;
    let found = search(json!({"query": "need.e"})).await.unwrap();
    assert_eq!(
        found,
        "src/a.rs:1: let needle = 1;\n[2 files that may hold credentials were left out]\n\
         [1 files of more than 2097152 bytes were left out]"
    );
    assert!(search(json!({"query": "NEEDLE", "path": "src"})).await.unwrap().starts_with("(no match)"));
    let any_case = json!({"query": "NEEDLE", "path": "src/a.rs", "ignore_case": true});
    assert_eq!(search(any_case).await.unwrap(), "src/a.rs:1: let needle = 1;");
    assert!(search(json!({"query": "a.b", "literal": true})).await.unwrap().starts_with("(no match)"));
    assert!(!search(json!({"query": "needle", "path": ".env"})).await.unwrap().contains("secret"));
    for query in ["(", "", "(a{1000}){1000}"] {
        assert!(search(json!({"query": query})).await.is_err(), "{query}");
    }
    project.write("many", &"needle\n".repeat(MAX_MATCHES + 1));
    let many = search(json!({"query": "needle", "pattern": "many"})).await.unwrap();
    assert!(many.contains("[there are more matches") && many.matches("many:").count() == MAX_MATCHES);
}

#[tokio::test]
async fn an_edit_replaces_what_stands_there_once_and_shows_its_diff_first() {
    let project = Project::new();
    project.write("a.txt", "one\ntwo\ntwo\nthree\n");
    let tools = tools(&project);
    let edit = async |arguments| tools.call("edit_file", arguments).await;
    let once = json!({"path": "a.txt", "old": "one\n", "new": "1\n"});
    let preview = tools.get("edit_file").preview(&once).unwrap();
    assert_eq!(preview, "--- a/a.txt\n+++ b/a.txt\n@@ -1,4 +1,4 @@\n-one\n+1\n two\n two\n three\n");
    assert_eq!(edit(once.clone()).await.unwrap(), "changed a.txt: 1 lines added, 1 removed");
    assert!(edit(once.clone()).await.unwrap_err().message.contains("not there"));
    assert!(tools.get("edit_file").preview(&once).unwrap().starts_with("This call would fail"));
    let twice = edit(json!({"path": "a.txt", "old": "two", "new": "2"})).await.unwrap_err();
    assert!(twice.message.contains("2 times"), "{twice}");
    edit(json!({"path": "a.txt", "old": "two", "new": "2", "all": true})).await.unwrap();
    assert_eq!(std::fs::read_to_string(project.root().join("a.txt")).unwrap(), "1\n2\n2\nthree\n");
    for arguments in [
        json!({"path": "a.txt", "old": "", "new": "x"}),
        json!({"path": "a.txt", "old": "2", "new": "2"}),
        json!({"path": "none", "old": "a", "new": "b"}),
    ] {
        assert!(edit(arguments.clone()).await.is_err(), "{arguments}");
    }
    let names: Vec<_> = std::fs::read_dir(project.root()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["a.txt"], "nothing is left beside it");
}

#[tokio::test]
async fn an_edit_keeps_the_line_ends_of_the_file_and_damages_no_other_encoding() {
    let project = Project::new();
    project.write("dos.txt", "one\r\ntwo\r\n");
    let tools = tools(&project);
    let edit = json!({"path": "dos.txt", "old": "one\ntwo", "new": "1\n2"});
    tools.call("edit_file", edit).await.unwrap();
    assert_eq!(std::fs::read_to_string(project.root().join("dos.txt")).unwrap(), "1\r\n2\r\n");
    std::fs::write(project.root().join("latin"), b"caf\xe9 one").unwrap();
    let edit = json!({"path": "latin", "old": "one", "new": "two"});
    assert!(tools.call("edit_file", edit).await.unwrap_err().message.contains("damaged"));
}

#[tokio::test]
async fn a_file_is_written_with_its_folders_and_keeps_its_rights() {
    let project = Project::new();
    project.write("run", "old");
    let tools = tools(&project);
    let write = async |path: &str, content: &str| {
        tools.call("write_file", json!({"path": path, "content": content})).await
    };
    let new = json!({"path": "x/y/new.txt", "content": "a\nb\n"});
    let preview = tools.get("write_file").preview(&new).unwrap();
    assert_eq!(preview, "--- /dev/null\n+++ b/x/y/new.txt\n@@ -0,0 +1,2 @@\n+a\n+b\n");
    assert!(!project.root().join("x").exists(), "a preview makes nothing");
    assert_eq!(
        write("x/y/new.txt", "a\nb\n").await.unwrap(),
        "created x/y/new.txt: 2 lines added, 0 removed"
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let file = project.root().join("run");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o751)).unwrap();
        write("run", "new").await.unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o751);
    }
    let large = "x".repeat(usize::try_from(MAX_EDIT_BYTES).unwrap() + 1);
    assert!(write("large", &large).await.is_err() && !project.root().join("large").exists());
    assert!(write("x", "a folder").await.is_err());
}
