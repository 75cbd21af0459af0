use super::*;

fn put(file: &StateFile, key: &str) -> Changed {
    file.change("t", |entries| {
        entries.insert(key.to_owned(), json!(1));
    })
    .unwrap()
}

#[test]
fn a_file_is_made_for_its_owner_and_replaced_whole() {
    let folder = tempfile::tempdir().unwrap();
    let file = StateFile::new(folder.path().join("deep/state.json"), "things");
    assert_eq!(file.load().unwrap(), Loaded::default());
    assert_eq!(put(&file, "a"), Changed::default());
    put(&file, "b");
    let text = fs::read_to_string(file.path()).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&text).unwrap(),
        json!({"version": 1, "things": {"a": 1, "b": 1}, "updatedAt": "t"})
    );
    assert!(text.ends_with("}\n"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(file.path()), mode(file.path().parent().unwrap())), (0o600, 0o700));
    }
    let names = fs::read_dir(file.path().parent().unwrap()).unwrap().count();
    assert_eq!(names, 2, "the file and its lock, and nothing temporary");
}

#[test]
fn a_corrupt_file_is_kept_aside_and_reported() {
    for text in ["{", "[]", r#"{"version": 2, "things": {}}"#, r#"{"version": 1, "things": []}"#] {
        let folder = tempfile::tempdir().unwrap();
        let file = StateFile::new(folder.path().join("state.json"), "things");
        for round in 1..=2 {
            fs::write(file.path(), text).unwrap();
            let loaded = file.load().unwrap();
            assert!(loaded.entries.is_empty() && loaded.corrupt.is_some(), "{text}");
            let (kept, _why) = put(&file, "a").set_aside.unwrap();
            assert_eq!(fs::read_to_string(&kept).unwrap(), text);
            assert!(kept.to_string_lossy().ends_with(&format!(".corrupt-{round}")));
            assert_eq!(file.load().unwrap().corrupt, None);
        }
    }
}

#[test]
fn changes_from_many_sides_all_count() {
    let folder = tempfile::tempdir().unwrap();
    let file = StateFile::new(folder.path().join("state.json"), "things");
    std::thread::scope(|scope| {
        for side in 0..4 {
            let file = file.clone();
            scope.spawn(move || (0..5).for_each(|n| drop(put(&file, &format!("{side}-{n}")))));
        }
    });
    assert_eq!(file.load().unwrap().entries.len(), 20);
}
