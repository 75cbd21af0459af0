//! Which scopes are asked for. Pure functions; the rules are those of the MCP authorization pages.

/// The scope that asks for a refresh token.
const OFFLINE_ACCESS: &str = "offline_access";

/// What the choice depends on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ScopeSources<'a> {
    /// What the challenge named.
    pub(super) challenged: Option<&'a str>,
    /// What the resource's metadata lists.
    pub(super) of_resource: Option<&'a [String]>,
    /// What the authorization server's metadata lists.
    pub(super) of_issuer: Option<&'a [String]>,
    /// What was asked for before: kept, since a new token replaces the old one.
    pub(super) before: &'a [String],
    /// Whether a refresh token is wanted.
    pub(super) refresh: bool,
}

/// What to ask for: what the challenge names, else all that the resource lists, else nothing, so that the server's default
/// holds. `offline_access` only where the authorization server lists it. In the order in which they were named, each once.
pub(super) fn to_ask(sources: ScopeSources<'_>) -> Vec<String> {
    let offered = |scope: &str| sources.of_issuer.is_some_and(|all| all.iter().any(|one| one == scope));
    let mut scopes: Vec<String> = Vec::new();
    let mut add = |scope: &str| {
        if !scopes.iter().any(|one| one == scope) && (scope != OFFLINE_ACCESS || offered(scope)) {
            scopes.push(scope.to_owned());
        }
    };
    sources.before.iter().for_each(|scope| add(scope));
    match (sources.challenged, sources.of_resource) {
        (Some(challenged), _) => challenged.split_ascii_whitespace().for_each(add),
        (None, Some(listed)) => listed.iter().for_each(|scope| add(scope)),
        (None, None) => {}
    }
    // Alone it would take the place of the server's default scopes.
    if sources.refresh
        && !scopes.is_empty()
        && offered(OFFLINE_ACCESS)
        && !scopes.iter().any(|s| s == OFFLINE_ACCESS)
    {
        scopes.push(OFFLINE_ACCESS.to_owned());
    }
    scopes
}

/// Whether everything in `wanted` has been asked for already.
pub(super) fn is_covered(wanted: &str, asked: &[String]) -> bool {
    wanted.split_ascii_whitespace().all(|scope| asked.iter().any(|one| one == scope))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_come_from_the_challenge_then_the_resource_then_nowhere() {
        let list = |text: &str| text.split_whitespace().map(ToOwned::to_owned).collect::<Vec<_>>();
        // challenge, resource, issuer, before → asked
        let cases = [
            (Some("a b"), Some("x y"), None, "", "a b"),
            (None, Some("x y"), None, "", "x y"),
            (None, None, Some("x offline_access"), "", ""),
            (Some("b"), Some("x"), None, "a", "a b"),
            (Some("a  a"), None, None, "a", "a"),
            (Some("a"), None, Some("a offline_access"), "", "a offline_access"),
            (Some("a offline_access"), None, Some("a"), "", "a"),
            (Some("a offline_access"), None, None, "", "a"),
            (None, Some("x offline_access"), Some("offline_access"), "", "x offline_access"),
        ];
        for (challenged, of_resource, of_issuer, before, expected) in cases {
            let (of_resource, of_issuer) = (of_resource.map(list), of_issuer.map(list));
            let asked = to_ask(ScopeSources {
                challenged,
                of_resource: of_resource.as_deref(),
                of_issuer: of_issuer.as_deref(),
                before: &list(before),
                refresh: true,
            });
            assert_eq!(asked.join(" "), expected, "{challenged:?} {of_resource:?} {of_issuer:?} {before}");
        }
    }

    #[test]
    fn asking_again_for_what_was_asked_is_seen() {
        let asked = ["a".to_owned(), "b".to_owned()];
        assert!(is_covered("b a", &asked) && is_covered("", &asked));
        assert!(!is_covered("a c", &asked));
    }
}
