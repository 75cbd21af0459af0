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
    /// `xoxb-…` and its kin.
    Slack,
    /// `AKIA…`, `ASIA…`.
    Aws,
    /// `AIza…`.
    Google,
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
            Self::Slack => "Slack token",
            Self::Aws => "AWS access key",
            Self::Google => "Google API key",
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
}

impl<'t> Tokens<'t> {
    fn new(text: &'t str) -> Self {
        Self { bytes: text.as_bytes(), at: 0 }
    }
}

impl Iterator for Tokens<'_> {
    type Item = (TokenShape, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        while self.at < self.bytes.len() {
            let at = self.at;
            self.at += 1;
            let inside_word = at > 0 && self.bytes.get(at - 1).copied().is_some_and(is_word);
            let rest = self.bytes.get(at..).unwrap_or_default();
            if inside_word {
                continue;
            }
            if let Some((shape, span)) = token(rest) {
                self.at = at + span.end;
                return Some((shape, at + span.start..at + span.end));
            }
        }
        None
    }
}

/// The token that begins here, with the part of it to mask.
fn token(rest: &[u8]) -> Option<(TokenShape, Range<usize>)> {
    match rest.first()?.to_ascii_lowercase() {
        b'a' => header(rest, b"authorization")
            .or_else(|| header(rest, b"api-key"))
            .or_else(|| aws(rest))
            .or_else(|| google(rest)),
        b'b' => scheme(rest),
        b'e' => jwt(rest),
        b'g' => github(rest),
        b'p' => header(rest, b"proxy-authorization"),
        b's' => prefixed(rest, &[b"sk-"], 20, |b| is_word(b) || b == b'-')
            .map(|span| (TokenShape::ModelKey, span)),
        b'x' => slack(rest).or_else(|| header(rest, b"x-api-key")),
        b'-' => private_key(rest),
        _ => None,
    }
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// How many bytes from `from` on satisfy `fits`.
fn run(bytes: &[u8], from: usize, fits: impl Fn(u8) -> bool) -> usize {
    bytes.get(from..).unwrap_or_default().iter().take_while(|b| fits(**b)).count()
}

fn prefixed(
    rest: &[u8],
    prefixes: &[&[u8]],
    least: usize,
    fits: impl Fn(u8) -> bool,
) -> Option<Range<usize>> {
    let prefix = prefixes.iter().find(|prefix| rest.starts_with(prefix))?.len();
    let length = run(rest, prefix, fits);
    (length >= least).then_some(0..prefix + length)
}

fn github(rest: &[u8]) -> Option<(TokenShape, Range<usize>)> {
    let classic: [&[u8]; 5] = [b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_"];
    prefixed(rest, &classic, 20, is_word)
        .or_else(|| prefixed(rest, &[b"github_pat_"], 20, is_word))
        .map(|span| (TokenShape::GitHub, span))
}

fn slack(rest: &[u8]) -> Option<(TokenShape, Range<usize>)> {
    let prefixes: [&[u8]; 5] = [b"xoxb-", b"xoxa-", b"xoxp-", b"xoxr-", b"xoxs-"];
    prefixed(rest, &prefixes, 20, |b| is_word(b) || b == b'-').map(|span| (TokenShape::Slack, span))
}

fn aws(rest: &[u8]) -> Option<(TokenShape, Range<usize>)> {
    let span = prefixed(rest, &[b"AKIA", b"ASIA"], 16, |b| b.is_ascii_uppercase() || b.is_ascii_digit())?;
    // Exactly sixteen: a longer run is some other word.
    (span.end == 20 && !rest.get(20).copied().is_some_and(is_word)).then_some((TokenShape::Aws, span))
}

fn google(rest: &[u8]) -> Option<(TokenShape, Range<usize>)> {
    prefixed(rest, &[b"AIza"], 35, |b| is_word(b) || b == b'-').map(|span| (TokenShape::Google, span))
}

/// Letters of base64 in both alphabets, with its padding, and what else a bearer token may hold (RFC 6750, 2.1).
fn is_token68(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte)
}

fn scheme(rest: &[u8]) -> Option<(TokenShape, Range<usize>)> {
    let name = ["bearer", "basic"].into_iter().find(|name| starts_with_any_case(rest, name.as_bytes()))?;
    let blanks = run(rest, name.len(), |b| b == b' ' || b == b'\t');
    let start = name.len() + blanks;
    let length = run(rest, start, is_token68);
    let value = rest.get(start..start + length)?;
    // In lower case both are words of English, before words of any length; a token has a digit.
    let written = rest.first().is_some_and(u8::is_ascii_uppercase);
    let tells = written || value.iter().any(u8::is_ascii_digit);
    (blanks > 0 && length >= 20 && tells).then_some((TokenShape::Scheme, start..start + length))
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
    if !matches!(rest.get(at), Some(b':' | b'=')) {
        return None;
    }
    at += 1;
    at += run(rest, at, |b| b"\"'\\ \t".contains(&b));
    let word = run(rest, at, |b| b.is_ascii_alphabetic());
    let schemes = ["bearer", "basic", "token", "apikey", "digest", "negotiate"];
    let is_scheme =
        rest.get(at..at + word).is_some_and(|w| schemes.iter().any(|s| w.eq_ignore_ascii_case(s.as_bytes())));
    let blanks = run(rest, at + word, |b| b == b' ' || b == b'\t');
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

fn jwt(rest: &[u8]) -> Option<(TokenShape, Range<usize>)> {
    let letter = |b: u8| is_word(b) || b == b'-';
    let head = prefixed(rest, &[b"eyJ"], 10, letter)?.end;
    let body = run(rest, head + 1, letter);
    let tail = run(rest, head + 1 + body + 1, letter);
    let dots = rest.get(head) == Some(&b'.') && rest.get(head + 1 + body) == Some(&b'.');
    (dots && body >= 10 && tail >= 10).then_some((TokenShape::Jwt, 0..head + 1 + body + 1 + tail))
}

fn private_key(rest: &[u8]) -> Option<(TokenShape, Range<usize>)> {
    let begin = rest.strip_prefix(b"-----BEGIN ")?;
    let title = run(begin, 0, |b| b.is_ascii_uppercase() || b == b' ' || b.is_ascii_digit());
    begin.get(..title).filter(|title| title.ends_with(b"PRIVATE KEY"))?;
    // Without an end the rest of the text may all be key.
    let end = rest
        .windows(9)
        .position(|w| w == b"-----END ")
        .map_or(rest.len(), |end| end + run(rest, end, |b| b != b'\n' && b != b'\\'));
    Some((TokenShape::PrivateKey, 0..end))
}
