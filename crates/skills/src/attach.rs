//! Which skills the host's open files ask for.
//!
//! Two fields say so. `autoAttach` has a small grammar, the same on every system: `**/` is any number of whole folders,
//! `**` elsewhere any run of characters, `*` any run without a slash, `?` one character that is no slash; all else,
//! brackets and braces among it, stands for itself. `paths`, which some hosts write instead, is a glob as globset reads
//! it, with `[…]` and `{a,b}`. Both match the whole path, relative to the workspace, in any letter case.

use globset::{GlobBuilder, GlobMatcher};

/// Bytes of one pattern; longer ones are passed over with a problem.
pub(crate) const PATTERN_BYTES: usize = 1_024;
/// Patterns of one skill; later ones are passed over with a problem.
pub(crate) const PATTERNS: usize = 64;

/// The patterns of one skill.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Attach {
    /// Patterns of `autoAttach`.
    pub(crate) auto: Vec<Box<str>>,
    /// Patterns of `paths`, each one known to compile.
    pub(crate) paths: Vec<Box<str>>,
}

impl Attach {
    pub(crate) fn is_empty(&self) -> bool {
        self.auto.is_empty() && self.paths.is_empty()
    }

    /// Whether one of the patterns matches a path relative to the workspace.
    pub(crate) fn matches(&self, path: &str) -> bool {
        let path = path.replace('\\', "/");
        self.auto.iter().any(|pattern| matches(pattern, &path))
            || self.paths.iter().filter_map(|pattern| compile(pattern).ok()).any(|glob| glob.is_match(&path))
    }
}

/// Whether a pattern of `autoAttach` matches a path. Time is at most pattern times path.
pub(crate) fn matches(pattern: &str, path: &str) -> bool {
    let pattern = tokens(pattern);
    let path: Vec<char> = fold(path).collect();
    // `reached` holds the places of the path at which the pattern read so far can end.
    let mut reached = vec![false; path.len() + 1];
    if let Some(start) = reached.first_mut() {
        *start = true;
    }
    for token in pattern {
        reached = step(token, &path, &reached);
    }
    reached.last().copied().unwrap_or(false)
}

#[derive(Clone, Copy)]
enum Token {
    /// `**/`
    Folders,
    /// `**`
    Anything,
    /// `*`
    Run,
    /// `?`
    One,
    This(char),
}

fn fold(text: &str) -> impl Iterator<Item = char> {
    text.chars().map(|c| if c == '\\' { '/' } else { c }).flat_map(char::to_lowercase)
}

fn tokens(pattern: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut chars = fold(pattern).peekable();
    while let Some(c) = chars.next() {
        tokens.push(match c {
            '*' if chars.next_if_eq(&'*').is_some() => {
                if chars.next_if_eq(&'/').is_some() {
                    Token::Folders
                } else {
                    Token::Anything
                }
            }
            '*' => Token::Run,
            '?' => Token::One,
            other => Token::This(other),
        });
    }
    tokens
}

/// The places at which `token` can end, given those at which it can begin.
fn step(token: Token, path: &[char], reached: &[bool]) -> Vec<bool> {
    let mut next = vec![false; path.len() + 1];
    let mut open = false;
    for (at, place) in next.iter_mut().enumerate() {
        let begins = reached.get(at).copied().unwrap_or(false);
        let before = at.checked_sub(1).and_then(|last| path.get(last)).copied();
        let began = at.checked_sub(1).and_then(|last| reached.get(last)).copied().unwrap_or(false);
        *place = match token {
            Token::This(want) => began && before == Some(want),
            Token::One => began && before.is_some_and(|c| c != '/'),
            Token::Anything => {
                open |= begins;
                open
            }
            Token::Run => {
                open = begins || (open && before != Some('/'));
                open
            }
            // Nothing, or anything that ends in a slash: whole folders, since the pattern began at one.
            Token::Folders => {
                let folders = open && before == Some('/');
                open |= begins;
                begins || folders
            }
        };
    }
    next
}

/// Compiles a pattern of `paths`.
pub(crate) fn compile(pattern: &str) -> Result<GlobMatcher, String> {
    if pattern.len() > PATTERN_BYTES {
        return Err(format!("{} bytes are more than the {PATTERN_BYTES} a pattern may have", pattern.len()));
    }
    GlobBuilder::new(pattern)
        .literal_separator(true)
        .case_insensitive(true)
        .backslash_escape(true)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|error| error.kind().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_small_grammar_matches_whole_paths_in_any_case() {
        for (pattern, path, want) in [
            ("src/**/*.tsx", "src/a.tsx", true),
            ("src/**/*.tsx", "src/x/y.tsx", true),
            ("src/**/*.tsx", "SRC/X/Y.TSX", true),
            ("src/**/*.tsx", r"src\x\y.tsx", true),
            (r"src\**\*.tsx", "src/x/y.tsx", true),
            ("src/**/*.tsx", "lib/src/a.tsx", false),
            ("src/**", "src", false),
            ("src/**", "src/a", true),
            ("src/**", "src/a/b.c", true),
            ("**/a.ts", "a.ts", true),
            ("**/a.ts", "x/y/a.ts", true),
            ("**/a.ts", "xa.ts", false),
            ("*.ts", "a.ts", true),
            ("*.ts", "x/a.ts", false),
            ("*", "", true),
            ("?.ts", "a.ts", true),
            ("?.ts", "/.ts", false),
            ("?.ts", "ab.ts", false),
            ("./a.ts", "a.ts", false),
            ("/a.ts", "a.ts", false),
            ("a[1].ts", "a[1].ts", true),
            ("a[1].ts", "a1.ts", false),
            ("{a,b}.ts", "a.ts", false),
            ("{a,b}.ts", "{a,b}.ts", true),
            ("a**b", "a/x/b", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern, path), want, "{pattern} {path}");
        }
    }

    #[test]
    fn the_other_grammar_knows_brackets_and_braces_and_reports_a_bad_pattern() {
        let attach = |pattern: &str| Attach { auto: vec![], paths: vec![pattern.into()] };
        for (pattern, path, want) in [
            ("src/**/*.{ts,tsx}", "src/a/b.tsx", true),
            ("src/[ab].ts", "src/A.ts", true),
            ("src/*.ts", "src/x/a.ts", false),
        ] {
            assert_eq!(attach(pattern).matches(path), want, "{pattern} {path}");
        }
        assert!(compile("src/[abc").is_err());
        assert!(compile(&"{a,".repeat(1_000)).is_err());
    }

    /// A pattern of many stars is the classical way to make a matcher run for ever.
    #[test]
    fn many_stars_cost_no_more_than_pattern_times_path() {
        let pattern = "*a".repeat(200);
        let path = "a".repeat(2_000) + "b";
        assert!(!matches(&pattern, &path));
        assert!(!matches(&"**/".repeat(200), &path));
    }
}
