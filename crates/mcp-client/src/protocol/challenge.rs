//! What a server wants to see before it serves: the challenges of `WWW-Authenticate` (RFC 9110, section 11.6.1).

use std::collections::BTreeMap;

/// The most bytes of one header that are read. Real challenges have a few hundred.
const MAX_BYTES: usize = 16 * 1024;

/// The most parameters that a challenge may have; further ones are left out.
const MAX_PARAMETERS: usize = 32;

/// One challenge: the scheme, `Bearer` most often, and its parameters.
///
/// ```
/// use haversack_mcp_client::protocol::Challenge;
///
/// let header = r#"Basic realm="x", Bearer error="insufficient_scope", scope="files:read files:write""#;
/// let challenge = Challenge::bearer([header]).unwrap();
/// assert_eq!(challenge.error(), Some("insufficient_scope"));
/// assert_eq!(challenge.scopes().collect::<Vec<_>>(), ["files:read", "files:write"]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    scheme: String,
    parameters: BTreeMap<String, String>,
}

impl Challenge {
    /// The `Bearer` challenge among the values of `WWW-Authenticate`; without one, the first challenge of any scheme.
    pub fn bearer<'a>(headers: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let mut all: Vec<Self> = headers.into_iter().flat_map(Self::parse_all).collect();
        let at = all.iter().position(|challenge| challenge.scheme.eq_ignore_ascii_case("bearer"));
        if all.is_empty() { None } else { Some(all.swap_remove(at.unwrap_or(0))) }
    }

    /// All challenges of one header, as far as it can be read.
    pub fn parse_all(header: &str) -> Vec<Self> {
        let mut reader = Reader { rest: header.as_bytes().get(..MAX_BYTES).unwrap_or(header.as_bytes()) };
        let mut all: Vec<Self> = Vec::new();
        loop {
            reader.skip(b" \t,");
            let Some(word) = reader.token() else { return all };
            let before = reader.rest;
            reader.skip(b" \t");
            if let (true, Some(challenge)) = (reader.eat(b'='), all.last_mut()) {
                reader.skip(b" \t");
                let Some(value) = reader.value() else { return all };
                if challenge.parameters.len() < MAX_PARAMETERS {
                    // The first one counts: a second one of the same name is an attempt to confuse.
                    challenge.parameters.entry(word.to_ascii_lowercase()).or_insert(value);
                }
                continue;
            }
            reader.rest = before;
            all.push(Self { scheme: word, parameters: BTreeMap::new() });
            reader.skip_token68();
        }
    }

    /// The scheme, as it was written.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// A parameter, by its name in lower case.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// What was wrong with the token: `invalid_token` or `insufficient_scope` (RFC 6750).
    pub fn error(&self) -> Option<&str> {
        self.parameter("error")
    }

    /// Where the server describes how to get a token (RFC 9728).
    pub fn resource_metadata(&self) -> Option<&str> {
        self.parameter("resource_metadata")
    }

    /// What the token must allow, as it was written.
    pub fn scope(&self) -> Option<&str> {
        self.parameter("scope")
    }

    /// What the token must allow, one by one.
    pub fn scopes(&self) -> impl Iterator<Item = &str> {
        self.scope().unwrap_or_default().split(' ').filter(|scope| !scope.is_empty())
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn skip(&mut self, set: &[u8]) {
        while let [first, rest @ ..] = self.rest
            && set.contains(first)
        {
            self.rest = rest;
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        match self.rest {
            [first, rest @ ..] if *first == byte => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn token(&mut self) -> Option<String> {
        let length = self.rest.iter().take_while(|byte| is_token_byte(**byte)).count();
        let (token, rest) = self.rest.split_at_checked(length).filter(|(token, _)| !token.is_empty())?;
        self.rest = rest;
        Some(String::from_utf8_lossy(token).into_owned())
    }

    /// A token or a quoted text.
    fn value(&mut self) -> Option<String> {
        if !self.eat(b'"') {
            return self.token();
        }
        let mut text = Vec::new();
        loop {
            match self.rest {
                [b'\\', byte, rest @ ..] => {
                    text.push(*byte);
                    self.rest = rest;
                }
                [b'"', rest @ ..] => {
                    self.rest = rest;
                    return Some(String::from_utf8_lossy(&text).into_owned());
                }
                [byte, rest @ ..] => {
                    text.push(*byte);
                    self.rest = rest;
                }
                [] => return None,
            }
        }
    }

    /// Reads over the one word that some schemes have in place of parameters.
    fn skip_token68(&mut self) {
        let before = self.rest;
        self.skip(b" \t");
        let length = self.rest.iter().take_while(|byte| is_token68_byte(**byte)).count();
        let after = self.rest.get(length..).unwrap_or_default();
        let padding = after.iter().take_while(|byte| **byte == b'=').count();
        let after = after.get(padding..).unwrap_or_default();
        let ends = after.iter().find(|byte| !matches!(byte, b' ' | b'\t')).is_none_or(|byte| *byte == b',');
        // A word that a single `=` and a value follow is a parameter.
        self.rest = if length > 0 && ends { after } else { before };
    }
}

fn is_token68_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte)
}

/// RFC 9110, section 5.6.2.
pub(crate) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(header: &str) -> Vec<(String, Vec<(String, String)>)> {
        Challenge::parse_all(header)
            .into_iter()
            .map(|challenge| (challenge.scheme, challenge.parameters.into_iter().collect()))
            .collect()
    }

    #[test]
    fn a_header_holds_any_number_of_challenges() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let table = [
            ("Bearer", vec![("Bearer".to_owned(), vec![])]),
            (
                r#"Bearer error="invalid_token", scope = "a b" , Resource_Metadata="http://x/y?z=1,2""#,
                vec![(
                    "Bearer".to_owned(),
                    vec![
                        pair("error", "invalid_token"),
                        pair("resource_metadata", "http://x/y?z=1,2"),
                        pair("scope", "a b"),
                    ],
                )],
            ),
            (
                r#"Negotiate abc==, Basic realm="q\"uote", Bearer"#,
                vec![
                    ("Negotiate".to_owned(), vec![]),
                    ("Basic".to_owned(), vec![pair("realm", "q\"uote")]),
                    ("Bearer".to_owned(), vec![]),
                ],
            ),
            (r#"Bearer scope=one, scope=two"#, vec![("Bearer".to_owned(), vec![pair("scope", "one")])]),
            (r#"Bearer scope="never closed"#, vec![("Bearer".to_owned(), vec![])]),
            ("", vec![]),
            ("\u{e9}", vec![]),
        ];
        for (header, wanted) in table {
            assert_eq!(shown(header), wanted, "{header}");
        }
    }

    #[test]
    fn the_bearer_challenge_is_preferred_wherever_it_stands() {
        let challenge = Challenge::bearer([r#"Basic realm="x""#, r#"bearer scope="s""#]).unwrap();
        assert_eq!((challenge.scheme(), challenge.scope()), ("bearer", Some("s")));
        assert_eq!(Challenge::bearer(["Basic"]).unwrap().scheme(), "Basic");
        assert_eq!(Challenge::bearer([]), None);
    }

    proptest::proptest! {
        #[test]
        fn whatever_a_header_holds_reading_it_ends(header in ".{0,200}") {
            let _ = Challenge::parse_all(&header);
        }
    }
}
