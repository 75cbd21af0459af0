//! Where a server may be: the address read, and judged before anything is sent there.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::Uri;

/// Which addresses a host lets be connected to.
///
/// It judges what is written in the address. A name that resolves to a private address is not seen here: a host that
/// must keep such out does so in its [`HttpClient`](haversack_http::HttpClient), where names are resolved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AddressPolicy {
    /// Whether `http://` may be used beyond this machine, where everybody on the way can read along. Default: no.
    pub plain_http: bool,
    /// Whether addresses of private networks and of the link (cloud metadata among them) may be used. Default: no. This
    /// machine itself may always be.
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
            return Err(format!("{address} is in a private network, which this host does not allow"));
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Loopback,
    Private,
    Public,
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
        Ok(Self { uri, is_tls })
    }

    /// A reference of the server's, read from this address; `None` if it leads to another origin.
    pub(crate) fn join(&self, reference: &str) -> Option<String> {
        let base = format!("{}://{}", self.uri.scheme_str()?, self.uri.authority()?);
        let joined = match reference {
            _ if reference.starts_with("//") => format!("{}:{reference}", self.uri.scheme_str()?),
            _ if reference.contains("://") => reference.to_owned(),
            _ if reference.starts_with('/') => format!("{base}{reference}"),
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
        let host = self.uri.host().unwrap_or_default().trim_end_matches('.').to_ascii_lowercase();
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(&host);
        match bare.parse() {
            Ok(IpAddr::V4(ip)) => place_of_v4(ip),
            Ok(IpAddr::V6(ip)) => place_of_v6(ip),
            Err(_) if host == "localhost" || host.ends_with(".localhost") => Place::Loopback,
            // 0x7f.1, 2130706433 and the like: resolvers read them as IPv4 addresses, and nobody writes them in good faith.
            Err(_) if host.rsplit('.').next().is_some_and(is_numeric) => Place::Private,
            Err(_) => Place::Public,
        }
    }
}

fn is_numeric(label: &str) -> bool {
    label.starts_with("0x") || (!label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit()))
}

fn place_of_v4(ip: Ipv4Addr) -> Place {
    let [first, second, ..] = ip.octets();
    let shared = first == 100 && (64..128).contains(&second);
    if ip.is_loopback() {
        Place::Loopback
    } else if ip.is_private() || ip.is_link_local() || ip.is_unspecified() || ip.is_broadcast() || shared {
        Place::Private
    } else {
        Place::Public
    }
}

fn place_of_v6(ip: Ipv6Addr) -> Place {
    if let Some(ip) = ip.to_ipv4_mapped() {
        return place_of_v4(ip);
    }
    if ip.is_loopback() {
        Place::Loopback
    } else if ip.is_unique_local() || ip.is_unicast_link_local() || ip.is_unspecified() {
        Place::Private
    } else {
        Place::Public
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
