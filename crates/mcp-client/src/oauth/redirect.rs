//! What the browser comes back with, and whether it is to be trusted. Pure functions.

use oauth2::url::{Url, form_urlencoded};

use crate::oauth::error::OAuthError;
use crate::visible::short;

/// What the answer has to fit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected<'a> {
    /// The random text that was sent along.
    pub(super) state: &'a str,
    /// The authorization server that was asked.
    pub(super) issuer: &'a str,
    /// Whether it promised to name itself.
    pub(super) names_itself: bool,
}

/// The code in the address that the browser was sent back to, or in the query of it.
///
/// The state is compared first, so that nothing of a foreign answer is used; then the issuer, as plain text without any
/// normalisation ([RFC 9207](https://www.rfc-editor.org/rfc/rfc9207)), also when the answer is an error.
pub(super) fn code(answer: &str, expected: Expected<'_>) -> Result<String, OAuthError> {
    let query = match Url::parse(answer) {
        Ok(url) => url.query().unwrap_or_default().to_owned(),
        Err(_) => answer.rsplit('?').next().unwrap_or_default().to_owned(),
    };
    let one = |name: &str| {
        let mut values = form_urlencoded::parse(query.as_bytes()).filter(|(key, _)| key == name);
        let value = values.next().map(|(_, value)| value.into_owned());
        if values.next().is_some() {
            return Err(OAuthError::Redirect { reason: "a parameter stands in it twice" });
        }
        Ok(value)
    };
    if one("state")?.as_deref() != Some(expected.state) {
        return Err(OAuthError::Redirect { reason: "its state is not the one that was sent" });
    }
    let issuer = one("iss")?;
    let fits = issuer.as_deref().map_or(!expected.names_itself, |found| found == expected.issuer);
    if !fits {
        return Err(OAuthError::IssuerMismatch {
            place: "the redirect",
            expected: expected.issuer.to_owned(),
            found: issuer.map(|found| short(&found, 200)),
        });
    }
    if let Some(error) = one("error")? {
        return Err(OAuthError::Refused {
            issuer: expected.issuer.to_owned(),
            what: "authorization",
            code: short(&error, 60),
            description: one("error_description")?.map(|text| short(&text, 300)),
        });
    }
    one("code")?
        .filter(|code| !code.is_empty())
        .ok_or(OAuthError::Redirect { reason: "there is neither a code nor an error in it" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_taken_only_from_the_answer_that_was_asked_for() {
        const ISSUER: &str = "https://auth.example";
        // answer, whether the server promised `iss` → the code, or a word of the error
        let cases = [
            ("http://127.0.0.1:9/cb?code=c1&state=s1", false, Ok("c1")),
            ("code=c1&state=s1", false, Ok("c1")),
            ("/cb?code=c%2B1&state=s1", false, Ok("c+1")),
            ("http://x/cb?code=c1&state=s1&iss=https%3A%2F%2Fauth.example", true, Ok("c1")),
            ("http://x/cb?code=c1&state=s1&iss=https%3A%2F%2Fauth.example", false, Ok("c1")),
            ("http://x/cb?code=c1&state=s1", true, Err("issuer")),
            ("http://x/cb?code=c1&state=s1&iss=https%3A%2F%2Fauth.example%2F", true, Err("issuer")),
            ("http://x/cb?code=c1&state=s1&iss=https%3A%2F%2Fevil.example", false, Err("issuer")),
            ("http://x/cb?error=access_denied&state=s1&iss=https%3A%2F%2Fevil.example", false, Err("issuer")),
            (
                "http://x/cb?error=access_denied&state=s1&error_description=no",
                false,
                Err("access_denied (no)"),
            ),
            ("http://x/cb?code=c1&state=other", false, Err("state")),
            ("http://x/cb?code=c1", false, Err("state")),
            ("http://x/cb?code=c1&code=c2&state=s1", false, Err("twice")),
            ("http://x/cb?state=s1", false, Err("neither")),
            ("http://x/cb?state=s1&code=", false, Err("neither")),
            ("", false, Err("state")),
        ];
        for (answer, names_itself, expected) in cases {
            let found = code(answer, Expected { state: "s1", issuer: ISSUER, names_itself });
            match (found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{answer}"),
                (Err(found), Err(word)) => assert!(found.to_string().contains(word), "{answer}: {found}"),
                (found, expected) => panic!("{answer}: {found:?}, expected {expected:?}"),
            }
        }
    }
}
