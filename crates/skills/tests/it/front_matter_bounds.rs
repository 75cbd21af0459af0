//! Limits, and files made to cost more than their size.

use haversack_skills::diagnostic::Code;
use haversack_skills::document::{Document, ParseOptions, Reason};

use crate::adversaries::ADVERSARIES;

fn parse(front: &str, options: &ParseOptions) -> (Option<Reason>, Option<Code>) {
    let file = format!("---\n{front}---\n");
    let document = Document::parse(file.as_bytes(), options);
    (document.reason(), document.diagnostics().first().map(|found| found.code))
}

#[test]
fn a_file_larger_than_the_limit_is_not_looked_at() {
    let file = format!("---\na: b\n---\n{}", "x".repeat(256 * 1024 - 13));
    assert_eq!(file.len(), 256 * 1024);
    assert!(Document::parse(file.as_bytes(), &ParseOptions::new()).is_strict());
    let larger = format!("{file}x");
    let document = Document::parse(larger.as_bytes(), &ParseOptions::new());
    assert_eq!(document.reason(), Some(Reason::TooLarge));
    assert_eq!(document.diagnostics()[0].code, Code::TooLarge);
    assert_eq!(document.body(), "");
    assert!(Document::parse(larger.as_bytes(), &ParseOptions::new().with_max_bytes(300_000)).is_strict());
}

#[test]
fn nesting_ends_at_sixty_four_levels() {
    let flow = |levels: usize| format!("a: {}{}\n", "[".repeat(levels), "]".repeat(levels));
    let block = |levels: usize| (0..=levels).map(|n| format!("{}a:\n", " ".repeat(n))).collect::<String>();
    let dashes = |levels: usize| format!("a:\n {}\n", "- ".repeat(levels));
    for shape in [flow, block, dashes] {
        assert_eq!(parse(&shape(63), &ParseOptions::new()), (None, None));
        assert_eq!(parse(&shape(66), &ParseOptions::new()), (Some(Reason::Yaml), Some(Code::TooDeep)));
        let shallow = ParseOptions::new().with_max_depth(5);
        assert_eq!(parse(&shape(4), &shallow), (None, None));
        assert_eq!(parse(&shape(7), &shallow), (Some(Reason::Yaml), Some(Code::TooDeep)));
        let deeper = ParseOptions::new().with_max_depth(1_000_000);
        assert_eq!(parse(&shape(66), &deeper).1, Some(Code::TooDeep), "64 is the most that can be asked for");
    }
}

#[test]
fn aliases_cannot_write_out_more_than_the_limit() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..8 {
        let before = format!("*a{}", level - 1);
        bomb.push_str(&format!("a{level}: &a{level} [{}]\n", [before.as_str(); 10].join(", ")));
    }
    assert!(matches!(parse(&bomb, &ParseOptions::new()).1, Some(Code::TooManyValues | Code::AliasLimit)));
    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(10_000), ["*a"; 200].join(", "));
    assert_eq!(parse(&long, &ParseOptions::new()).1, Some(Code::AliasLimit));
    let nested: String = format!("a: {}{}\n", "&a [".repeat(60), "x, ".repeat(20_000) + &"]".repeat(60));
    assert_eq!(parse(&nested, &ParseOptions::new()).1, Some(Code::AliasLimit));
    let few = "a: &a [1, 2]\nb: [*a, *a, *a]\n";
    assert_eq!(parse(few, &ParseOptions::new()), (None, None));
    assert_eq!(parse(few, &ParseOptions::new().with_max_values(10)).1, Some(Code::TooManyValues));
}

#[test]
fn values_are_counted() {
    let list = |items: usize| format!("a: [{}]\n", "x, ".repeat(items));
    let options = ParseOptions::new().with_max_values(100);
    assert_eq!(parse(&list(98), &options), (None, None), "the root, the list and 98 items");
    assert_eq!(parse(&list(99), &options).1, Some(Code::TooManyValues));
    let keys = |pairs: usize| (0..pairs).map(|n| format!("k{n}: v\n")).collect::<String>();
    assert_eq!(parse(&keys(99), &options), (None, None), "keys do not count");
    assert_eq!(parse(&keys(100), &options).1, Some(Code::TooManyValues));
}

#[test]
fn a_key_ends_within_1024_characters() {
    for (length, is_right) in [(1024, true), (1025, false)] {
        let key = "é".repeat(length);
        assert_eq!(parse(&format!("{key}: x\n"), &ParseOptions::new()).0.is_none(), is_right, "{length}");
        assert_eq!(
            parse(&format!("a: [{key}: x]\n"), &ParseOptions::new()).0.is_none(),
            is_right,
            "{length}"
        );
    }
}

/// A reader with a loop over the file inside a loop over the file would need minutes for any of these.
#[test]
fn the_largest_hostile_files_are_read_like_any_other() {
    for (name, make) in ADVERSARIES {
        let file = format!("---\n{}---\n", make(250_000));
        let document = Document::parse(file.as_bytes(), &ParseOptions::new());
        assert_ne!(document.reason(), Some(Reason::TooLarge), "{name}");
        for edit in document.diagnostics().iter().filter_map(|found| found.fix.as_ref()) {
            let mended = edit.apply(file.as_bytes()).unwrap();
            let options = ParseOptions::new().with_max_bytes(usize::MAX);
            assert!(Document::parse(&mended, &options).is_strict(), "{name}");
        }
    }
}

const fn assert_send_and_sync<T: Send + Sync + 'static>() {}

const _: () = {
    assert_send_and_sync::<Document<'static>>();
    assert_send_and_sync::<ParseOptions>();
    assert_send_and_sync::<haversack_skills::diagnostic::Diagnostic>();
};
