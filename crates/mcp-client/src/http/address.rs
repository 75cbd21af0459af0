//! Where a server may be: the address read, and judged before anything is sent there.

use std::fmt;

use http::Uri;

use crate::http::place::Place;

/// Which addresses a host lets be connected to.
///
/// It judges what is written in the address. A name that resolves to a private address is not seen here: a host that
/// must keep such out does so in its [`HttpClient`](haversack_http::HttpClient), where names are resolved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AddressPolicy {
    /// Whether `http://` may be used beyond this machine, where everybody on the way can read along. Default: no.
    pub plain_http: bool,
    /// Whether addresses that are not on the public internet may be used: of private networks, of the link (cloud metadata
    /// among them), of reserved ranges. Default: no. This machine itself may always be.
    pub private_networks: bool,
}

impl AddressPolicy {
    /// Allows `http://` beyond this machine.
    #[must_use]
    pub fn with_plain_http(mut self, allowed: bool) -> Self {
        self.plain_http = allowed;
        self
    }

    /// Allows private networks.
    #[must_use]
    pub fn with_private_networks(mut self, allowed: bool) -> Self {
        self.private_networks = allowed;
        self
    }

    /// Judges an address; the error says what is wrong with it and what to do.
    ///
    /// # Errors
    ///
    /// If it is no address of a server, or one that this policy does not allow.
    pub fn check(&self, url: &str) -> Result<(), String> {
        Address::parse(url).and_then(|address| self.judge(&address))
    }

    pub(crate) fn judge(&self, address: &Address) -> Result<(), String> {
        let place = address.place();
        if place == Place::Private && !self.private_networks {
            return Err(format!(
                "{address} is not on the public internet (a private network, the link, or a reserved range), which this host does not allow"
            ));
        }
        if !address.is_tls && place != Place::Loopback && !self.plain_http {
            return Err(format!("{address} is not encrypted; use https, or have the host allow plain http"));
        }
        Ok(())
    }
}

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    uri: Uri,
    is_tls: bool,
}

impl Address {
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        let shown = haversack_http::without_secrets(url);
        if url.contains('#') {
            return Err(format!("{shown} has a fragment, which servers never see"));
        }
        let uri: Uri = url.parse().map_err(|error| format!("`{shown}` is no address: {error}"))?;
        let is_tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(format!("`{shown}` must begin with https:// or http://")),
        };
        let authority = uri.authority().ok_or_else(|| format!("`{shown}` names no server"))?;
        if authority.as_str().contains('@') {
            return Err(format!("{shown} holds a user or a password; put credentials into a header"));
        }
        if authority.host().is_empty() {
            return Err(format!("`{shown}` names no server"));
        }
        if !is_plain(authority.host()) {
            return Err(format!("`{shown}` names a server in characters that no name of one has"));
        }
        Ok(Self { uri, is_tls })
    }

    /// A reference of the server's, read from this address; `None` if it leads to another origin.
    pub(crate) fn join(&self, reference: &str) -> Option<String> {
        let base = format!("{}://{}", self.uri.scheme_str()?, self.uri.authority()?);
        let joined = match reference {
            _ if reference.starts_with("//") => format!("{}:{reference}", self.uri.scheme_str()?),
            _ if has_scheme(reference) => reference.to_owned(),
            _ if reference.starts_with('/') => format!("{base}{reference}"),
            _ if reference.is_empty() || reference.starts_with('?') => {
                format!("{base}{}{reference}", self.uri.path())
            }
            _ => {
                let folder = self.uri.path().rsplit_once('/').map_or("", |(folder, _)| folder);
                format!("{base}{folder}/{reference}")
            }
        };
        let other = Self::parse(&joined).ok()?;
        (other.origin() == self.origin()).then_some(joined)
    }

    fn origin(&self) -> (bool, String, u16) {
        let host = self.uri.host().unwrap_or_default().to_ascii_lowercase();
        (self.is_tls, host, self.uri.port_u16().unwrap_or(if self.is_tls { 443 } else { 80 }))
    }

    fn place(&self) -> Place {
        Place::of_host(self.uri.host().unwrap_or_default())
    }
}

/// Whether a reference begins with a scheme, as an absolute address does: `://` may stand anywhere in a query.
fn has_scheme(reference: &str) -> bool {
    let Some((scheme, _)) = reference.split_once(':') else { return false };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

/// Whether a host is written in the characters that names and numbers are made of. What is not (`%31`, `１`) is read as
/// one number by some and as another by others.
fn is_plain(host: &str) -> bool {
    let in_brackets = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    match in_brackets {
        Some(number) => number.chars().all(|c| c.is_ascii_hexdigit() || matches!(c, ':' | '.')),
        None => host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_')),
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&haversack_http::without_secrets(&self.uri.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_judged_by_what_is_written_in_them() {
        let strict = AddressPolicy::default();
        let open = AddressPolicy::default().with_plain_http(true).with_private_networks(true);
        // Address, allowed by the strict policy, allowed by the open one.
        let table = [
            ("https://mcp.example.com/mcp", true, true),
            ("http://mcp.example.com/mcp", false, true),
            ("http://127.0.0.1:8080/mcp", true, true),
            ("http://localhost/mcp", true, true),
            ("http://a.localhost./", true, true),
            ("http://[::1]:9/", true, true),
            ("http://[::ffff:127.0.0.1]/", true, true),
            ("https://10.0.0.1/", false, true),
            ("https://192.168.1.2/", false, true),
            ("https://100.64.0.1/", false, true),
            ("http://169.254.169.254/latest", false, true),
            ("https://[fd00::1]/", false, true),
            ("https://[fe80::1]/", false, true),
            ("https://0.0.0.0/", false, true),
            ("http://2130706433/", false, true),
            ("http://0x7f.1/", false, true),
            ("http://localhost.example.com/", false, true),
            ("https://user:pw@example.com/", false, false),
            ("ftp://example.com/", false, false),
            ("https://", false, false),
            ("example.com", false, false),
            ("", false, false),
            ("https://[64:ff9b::10.0.0.1]/", false, true),
            ("https://[::10.0.0.1]/", false, true),
            ("https://[2002:a00:1::]/", false, true),
            ("https://198.18.0.1/", false, true),
            ("https://%31%30.0.0.1/", false, false),
            ("https://[fe80::1%25eth0]/", false, false),
            ("https://１０.0.0.1/", false, false),
            ("https://example.com/#x", false, false),
            ("https://example.com/a b", false, false),
            ("https://example.com/\r\nX: y", false, false),
        ];
        for (url, by_strict, by_open) in table {
            assert_eq!(strict.check(url).is_ok(), by_strict, "{url}: {:?}", strict.check(url));
            assert_eq!(open.check(url).is_ok(), by_open, "{url}");
        }
    }

    #[test]
    fn an_error_about_an_address_holds_no_secret_of_it() {
        for url in ["https://me:s3cret@example.com/", "http://example.com/?key=s3cret", "x://y/?key=s3cret"] {
            let fault = AddressPolicy::default().check(url).unwrap_err();
            assert!(!fault.contains("s3cret"), "{fault}");
        }
    }

    #[test]
    fn a_reference_is_followed_within_its_origin_only() {
        let base = Address::parse("http://127.0.0.1:80/a/sse?x=1").unwrap();
        let table = [
            ("/messages?sid=1", Some("http://127.0.0.1:80/messages?sid=1")),
            ("messages", Some("http://127.0.0.1:80/a/messages")),
            (
                "messages?u=http://other.example/",
                Some("http://127.0.0.1:80/a/messages?u=http://other.example/"),
            ),
            ("?u=http://other.example/", Some("http://127.0.0.1:80/a/sse?u=http://other.example/")),
            ("/m?u=https://other.example:8/x", Some("http://127.0.0.1:80/m?u=https://other.example:8/x")),
            ("", Some("http://127.0.0.1:80/a/sse")),
            ("a/b:c", Some("http://127.0.0.1:80/a/a/b:c")),
            ("m#part", None),
            ("javascript:alert(1)", None),
            ("http:/m", None),
            ("http://127.0.0.1/m", Some("http://127.0.0.1/m")),
            ("http://127.0.0.1:81/m", None),
            ("https://127.0.0.1/m", None),
            ("//evil.example/m", None),
            ("http://127.0.0.1@evil.example/m", None),
        ];
        for (reference, wanted) in table {
            assert_eq!(base.join(reference).as_deref(), wanted, "{reference}");
        }
    }
}
