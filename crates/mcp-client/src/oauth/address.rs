//! Which addresses are asked, and where the documents stand. Pure functions.

use haversack_http::without_secrets;
use oauth2::url::Url;

use crate::http::place::Place;
use crate::oauth::error::OAuthError;

/// Where a protected resource describes itself ([RFC 9728](https://www.rfc-editor.org/rfc/rfc9728)).
const PROTECTED_RESOURCE: &str = "oauth-protected-resource";
/// Where an authorization server describes itself ([RFC 8414](https://www.rfc-editor.org/rfc/rfc8414)).
const AUTHORIZATION_SERVER: &str = "oauth-authorization-server";
/// The same, of `OpenID` Connect Discovery 1.0.
const OPENID: &str = "openid-configuration";

/// Which addresses may be asked at all.
///
/// Metadata comes from whoever answers: without a rule, a server on the internet could have us ask the machines of the
/// house. So an address that another one named must be HTTPS, and it leads into this machine or a private network only
/// if the MCP server is there too, or the host allows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct AddressRule {
    /// Whether local addresses are fine.
    pub(super) local: bool,
}

impl AddressRule {
    /// The rule for whatever belongs to a server.
    pub(super) fn for_server(server: &Url, private_addresses: bool) -> Self {
        Self { local: private_addresses || is_local(server) }
    }

    /// The address, if it may be asked.
    pub(super) fn check(self, what: &'static str, text: &str) -> Result<Url, OAuthError> {
        let refused = |reason| OAuthError::Address { what, url: shown(text), reason };
        let url = Url::parse(text).map_err(|_| refused("it is no absolute address"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused("it holds a user name or a password"));
        }
        if url.fragment().is_some() {
            return Err(refused("it has a fragment"));
        }
        let local = is_local(&url);
        match url.scheme() {
            "https" if local && !self.local => Err(refused(
                "it leads into this machine or a private network, and the MCP server is not there",
            )),
            "https" => Ok(url),
            "http" if local && self.local => Ok(url),
            "http" => Err(refused("it is not HTTPS")),
            _ => Err(refused("it is neither HTTP nor HTTPS")),
        }
    }
}

/// An address for messages: cut, made visible, without what may be a key.
pub(super) fn shown(url: &str) -> String {
    crate::visible::short(&without_secrets(url), 200)
}

/// Whether an address leads into this machine or a private network, as far as it says so itself: names are not looked up.
fn is_local(url: &Url) -> bool {
    url.host_str().is_some_and(|host| Place::of_host(host) != Place::Public)
}

/// Where the metadata of a protected resource may stand, best place first: what the challenge named, then the place for
/// the server's path, then the root.
pub(super) fn protected_resource(server: &Url, challenged: Option<&str>) -> Vec<String> {
    let mut places: Vec<String> = challenged.map(ToOwned::to_owned).into_iter().collect();
    if has_path(server) {
        places.push(inserted(server, PROTECTED_RESOURCE));
    }
    places.push(at_root(server, PROTECTED_RESOURCE));
    let mut seen = Vec::new();
    places.retain(|place| {
        !seen.contains(place) && {
            seen.push(place.clone());
            true
        }
    });
    places
}

/// Where the metadata of an authorization server may stand, best place first. At the root only for an issuer without a
/// path: another tenant may live there.
pub(super) fn authorization_server(issuer: &Url) -> Vec<String> {
    if !has_path(issuer) {
        return vec![at_root(issuer, AUTHORIZATION_SERVER), at_root(issuer, OPENID)];
    }
    let appended = with_path(issuer, &format!("{}/.well-known/{OPENID}", trimmed_path(issuer)));
    vec![inserted(issuer, AUTHORIZATION_SERVER), inserted(issuer, OPENID), appended]
}

/// The issuer that a server of before 2025-06-18 has: its own origin, as written without a slash at the end.
pub(super) fn origin(server: &Url) -> String {
    server.origin().ascii_serialization()
}

/// Whether the metadata of `resource` speaks for `server`: the same origin, and the server's path at or below it.
///
/// RFC 9728 wants the identifier equal to the address; servers in the wild name their origin for all that is below.
pub(super) fn covers(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else { return false };
    if resource.origin() != server.origin() || resource.fragment().is_some() {
        return false;
    }
    let (above, below) = (trimmed_path(&resource), server.path());
    below.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn has_path(url: &Url) -> bool {
    !trimmed_path(url).is_empty()
}

fn trimmed_path(url: &Url) -> &str {
    url.path().trim_end_matches('/')
}

fn inserted(url: &Url, name: &str) -> String {
    with_path(url, &format!("/.well-known/{name}{}", trimmed_path(url)))
}

fn at_root(url: &Url, name: &str) -> String {
    with_path(url, &format!("/.well-known/{name}"))
}

fn with_path(url: &Url, path: &str) -> String {
    let mut place = url.clone();
    place.set_path(path);
    place.set_query(None);
    place.set_fragment(None);
    place.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn documents_are_looked_for_where_the_rfcs_put_them() {
        let at = |text: &str| protected_resource(&url(text), None);
        assert_eq!(
            at("https://a.example/mcp"),
            [
                "https://a.example/.well-known/oauth-protected-resource/mcp",
                "https://a.example/.well-known/oauth-protected-resource"
            ]
        );
        assert_eq!(at("https://a.example/"), ["https://a.example/.well-known/oauth-protected-resource"]);
        let named = "https://a.example/.well-known/oauth-protected-resource/mcp";
        assert_eq!(
            protected_resource(&url("https://a.example/mcp/"), Some(named)).len(),
            2,
            "no place twice"
        );

        let at = |text: &str| authorization_server(&url(text));
        assert_eq!(
            at("https://auth.example"),
            [
                "https://auth.example/.well-known/oauth-authorization-server",
                "https://auth.example/.well-known/openid-configuration"
            ]
        );
        assert_eq!(
            at("https://auth.example/tenant1"),
            [
                "https://auth.example/.well-known/oauth-authorization-server/tenant1",
                "https://auth.example/.well-known/openid-configuration/tenant1",
                "https://auth.example/tenant1/.well-known/openid-configuration"
            ]
        );
    }

    #[test]
    fn a_resource_speaks_for_its_own_address_and_what_is_below_it() {
        let cases = [
            ("https://a.example/mcp", "https://a.example/mcp", true),
            ("https://a.example", "https://a.example/mcp", true),
            ("https://a.example/", "https://a.example/mcp", true),
            ("https://a.example/mcp/", "https://a.example/mcp", true),
            ("https://A.example:443/mcp", "https://a.example/mcp", true),
            ("https://a.example/mc", "https://a.example/mcp", false),
            ("https://a.example/mcp/deep", "https://a.example/mcp", false),
            ("https://evil.example/mcp", "https://a.example/mcp", false),
            ("http://a.example/mcp", "https://a.example/mcp", false),
            ("https://a.example/mcp#x", "https://a.example/mcp", false),
            ("no address", "https://a.example/mcp", false),
        ];
        for (resource, server, expected) in cases {
            assert_eq!(covers(resource, &url(server)), expected, "{resource} for {server}");
        }
    }

    #[test]
    fn only_addresses_that_lead_outside_over_tls_are_asked_for_a_server_outside() {
        let outside = AddressRule::for_server(&url("https://mcp.example/mcp"), false);
        let inside = AddressRule::for_server(&url("http://127.0.0.1:3000/mcp"), false);
        let cases = [
            ("https://auth.example/x", true, true),
            ("http://auth.example/x", false, false),
            ("http://127.0.0.1:1/x", false, true),
            ("http://localhost:1/x", false, true),
            ("http://localhost.:1/x", false, true),
            ("https://10.1.2.3/x", false, true),
            ("https://169.254.169.254/latest", false, true),
            ("https://[::1]/x", false, true),
            ("https://[::ffff:10.0.0.1]/x", false, true),
            ("https://[fd00::1]/x", false, true),
            ("https://2130706433/x", false, true),
            ("https://100.64.0.1/x", false, true),
            ("https://[64:ff9b::a00:1]/x", false, true),
            ("https://[::10.0.0.1]/x", false, true),
            ("https://[2002:a00:1::]/x", false, true),
            ("https://0.1.2.3/x", false, true),
            ("https://%31%30.0.0.1/x", false, true),
            ("https://me:pw@auth.example/x", false, false),
            ("https://auth.example/x#f", false, false),
            ("file:///etc/passwd", false, false),
            ("javascript:alert(1)", false, false),
            ("/authorize", false, false),
        ];
        for (text, from_outside, from_inside) in cases {
            assert_eq!(outside.check("test", text).is_ok(), from_outside, "{text} from outside");
            assert_eq!(inside.check("test", text).is_ok(), from_inside, "{text} from inside");
        }
        assert!(
            AddressRule::for_server(&url("https://mcp.example"), true)
                .check("test", "https://10.0.0.1")
                .is_ok()
        );
    }

    #[test]
    fn a_refused_address_is_shown_without_its_secrets() {
        let rule = AddressRule { local: false };
        let text = rule.check("test", "https://me:pw@a.example/x?key=k").unwrap_err().to_string();
        assert!(
            text.contains("https://a.example/x") && !text.contains("pw") && !text.contains("key=k"),
            "{text}"
        );
    }
}
