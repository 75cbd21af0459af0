//! Front matters made to cost a reader more than their size, used by several tests.

/// A name, and what makes about so many bytes.
pub(crate) type Adversary = (&'static str, fn(usize) -> String);

pub(crate) const ADVERSARIES: &[Adversary] = &[
    ("open brackets", |size| format!("a: {}\n", "[".repeat(size))),
    ("keys that need quotes", |size| "a: b: c\n".repeat(size / 8)),
    ("keys over lines that need quotes", |size| "a: b: c\n d\n  e\n".repeat(size / 15)),
    ("open quotes", |size| "k: \"a\n".repeat(size / 6)),
    ("closed quotes with text behind", |size| "k: \"a\" b\n".repeat(size / 9)),
    ("blank lines between words", |size| format!("a: b{}c\n", "\n".repeat(size))),
    ("blank lines between items", |size| "- a\n\n\n\n".replace("- a", "k:\n - a").repeat(size / 12)),
    ("plain text over lines", |size| format!("a: b\n{}", " c\n".repeat(size / 3))),
    ("comments", |size| "# x\n".repeat(size / 4)),
    ("one long line of keys", |size| format!("a: {{{}}}\n", "é: ü, ".repeat(size / 8))),
    ("one long line of pairs", |size| format!("a: [{}]\n", "é: ü, ".repeat(size / 8))),
    ("many keys", |size| (0..size / 18).map(|n| format!("key{n}: {n}\n")).collect()),
    ("the same key", |size| "a: 1\n".repeat(size / 5)),
    ("deep indentation", |size| (0..size.isqrt()).map(|n| format!("{}a:\n", " ".repeat(n))).collect()),
    ("explicit keys", |size| "? a\n: b\n".repeat(size / 8)),
    ("dashes", |size| format!("a:\n  {}\n", "- ".repeat(size / 2))),
    ("anchors", |size| (0..size / 20).map(|n| format!("k{n}: &a{n} [x]\n")).collect()),
    ("aliases", |size| format!("a: &x [1, 2, 3]\nb: [{}]\n", "*x, ".repeat(size / 4))),
    ("control characters", |size| format!("a: {}\n", "\u{1}b".repeat(size / 2))),
    ("control characters and colons", |size| "a: b\u{1}: c\n".repeat(size / 9)),
    ("tabs", |size| format!("name: x\n{}", "\tb: c\n".repeat(size / 6))),
    ("a long line with a fault at its end", |size| format!("a: {}: x\n", "é".repeat(size / 2))),
    ("long folded text", |size| format!("a: >\n{}", "  b\n\n".repeat(size / 5))),
    ("spaces", |size| format!("a: b{}c\n", " ".repeat(size))),
    ("colons", |size| format!("a{}\n", ":".repeat(size))),
    ("escapes", |size| format!("a: \"{}\"\n", "\\u00e9".repeat(size / 6))),
    ("fences that are none", |size| "--- -\n".repeat(size / 6)),
    ("scan lines", |size| format!("name: x\n{}<<<\n", "description: y\n  z\n".repeat(size / 19))),
];
