use super::*;

fn entry(name: &str) -> Entry {
    Entry { name: name.into(), kind: Kind::File, inode: 0 }
}

#[test]
fn a_listing_keeps_the_first_names_whatever_order_they_come_in() {
    for limit in [0, 1, 3, 200] {
        let mut forwards = Collector::new(limit);
        let mut backwards = Collector::new(limit);
        for number in 0..500 {
            forwards.push(entry(&format!("{number:03}")));
            backwards.push(entry(&format!("{:03}", 499 - number)));
        }
        let (forwards, backwards) = (forwards.finish(), backwards.finish());
        assert_eq!(forwards.entries, backwards.entries);
        assert_eq!(forwards.entries.len(), limit);
        assert_eq!((forwards.beyond, backwards.beyond), (500 - limit, 500 - limit));
    }
}

#[test]
fn a_fresh_stamp_is_not_settled() {
    let stamp = |at| Stamp { identity: (0, 0), bytes: 0, modified: at, changed: at };
    let now = 1_700_000_000_123_456_789;
    assert!(!stamp(now).is_settled(now));
    assert!(!stamp(now - 5_000_000).is_settled(now));
    assert!(stamp(now - 30_000_000).is_settled(now));
    // Whole seconds: the file system may keep nothing finer.
    assert!(!stamp(1_700_000_000_000_000_000).is_settled(now));
    assert!(stamp(1_699_999_998_000_000_000).is_settled(now));
    // A clock that was put back says nothing.
    assert!(!stamp(now + 1_000_000_000).is_settled(now));
}

#[cfg(unix)]
#[test]
fn a_folder_lists_stats_and_opens_relative_to_itself() {
    let base = tempfile::tempdir().unwrap();
    let here = base.path().join("here");
    std::fs::create_dir_all(here.join("b")).unwrap();
    std::fs::write(here.join("b/text"), "text").unwrap();
    std::fs::write(here.join("a"), "a").unwrap();
    std::os::unix::fs::symlink("b", here.join("c")).unwrap();
    let folder = Folder::open(&here).unwrap();
    // The path is gone, the descriptor is not.
    std::fs::rename(&here, base.path().join("moved")).unwrap();
    let listing = folder.list(10).unwrap();
    let names: Vec<_> = listing.entries.iter().map(|e| (e.name.to_str().unwrap(), e.kind)).collect();
    assert_eq!(names, [("a", Kind::File), ("b", Kind::Folder), ("c", Kind::Link)]);
    assert_eq!(folder.link_target("c".as_ref()).unwrap().to_str(), Some("b"));
    assert!(folder.child("c".as_ref()).is_err());
    assert!(folder.sub("c".as_ref()).is_ok());
    assert_eq!(folder.file("b/text".as_ref(), false).unwrap().1.stamp.bytes, 4);
    assert_eq!(listing.entries[1].inode, folder.stat("b".as_ref(), false).unwrap().stamp.identity.1);
}
