#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

/// A folder `skill` with files, links that stay inside and links that do not, beside a secret.
fn tree() -> (tempfile::TempDir, Jail) {
    let base = tempfile::tempdir().unwrap();
    let skill = base.path().join("skill");
    fs::create_dir_all(skill.join("references/deep")).unwrap();
    fs::create_dir_all(skill.join("node_modules/x")).unwrap();
    fs::write(skill.join("node_modules/x/readme.md"), "foreign").unwrap();
    fs::write(skill.join("references/a.md"), "a").unwrap();
    fs::write(skill.join("references/a..b.md"), "dots").unwrap();
    fs::write(skill.join("references/deep/b.md"), "b").unwrap();
    fs::write(base.path().join("secret"), "secret").unwrap();
    fs::create_dir(base.path().join("other")).unwrap();
    fs::write(base.path().join("other/c.md"), "secret").unwrap();
    for (target, link) in [
        ("a.md", "references/same"),
        ("../references/a.md", "references/round"),
        ("deep", "references/folder"),
        ("../../secret", "references/out"),
        ("../../other", "references/outfolder"),
        ("/etc", "references/etc"),
        ("loop", "references/loop"),
        ("nowhere", "references/dangling"),
    ] {
        symlink(target, skill.join(link)).unwrap();
    }
    symlink(skill.join("references/a.md"), skill.join("references/absolute")).unwrap();
    let jail = Jail::open(&skill).unwrap();
    (base, jail)
}

fn text(jail: &Jail, path: &str) -> Result<String, JailError> {
    let Opened { mut file, facts, .. } = jail.file(path)?;
    Ok(String::from_utf8(read(&mut file, 100, facts.stamp.bytes)?).unwrap())
}

#[test]
fn a_path_that_stays_inside_opens_and_no_other_does() {
    let (_base, jail) = tree();
    for (path, want) in [
        ("references/a.md", Ok("a")),
        ("./references//a.md", Ok("a")),
        (r"references\a.md", Ok("a")),
        ("references/a..b.md", Ok("dots")),
        ("references/same", Ok("a")),
        ("references/round", Ok("a")),
        ("references/absolute", Ok("a")),
        ("references/folder/b.md", Ok("b")),
        ("../skill/references/a.md", Err("Shape")),
        ("references/../references/a.md", Err("Shape")),
        ("/etc/passwd", Err("Shape")),
        (r"\\server\share", Err("Shape")),
        (r"C:\Windows\win.ini", Err("Shape")),
        ("", Err("Shape")),
        ("a\0b", Err("Shape")),
        ("references/out", Err("Outside")),
        ("references/outfolder/c.md", Err("Outside")),
        ("references/etc/passwd", Err("Outside")),
        ("references/loop", Err("TooLong")),
        ("references/dangling", Err("Missing")),
        ("references/none.md", Err("Missing")),
        ("references/a.md/b", Err("Missing")),
        ("references", Err("NotAFile")),
        ("node_modules/x/readme.md", Err("Foreign")),
    ] {
        let got = text(&jail, path).map_err(|error| format!("{error:?}"));
        match want {
            Ok(want) => assert_eq!(got.as_deref().ok(), Some(want), "{path}: {got:?}"),
            Err(want) => assert!(got.as_ref().is_err_and(|error| error.starts_with(want)), "{path}: {got:?}"),
        }
    }
}

#[test]
fn a_folder_that_is_itself_a_link_is_a_jail_like_any_other() {
    let (base, _) = tree();
    let link = base.path().join("link");
    symlink("skill", &link).unwrap();
    let jail = Jail::open(&link).unwrap();
    assert_eq!(text(&jail, "references/a.md").unwrap(), "a");
    assert!(matches!(text(&jail, "references/out"), Err(JailError::Outside)));
}

#[test]
fn a_pipe_is_refused_without_waiting_for_a_writer() {
    let (base, jail) = tree();
    let pipe = base.path().join("skill/pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    assert!(matches!(text(&jail, "pipe"), Err(JailError::NotAFile)));
}

#[test]
fn a_listing_holds_what_can_be_opened_and_says_when_it_is_cut() {
    let (_base, jail) = tree();
    let files = jail.files(100).unwrap();
    let paths: Vec<_> = files.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "references/a..b.md",
            "references/a.md",
            "references/absolute",
            "references/deep/b.md",
            "references/round",
            "references/same"
        ]
    );
    assert!(!files.cut);
    let files = jail.files(2).unwrap();
    assert_eq!((files.files.len(), files.cut), (2, true));
}

/// Two threads swap a folder for a link that leads out while a third opens paths through it: it reads the inner text
/// or nothing, never the outer one.
#[test]
fn a_link_swapped_in_during_the_opening_does_not_lead_out() {
    let (base, jail) = tree();
    let skill = base.path().join("skill");
    fs::create_dir(skill.join("real")).unwrap();
    fs::write(skill.join("real/c.md"), "inner").unwrap();
    symlink("../other", skill.join("escape")).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let _ = fs::rename(skill.join("real"), skill.join("swap"));
                let _ = fs::rename(skill.join("escape"), skill.join("real"));
                let _ = fs::rename(skill.join("real"), skill.join("escape"));
                let _ = fs::rename(skill.join("swap"), skill.join("real"));
            }
        });
        // Until both have met often enough, however the system shares out its time.
        let (mut inner, mut rounds) = (0, 0);
        while inner < 100 || rounds < 20_000 {
            rounds += 1;
            match text(&jail, "real/c.md") {
                Ok(text) => {
                    assert_eq!(text, "inner");
                    inner += 1;
                }
                Err(JailError::Outside | JailError::Missing | JailError::Io(_)) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
        done.store(true, Ordering::Relaxed);
    });
}
