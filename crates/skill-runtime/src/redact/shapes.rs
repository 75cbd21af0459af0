//! The shapes by which tokens are known without having been resolved here.

use std::ops::Range;

/// What a token looks like it is. A label for reports; the token itself is never part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TokenShape {
    /// The value of an `Authorization` header, or of one like `X-Api-Key`.
    Header,
    /// `sk-…`: keys of model providers.
    ModelKey,
    /// `ghp_…` and its kin, `github_pat_…`.
    GitHub,
    /// `glpat-…` and its kin.
    GitLab,
    /// `xoxb-…` and its kin, `xapp-…`.
    Slack,
    /// `AKIA…`, `ASIA…`.
    Aws,
    /// `AIza…`, `ya29.…`.
    Google,
    /// `npm_…`, `pypi-…`, `dckr_pat_…`: registries of packages and images.
    Registry,
    /// A key of another service that is known by how it begins: `dop_v1_…`, `shpat_…`, `SG.…`, `sk_live_…`.
    Service,
    /// `Bearer …` or `Basic …` on their own.
    Scheme,
    /// Three base64 parts, of which the first begins with `eyJ`.
    Jwt,
    /// A private key in PEM.
    PrivateKey,
}

impl TokenShape {
    /// A short name for reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Header => "authorization header",
            Self::ModelKey => "model provider key",
            Self::GitHub => "GitHub token",
            Self::GitLab => "GitLab token",
            Self::Slack => "Slack token",
            Self::Aws => "AWS access key",
            Self::Google => "Google key",
            Self::Registry => "registry token",
            Self::Service => "service key",
            Self::Scheme => "bearer or basic credential",
            Self::Jwt => "JSON Web Token",
            Self::PrivateKey => "private key",
        }
    }
}

/// The first token in a text, by its shape.
pub fn find_token(text: &str) -> Option<TokenShape> {
    Tokens::new(text).next().map(|(shape, _)| shape)
}

/// Where the secret parts of all tokens stand.
pub(super) fn spans(text: &str) -> Vec<Range<usize>> {
    Tokens::new(text).map(|(_, span)| span).collect()
}

/// Goes through a text once; a token ends before the next one is looked for.
struct Tokens<'t> {
    bytes: &'t [u8],
    at: usize,
    /// Before this place no JSON Web Token begins: a run of letters is measured once.
    jwt_from: usize,
}

impl<'t> Tokens<'t> {
    fn new(text: &'t str) -> Self {
        Self { bytes: text.as_bytes(), at: 0, jwt_from: 0 }
    }

    /// The token that begins here, with the part of it to mask.
    fn token(&mut self, at: usize) -> Option<(TokenShape, Range<usize>)> {
        let rest = self.bytes.get(at..).unwrap_or_default();
        match rest.first()?.to_ascii_lowercase() {
            b'-' => private_key(rest),
            _ if !begins_word(self.bytes, at) => None,
            b'e' if at >= self.jwt_from => {
                let (found, measured) = jwt(rest);
                self.jwt_from = at + measured;
                found
            }
            b'a' => header(rest, b"authorization")
                .or_else(|| header(rest, b"api-key"))
                .or_else(|| aws(rest))
                .or_else(|| prefixed(rest)),
            b'b' => scheme(rest),
            b'p' => header(rest, b"proxy-authorization").or_else(|| prefixed(rest)),
            b's' => sendgrid(rest).or_else(|| prefixed(rest)),
            b'x' => header(rest, b"x-api-key").or_else(|| prefixed(rest)),
            _ => prefixed(rest),
        }
    }
}

impl Iterator for Tokens<'_> {
    type Item = (TokenShape, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        while self.at < self.bytes.len() {
            let at = self.at;
            self.at += 1;
            if let Some((shape, span)) = self.token(at) {
                self.at = at + span.end.max(1);
                return Some((shape, at + span.start..at + span.end));
            }
        }
        None
    }
}

/// Whether a word begins here: behind something that is no letter, or behind an escape, whose letters belong to it.
fn begins_word(bytes: &[u8], at: usize) -> bool {
    let before = bytes.get(..at).unwrap_or_default();
    !before.last().copied().is_some_and(is_word) || ends_in_escape(before)
}

/// `\n`, `\x3d`, `\u003d`, `\075`, `%3D`, and the codes of colours of a terminal, also written out.
fn ends_in_escape(before: &[u8]) -> bool {
    let is_hex = |digits: &[u8]| digits.iter().all(u8::is_ascii_hexdigit);
    match before {
        [.., b'%', a, b] if is_hex(&[*a, *b]) => true,
        [.., b'\\', b'x', a, b] if is_hex(&[*a, *b]) => true,
        [.., b'\\', b'u', a, b, c, d] if is_hex(&[*a, *b, *c, *d]) => true,
        [.., b'\\', b'0'..=b'3', b'0'..=b'7', b'0'..=b'7'] => true,
        [.., b'\\', b'n' | b'r' | b't' | b'b' | b'f' | b'v' | b'a' | b'e' | b'0'] => true,
        [head @ .., b'a'..=b'z' | b'A'..=b'Z'] => ends_in_terminal_code(head),
        _ => false,
    }
}

/// `ESC [ 3 2`, the escape itself or written out.
fn ends_in_terminal_code(head: &[u8]) -> bool {
    let parameters =
        head.iter().rev().take(32).take_while(|b| b.is_ascii_digit() || b";?:".contains(b)).count();
    let head = head.get(..head.len() - parameters).unwrap_or_default();
    // The one byte that some terminals take for both.
    if head.ends_with("\u{9b}".as_bytes()) {
        return true;
    }
    let Some(head) = head.strip_suffix(b"[") else { return false };
    let ends = |text: &[u8]| {
        head.len()
            .checked_sub(text.len())
            .and_then(|from| head.get(from..))
            .is_some_and(|end| end.eq_ignore_ascii_case(text))
    };
    let written: [&[u8]; 6] = [b"\x1b", b"\\x1b", b"\\u001b", b"\\033", b"\\e", b"%1b"];
    written.into_iter().any(ends)
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// How many bytes from `from` on satisfy `fits`.
fn run(bytes: &[u8], from: usize, fits: impl Fn(u8) -> bool) -> usize {
    bytes.get(from..).unwrap_or_default().iter().take_while(|b| fits(**b)).count()
}

/// What the letters of a key are.
#[derive(Clone, Copy)]
enum Letters {
    /// Letters, digits, `_`.
    Word,
    /// The same and `-`.
    Dashed,
    /// The same and `.`.
    Dotted,
}

impl Letters {
    fn fits(self, byte: u8) -> bool {
        match self {
            Self::Word => is_word(byte),
            Self::Dashed => is_word(byte) || byte == b'-',
            Self::Dotted => is_word(byte) || byte == b'-' || byte == b'.',
        }
    }
}

/// Keys that are known by how they begin, with the letters that have to follow at least. Longer beginnings first where
/// one is the beginning of another.
const PREFIXES: &[(&[u8], usize, Letters, TokenShape)] = {
    use Letters::{Dashed, Dotted, Word};
    use TokenShape::{GitHub, GitLab, Google, ModelKey, Registry, Service, Slack};
    &[
        (b"sk-", 20, Dashed, ModelKey),
        (b"hf_", 20, Word, ModelKey),
        (b"gsk_", 20, Word, ModelKey),
        (b"xai-", 20, Dashed, ModelKey),
        (b"pplx-", 20, Dashed, ModelKey),
        (b"nvapi-", 20, Dashed, ModelKey),
        (b"r8_", 20, Word, ModelKey),
        (b"github_pat_", 20, Word, GitHub),
        (b"ghp_", 20, Word, GitHub),
        (b"gho_", 20, Word, GitHub),
        (b"ghu_", 20, Word, GitHub),
        (b"ghs_", 20, Dotted, GitHub),
        (b"ghr_", 20, Word, GitHub),
        (b"glpat-", 20, Dotted, GitLab),
        (b"gldt-", 20, Dashed, GitLab),
        (b"glrt-", 20, Dotted, GitLab),
        (b"glptt-", 20, Dashed, GitLab),
        (b"glcbt-", 20, Dashed, GitLab),
        (b"xoxa-", 20, Dashed, Slack),
        (b"xoxb-", 20, Dashed, Slack),
        (b"xoxc-", 20, Dashed, Slack),
        (b"xoxd-", 20, Dashed, Slack),
        (b"xoxe-", 20, Dashed, Slack),
        (b"xoxe.", 20, Dotted, Slack),
        (b"xoxp-", 20, Dashed, Slack),
        (b"xoxr-", 20, Dashed, Slack),
        (b"xoxs-", 20, Dashed, Slack),
        (b"xapp-", 20, Dashed, Slack),
        (b"AIza", 35, Dashed, Google),
        (b"ya29.", 20, Dashed, Google),
        (b"npm_", 20, Word, Registry),
        (b"pypi-", 20, Dashed, Registry),
        (b"dckr_pat_", 20, Dashed, Registry),
        (b"dop_v1_", 20, Word, Service),
        (b"doo_v1_", 20, Word, Service),
        (b"dor_v1_", 20, Word, Service),
        (b"shpat_", 20, Word, Service),
        (b"shpca_", 20, Word, Service),
        (b"shppa_", 20, Word, Service),
        (b"shpss_", 20, Word, Service),
        (b"sk_live_", 16, Word, Service),
        (b"sk_test_", 16, Word, Service),
        (b"rk_live_", 16, Word, Service),
        (b"whsec_", 20, Word, Service),
        (b"hvs.", 20, Dashed, Service),
        (b"lin_api_", 20, Word, Service),
        (b"tskey-", 20, Dashed, Service),
    ]
};

fn prefixed(rest: &[u8]) -> Option<(TokenShape, Range<usize>)> {
    PREFIXES.iter().find_map(|(prefix, least, letters, shape)| {
        let length = rest.starts_with(prefix).then(|| run(rest, prefix.len(), |b| letters.fits(b)))?;
        (length >= *least).then_some((*shape, 0..prefix.len() + length))
    })
}

fn aws(rest: &[u8]) -> Option<(TokenShape, Range<usize>)> {
    let known = rest.starts_with(b"AKIA") || rest.starts_with(b"ASIA");
    // Exactly sixteen: a longer run is some other word.
    let length = known.then(|| run(rest, 4, |b| b.is_ascii_uppercase() || b.is_ascii_digit()))?;
    (length == 16 && !rest.get(20).copied().is_some_and(is_word)).then_some((TokenShape::Aws, 0..20))
}

/// `SG.`, a name and the key itself.
fn sendgrid(rest: &[u8]) -> Option<(TokenShape, Range<usize>)> {
    let letter = |b: u8| is_word(b) || b == b'-';
    let name = rest.starts_with(b"SG.").then(|| run(rest, 3, letter))?;
    let key = run(rest, 3 + name + 1, letter);
    let dot = rest.get(3 + name) == Some(&b'.');
    (dot && name >= 16 && key >= 16).then_some((TokenShape::Service, 0..3 + name + 1 + key))
}

/// Letters of base64 in both alphabets, with its padding, and what else a bearer token may hold (RFC 6750, 2.1).
fn is_token68(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte)
}

fn scheme(rest: &[u8]) -> Option<(TokenShape, Range<usize>)> {
    let name = ["bearer", "basic"].into_iter().find(|name| starts_with_any_case(rest, name.as_bytes()))?;
    let blanks = blanks(rest, name.len());
    let start = name.len() + blanks;
    let length = run(rest, start, |b| is_token68(b) || b == b'%');
    let value = rest.get(start..start + length)?;
    // In lower case both are words of English, before words of any length; a token has a digit.
    let written = rest.first().is_some_and(u8::is_ascii_uppercase);
    let tells = written || value.iter().any(u8::is_ascii_digit);
    (blanks > 0 && length >= 20 && tells).then_some((TokenShape::Scheme, start..start + length))
}

/// The length of the blanks from here on, also as addresses write them.
fn blanks(rest: &[u8], from: usize) -> usize {
    let mut at = from;
    loop {
        match rest.get(at..).unwrap_or_default() {
            [b' ' | b'\t' | b'+', ..] => at += 1,
            [b'%', b'2', b'0', ..] => at += 3,
            _ => return at - from,
        }
    }
}

fn starts_with_any_case(rest: &[u8], name: &[u8]) -> bool {
    rest.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
}

/// `Name: scheme value` or `Name: value`, also as JSON or as an assignment; the scheme stays.
fn header(rest: &[u8], name: &[u8]) -> Option<(TokenShape, Range<usize>)> {
    if !starts_with_any_case(rest, name) {
        return None;
    }
    let mut at = name.len();
    at += run(rest, at, |b| b"\"'\\ \t".contains(&b));
    at += match rest.get(at..).unwrap_or_default() {
        [b':' | b'=', ..] => 1,
        [b'%', b'3', b'A' | b'a' | b'D' | b'd', ..] => 3,
        _ => return None,
    };
    at += run(rest, at, |b| b"\"'\\".contains(&b));
    at += blanks(rest, at);
    at += run(rest, at, |b| b"\"'\\ \t".contains(&b));
    let word = run(rest, at, |b| b.is_ascii_alphabetic());
    let schemes = ["bearer", "basic", "token", "apikey", "digest", "negotiate"];
    let is_scheme =
        rest.get(at..at + word).is_some_and(|w| schemes.iter().any(|s| w.eq_ignore_ascii_case(s.as_bytes())));
    let blanks = blanks(rest, at + word);
    if is_scheme && blanks > 0 {
        at += word + blanks;
    } else if name.ends_with(b"authorization") {
        // Prose such as "authorization: see below" names no scheme and holds no token.
        return None;
    }
    let length = run(rest, at, |b| b.is_ascii_graphic() && !b"\"'\\,;<>".contains(&b));
    let least = if is_scheme { 1 } else { 8 };
    (length >= least).then_some((TokenShape::Header, at..at + length))
}

/// A token, and how far the text was looked at in which no other can begin.
fn jwt(rest: &[u8]) -> (Option<(TokenShape, Range<usize>)>, usize) {
    let letter = |b: u8| is_word(b) || b == b'-';
    if !rest.starts_with(b"eyJ") {
        return (None, 0);
    }
    let head = run(rest, 0, letter);
    let body = run(rest, head + 1, letter);
    let tail = run(rest, head + 1 + body + 1, letter);
    let dots = rest.get(head) == Some(&b'.') && rest.get(head + 1 + body) == Some(&b'.');
    let found = dots && head >= 13 && body >= 10 && tail >= 10;
    (found.then_some((TokenShape::Jwt, 0..head + 1 + body + 1 + tail)), head)
}

fn private_key(rest: &[u8]) -> Option<(TokenShape, Range<usize>)> {
    let begin = rest.strip_prefix(b"-----BEGIN ")?;
    let title = run(begin, 0, |b| b.is_ascii_uppercase() || b == b' ' || b.is_ascii_digit());
    begin.get(..title).filter(|title| title.windows(11).any(|words| words == b"PRIVATE KEY"))?;
    // Without an end the rest of the text may all be key.
    let end = rest
        .windows(9)
        .position(|w| w == b"-----END ")
        .map_or(rest.len(), |end| end + run(rest, end, |b| b != b'\n' && b != b'\\'));
    Some((TokenShape::PrivateKey, 0..end))
}
