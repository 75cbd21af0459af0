//! The variables that the host hands in, and which of them a server's process gets.
//!
//! This crate never looks at the environment of the process it runs in. The host passes an [`Environment`], most
//! often made from [`std::env::vars_os`]. It serves two ends: `${VAR}` in a configuration is looked up in it, and a
//! server's process starts with the part of it that an [`EnvironmentPolicy`] lets through.
//!
//! ```
//! use haversack_mcp_client::environment::{Environment, EnvironmentPolicy};
//!
//! let host: Environment = [("PATH", "/usr/bin"), ("HOME", "/home/u"), ("GITHUB_TOKEN", "s3cret")].into();
//! let child = EnvironmentPolicy::default().child(&host, &[], [("MODE", "quiet")]);
//!
//! assert_eq!(child.text("PATH"), Some("/usr/bin"));
//! assert_eq!(child.text("MODE"), Some("quiet"));
//! assert_eq!(child.text("GITHUB_TOKEN"), None);
//! ```

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;

/// A set of environment variables.
///
/// Names are looked up without regard to case on Windows and exactly elsewhere, as the systems do.
/// `Debug` shows names, never values.
#[derive(Clone, PartialEq, Eq)]
pub struct Environment {
    /// Keyed by the folded name, so that `Path` and `PATH` are one variable where the system says so.
    variables: BTreeMap<OsString, (OsString, OsString)>,
    names: NameCase,
}

/// Whether two names that differ in case are one variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameCase {
    /// `Path` and `PATH` are two variables (everywhere but on Windows).
    Matters,
    /// `Path` and `PATH` are one variable (Windows).
    Ignored,
}

impl NameCase {
    /// The rule of the system that this was compiled for.
    #[must_use]
    pub const fn of_this_system() -> Self {
        if cfg!(windows) { Self::Ignored } else { Self::Matters }
    }
}

impl Default for Environment {
    fn default() -> Self {
        Self::new(NameCase::of_this_system())
    }
}

impl Environment {
    /// No variables, with a given rule for names. [`Environment::default`] takes the rule of this system.
    #[must_use]
    pub const fn new(names: NameCase) -> Self {
        Self { variables: BTreeMap::new(), names }
    }

    /// Adds a variable; one of the same name is replaced.
    #[must_use]
    pub fn with(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.insert(name.into(), value.into());
        self
    }

    /// The value of a variable.
    #[must_use]
    pub fn get(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        self.variables.get(&self.folded(name.as_ref())).map(|(_, value)| value.as_os_str())
    }

    /// The value of a variable, if it is Unicode.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(OsStr::to_str)
    }

    /// All variables, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables.values().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// How many variables there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.variables.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.variables.is_empty()
    }

    fn insert(&mut self, name: OsString, value: OsString) {
        self.variables.insert(self.folded(&name), (name, value));
    }

    fn folded(&self, name: &OsStr) -> OsString {
        match self.names {
            NameCase::Matters => name.to_owned(),
            NameCase::Ignored => name.to_ascii_uppercase(),
        }
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.variables.values().map(|(name, _)| name)).finish()
    }
}

impl<N: Into<OsString>, V: Into<OsString>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        let mut environment = Self::default();
        for (name, value) in variables {
            environment.insert(name.into(), value.into());
        }
        environment
    }
}

impl<N: Into<OsString>, V: Into<OsString>, const COUNT: usize> From<[(N, V); COUNT]> for Environment {
    fn from(variables: [(N, V); COUNT]) -> Self {
        variables.into_iter().collect()
    }
}

/// Which variables of the host a server's process inherits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Inherit {
    /// [`BASE_UNIX`] or [`BASE_WINDOWS`]: what programs need to find themselves, their user and their language.
    #[default]
    Base,
    /// Everything but what [looks like a secret](is_secret_name), [carries a credential](holds_credentials), or
    /// belongs to an editor that started the host.
    AllButSecrets,
    /// Nothing; only what the configuration sets and names.
    Nothing,
}

/// How the environment of a server's process is put together: what is inherited, then what is passed by name, then
/// what the configuration sets. A later one wins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EnvironmentPolicy {
    /// What every server inherits. Default [`Inherit::Base`].
    pub inherit: Inherit,
    /// Names of variables that every server gets although they are not inherited, secret-looking or not.
    pub pass: Vec<String>,
}

impl EnvironmentPolicy {
    /// A policy with nothing passed by name.
    #[must_use]
    pub const fn new(inherit: Inherit) -> Self {
        Self { inherit, pass: Vec::new() }
    }

    /// Adds the name of a variable that every server gets.
    #[must_use]
    pub fn with_passed(mut self, name: impl Into<String>) -> Self {
        self.pass.push(name.into());
        self
    }

    /// The environment of one server's process: `passed` are the names that its entry asks for, `set` the variables
    /// that its entry sets.
    #[must_use]
    pub fn child<N, V>(
        &self,
        host: &Environment,
        passed: &[String],
        set: impl IntoIterator<Item = (N, V)>,
    ) -> Environment
    where
        N: Into<OsString>,
        V: Into<OsString>,
    {
        let mut child = Environment::new(host.names);
        for (name, value) in host.iter() {
            if self.inherits(host.names, name, value) {
                child.insert(name.to_owned(), value.to_owned());
            }
        }
        for name in self.pass.iter().chain(passed) {
            if let Some(value) = host.get(name) {
                child.insert(name.into(), value.to_owned());
            }
        }
        if host.names == NameCase::Ignored {
            // Keeps `cmd.exe` from running a program that lies in the working folder under the name of a tool.
            child.insert("NoDefaultCurrentDirectoryInExePath".into(), "1".into());
        }
        for (name, value) in set {
            child.insert(name.into(), value.into());
        }
        child
    }

    fn inherits(&self, names: NameCase, name: &OsStr, value: &OsStr) -> bool {
        // A name that is no Unicode is in no list, and nothing can be said of it.
        let Some(name) = name.to_str() else { return false };
        match self.inherit {
            Inherit::Nothing => false,
            Inherit::Base => is_base(names, name),
            Inherit::AllButSecrets => {
                !is_secret_name(name)
                    && !is_editor_internal(name)
                    && !value.to_str().is_some_and(holds_credentials)
            }
        }
    }
}

/// The base set outside Windows. A name ending in `*` stands for all names that begin so.
///
/// Found by what breaks without it: programs (`PATH`), their user and home (`npx`, `uvx` and `git` keep caches and
/// settings there), language, time zone, temporary folder, desktop folders, and certificates of a company's own.
/// Proxies are not in it, since their addresses often carry passwords: pass them by name.
pub const BASE_UNIX: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TERM",
    "TZ",
    "TMPDIR",
    "XDG_*",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "NIX_SSL_CERT_FILE",
    "__CF_USER_TEXT_ENCODING",
];

/// The base set on Windows; names without regard to case.
pub const BASE_WINDOWS: &[&str] = &[
    "ALLUSERSPROFILE",
    "APPDATA",
    "COMMONPROGRAMFILES",
    "COMMONPROGRAMFILES(X86)",
    "COMMONPROGRAMW6432",
    "COMPUTERNAME",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "NODE_EXTRA_CA_CERTS",
    "NUMBER_OF_PROCESSORS",
    "OS",
    "PATH",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROCESSOR_IDENTIFIER",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROGRAMFILES(X86)",
    "PROGRAMW6432",
    "PUBLIC",
    "SSL_CERT_FILE",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERDOMAIN",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];

fn is_base(names: NameCase, name: &str) -> bool {
    match names {
        NameCase::Ignored => BASE_WINDOWS.iter().any(|base| base.eq_ignore_ascii_case(name)),
        NameCase::Matters => BASE_UNIX.iter().any(|base| match base.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => *base == name,
        }),
    }
}

fn is_editor_internal(name: &str) -> bool {
    ["VSCODE_", "ELECTRON_"]
        .iter()
        .any(|start| name.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start)))
}

/// Whether a variable's name says that its value is a secret.
///
/// A name is cut into segments at `_`, `-`, `.` and where a capital follows a small letter; a whole segment has to
/// say it (`GITHUB_TOKEN`, `apiKey`, `DB_PASSWORD`), so `KEYBOARD` and `PATH` are no secrets.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    const SEGMENTS: &[&str] = &[
        "APIKEY",
        "APIKEYS",
        "AUTHTOKEN",
        "BEARER",
        "CONNECTIONSTRING",
        "CONNSTR",
        "COOKIE",
        "COOKIES",
        "CREDENTIAL",
        "CREDENTIALS",
        "CREDS",
        "DSN",
        "JWT",
        "KEY",
        "KEYS",
        "PASSPHRASE",
        "PASSWD",
        "PASSWORD",
        "PASSWORDS",
        "PAT",
        "PRIVATEKEY",
        "SECRET",
        "SECRETS",
        "TOKEN",
        "TOKENS",
    ];
    let segments = segments(name);
    let spells_connection_string = segments.windows(2).any(|pair| {
        matches!(pair, [first, second]
            if matches!(first.as_str(), "CONNECTION" | "CONN") && matches!(second.as_str(), "STRING" | "STR"))
    });
    spells_connection_string
        || segments.iter().any(|segment| SEGMENTS.contains(&segment.as_str()))
        // `PWD` alone and `OLDPWD` are folders; `DB_PWD` is a password.
        || (segments.len() > 1 && segments.last().is_some_and(|last| last == "PWD"))
}

/// Whether a value is an address with a password in it, as in `postgres://user:password@host/db`.
#[must_use]
pub fn holds_credentials(value: &str) -> bool {
    value.match_indices("://").any(|(at, separator)| {
        let rest = value.get(at + separator.len()..).unwrap_or_default();
        let authority = rest.split(['/', '?', '#', ' ']).next().unwrap_or_default();
        authority
            .rsplit_once('@')
            .is_some_and(|(user, _)| user.split_once(':').is_some_and(|(_, password)| !password.is_empty()))
    })
}

fn segments(name: &str) -> Vec<String> {
    let mut segments = vec![String::new()];
    let mut previous_is_small = false;
    for c in name.chars() {
        let cut = matches!(c, '_' | '-' | '.');
        if (cut || (previous_is_small && c.is_ascii_uppercase()))
            && segments.last().is_some_and(|last| !last.is_empty())
        {
            segments.push(String::new());
        }
        if !cut && let Some(last) = segments.last_mut() {
            last.push(c.to_ascii_uppercase());
        }
        previous_is_small = c.is_ascii_lowercase();
    }
    segments.retain(|segment| !segment.is_empty());
    segments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_names_are_told_by_whole_segments() {
        let secret = [
            "GITHUB_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "OPENAI_API_KEY",
            "DB_PASSWORD",
            "apiKey",
            "npm_config__authToken",
            "SSH_KEY_PASSPHRASE",
            "AZURE_DEVOPS_PAT",
            "SESSION_COOKIE",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "SQL_CONNECTION_STRING",
            "ConnectionString",
            "SENTRY_DSN",
            "DB_PWD",
            "my-token",
            "key",
        ];
        for name in secret {
            assert!(is_secret_name(name), "{name}");
        }
        let plain = [
            "PATH",
            "HOME",
            "KEYBOARD",
            "TOKENIZERS_PARALLELISM",
            "PWD",
            "OLDPWD",
            "SSH_AUTH_SOCK",
            "MONKEY",
            "PATTERN",
            "",
            "___",
            "CONNECTION",
            "LC_ALL",
        ];
        for name in plain {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn addresses_with_a_password_are_credentials() {
        for value in ["postgres://u:p@h/db", "http://user:pw@proxy:8080", "a=https://x:y@z b"] {
            assert!(holds_credentials(value), "{value}");
        }
        for value in [
            "http://proxy:8080",
            "https://example.org/a:b@c",
            "git@host:path",
            "ssh://git@host",
            "u://n:@h",
            "://",
        ] {
            assert!(!holds_credentials(value), "{value}");
        }
    }

    #[test]
    fn each_policy_lets_through_what_it_says() {
        let host = Environment::new(NameCase::Matters)
            .with("PATH", "/bin")
            .with("LC_TIME", "C")
            .with("EDITOR", "vi")
            .with("GITHUB_TOKEN", "t")
            .with("HTTPS_PROXY", "http://u:p@proxy")
            .with("VSCODE_PID", "1");
        let names = |policy: EnvironmentPolicy, passed: &[&str]| {
            let passed: Vec<String> = passed.iter().map(|&name| name.into()).collect();
            let child = policy.child(&host, &passed, [("SET", "1"), ("PATH", "/mine")]);
            assert_eq!(child.text("PATH"), Some("/mine"), "what the configuration sets wins");
            let names: Vec<_> =
                child.iter().map(|(name, _)| name.to_str().unwrap_or_default().to_owned()).collect();
            names.join(" ")
        };
        assert_eq!(names(EnvironmentPolicy::default(), &[]), "LC_TIME PATH SET");
        assert_eq!(names(EnvironmentPolicy::new(Inherit::Nothing), &[]), "PATH SET");
        assert_eq!(names(EnvironmentPolicy::new(Inherit::AllButSecrets), &[]), "EDITOR LC_TIME PATH SET");
        assert_eq!(
            names(EnvironmentPolicy::default(), &["GITHUB_TOKEN", "ABSENT"]),
            "GITHUB_TOKEN LC_TIME PATH SET"
        );
        assert_eq!(
            names(EnvironmentPolicy::default().with_passed("HTTPS_PROXY"), &[]),
            "HTTPS_PROXY LC_TIME PATH SET"
        );
    }

    #[test]
    fn on_windows_names_that_differ_in_case_are_one_variable() {
        let host =
            Environment::new(NameCase::Ignored).with("Path", r"C:\bin").with("SystemRoot", r"C:\Windows");
        let child = EnvironmentPolicy::default().child(&host, &[], [("PATH", r"C:\mine")]);
        assert_eq!(child.text("path"), Some(r"C:\mine"));
        assert_eq!(child.text("SYSTEMROOT"), Some(r"C:\Windows"));
        assert_eq!(child.text("NODEFAULTCURRENTDIRECTORYINEXEPATH"), Some("1"));
        assert_eq!(child.len(), 3);
    }

    #[test]
    fn debug_shows_names_and_no_values() {
        let shown = format!("{:?}", Environment::default().with("GITHUB_TOKEN", "s3cret"));
        assert_eq!(shown, r#"{"GITHUB_TOKEN"}"#);
    }
}
