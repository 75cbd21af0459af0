//! Which skills one agent may see and load: allow and deny lists by name.

use crate::attach;

/// Allow and deny patterns over names. A name is allowed when no deny pattern matches it and, if there are allow
/// patterns, one of those does. `*` is any run of characters, `?` any one; letter case does not matter.
///
/// The lists bind in [`Reader::load`](crate::Reader::load) as much as in the catalogue: an agent cannot load by guessing what it was not shown.
///
/// ```
/// use haversack_skills::Scope;
///
/// let reviewer = Scope::everything().with_allowed(["review-*", "style"]).with_denied(["review-secrets"]);
/// assert!(reviewer.allows("review-code"));
/// assert!(!reviewer.allows("review-secrets"));
/// assert!(!reviewer.allows("deploy"));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    allow: Option<Vec<String>>,
    deny: Vec<String>,
}

impl Scope {
    /// All skills.
    #[must_use]
    pub fn everything() -> Self {
        Self::default()
    }

    /// No skill, until names are allowed.
    #[must_use]
    pub fn nothing() -> Self {
        Self { allow: Some(Vec::new()), deny: Vec::new() }
    }

    /// Adds names that are allowed; from then on others are not.
    #[must_use]
    pub fn with_allowed<I: IntoIterator<Item = S>, S: Into<String>>(mut self, names: I) -> Self {
        self.allow.get_or_insert_default().extend(names.into_iter().map(Into::into));
        self
    }

    /// Adds names that are denied, allowed or not.
    #[must_use]
    pub fn with_denied<I: IntoIterator<Item = S>, S: Into<String>>(mut self, names: I) -> Self {
        self.deny.extend(names.into_iter().map(Into::into));
        self
    }

    /// Whether a skill of this name may be seen and loaded.
    #[must_use]
    pub fn allows(&self, name: &str) -> bool {
        let matches = |patterns: &[String]| patterns.iter().any(|pattern| attach::matches(pattern, name));
        !matches(&self.deny) && self.allow.as_deref().is_none_or(matches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deny_wins_over_allow_and_an_empty_allow_list_allows_nothing() {
        let scope = |allow: Option<&[&str]>, deny: &[&str]| {
            let scope = allow
                .map_or(Scope::everything(), |allow| Scope::nothing().with_allowed(allow.iter().copied()));
            scope.with_denied(deny.iter().copied())
        };
        for (allow, deny, name, want) in [
            (None, &[][..], "a", true),
            (None, &["a"], "a", false),
            (None, &["A"], "a", false),
            (None, &["a*"], "abc", false),
            (Some(&[][..]), &[], "a", false),
            (Some(&["a", "b-*"]), &[], "b-c", true),
            (Some(&["a", "b-*"]), &[], "c", false),
            (Some(&["*"]), &["b-?"], "b-c", false),
            (Some(&["*"]), &["b-?"], "b-cd", true),
        ] {
            assert_eq!(scope(allow, deny).allows(name), want, "{allow:?} {deny:?} {name}");
        }
    }
}
