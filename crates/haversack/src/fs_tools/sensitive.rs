//! Files that somebody has to say yes to each time: where secrets are kept, and what makes other programs run.

use haversack_agent_core::policy::{Glob, KeyPattern, Rule};

/// Files that hold credentials. Reading one is asked about each time, and a search leaves them out.
pub const SENSITIVE_READS: &[&str] = &[
    "**/.env*",
    "**/.npmrc",
    "**/.yarnrc*",
    "**/.pypirc",
    "**/.netrc",
    "**/_netrc",
    "**/.git-credentials",
    "**/.git/config",
    "**/.ssh/**",
    "**/.aws/**",
    "**/.gnupg/**",
    "**/.kube/config",
    "**/.docker/config.json",
    "**/.htpasswd",
    "**/.pgpass",
    "**/id_rsa*",
    "**/id_dsa*",
    "**/id_ecdsa*",
    "**/id_ed25519*",
    "**/credential",
    "**/credential.*",
    "**/credentials",
    "**/credentials.*",
    "**/secret",
    "**/secret.*",
    "**/secrets",
    "**/secrets.*",
    "**/secrets/**",
    "**/*.pem",
    "**/*.key",
    "**/*.p12",
    "**/*.pfx",
    "**/*.jks",
    "**/*.keystore",
    "**/*.kdbx",
    "**/*.ppk",
];

/// Files that decide what other programs run, or what an agent is told. Writing one is asked about each time, as is
/// writing what [`SENSITIVE_READS`] names.
pub const SENSITIVE_WRITES: &[&str] = &[
    // version control, editors, continuous integration, containers for development
    "**/.git",
    "**/.git/**",
    "**/.gitmodules",
    "**/.gitattributes",
    "**/.gitconfig",
    "**/.hg/**",
    "**/.svn/**",
    "**/.vscode/**",
    "**/.idea/**",
    "**/.zed/**",
    "**/*.code-workspace",
    "**/.editorconfig",
    "**/.github/**",
    "**/.gitlab/**",
    "**/.gitlab-ci*",
    "**/.circleci/**",
    "**/.buildkite/**",
    "**/.travis.yml",
    "**/azure-pipelines*",
    "**/Jenkinsfile*",
    "**/.husky/**",
    "**/.pre-commit-config.yaml",
    "**/lefthook.*",
    "**/.devcontainer/**",
    "**/.devcontainer.json",
    // agents: their instructions, skills and servers
    "**/.gbs/**",
    "**/.agents/**",
    "**/.claude/**",
    "**/.cursor/**",
    "**/.codex/**",
    "**/.mcp.json",
    "**/AGENTS*.md",
    "**/CLAUDE*.md",
    "**/GEMINI.md",
    // package managers and build files
    "**/package.json",
    "**/package-lock.json",
    "**/pnpm-*.yaml",
    "**/.pnpmfile.*",
    "**/yarn.lock",
    "**/bunfig.toml",
    "**/deno.json*",
    "**/Makefile*",
    "**/GNUmakefile",
    "**/*.mk",
    "**/CMakeLists.txt",
    "**/*.cmake",
    "**/meson.build",
    "**/justfile",
    "**/Taskfile.*",
    "**/Rakefile",
    "**/Gemfile*",
    "**/Procfile",
    "**/Vagrantfile",
    "**/Dockerfile*",
    "**/*.dockerfile",
    "**/Containerfile*",
    "**/docker-compose*",
    "**/compose.y*ml",
    "**/pyproject.toml",
    "**/setup.py",
    "**/setup.cfg",
    "**/requirements*.txt",
    "**/Pipfile*",
    "**/tox.ini",
    "**/noxfile.py",
    "**/conftest.py",
    "**/pytest.ini",
    "**/sitecustomize.py",
    "**/*.pth",
    "**/build.gradle*",
    "**/settings.gradle*",
    "**/gradle.properties",
    "**/gradlew*",
    "**/.gradle/**",
    "**/gradle/**",
    "**/pom.xml",
    "**/mvnw*",
    "**/.mvn/**",
    "**/Cargo.toml",
    "**/build.rs",
    "**/.cargo/**",
    "**/rust-toolchain*",
    "**/go.mod",
    "**/*.csproj",
    "**/*.vbproj",
    "**/*.fsproj",
    "**/*.sln",
    "**/Directory.Build.*",
    "**/nuget.config",
    "**/composer.json",
    "**/flake.nix",
    "**/.envrc",
    "**/.tool-versions",
    "**/mise.toml",
    "**/.nvmrc",
    // settings of linters, tests and bundlers are programs, or name some
    "**/*.config.*",
    "**/.*rc",
    "**/.*rc.*",
    "**/tsconfig*.json",
    "**/jest.*",
    "**/karma.*",
    "**/gulpfile.*",
    "**/Gruntfile.*",
    "**/angular.json",
    "**/nx.json",
    "**/turbo.json",
    // scripts and binaries
    "**/*.sh",
    "**/*.bash",
    "**/*.zsh",
    "**/*.fish",
    "**/*.ps1",
    "**/*.psm1",
    "**/*.bat",
    "**/*.cmd",
    "**/*.vbs",
    "**/*.com",
    "**/*.exe",
    "**/*.msi",
    "**/*.dll",
    "**/*.so",
    "**/*.dylib",
    "**/*.jar",
    "**/bin/**",
    // dependencies: nobody looks at changes there
    "**/node_modules/**",
    "**/.venv/**",
    "**/venv/**",
    "**/site-packages/**",
    "**/vendor/**",
];

/// Rules that ask about sensitive files whatever was granted: one for each pattern and tool, so that the ask says which
/// one it was. [`HaversackBuilder::fs_tools`](crate::HaversackBuilder::fs_tools) adds them to the policy of the builder,
/// except in [`Mode::Autonomous`](haversack_agent_core::policy::Mode::Autonomous); a host that sets a policy of its own
/// in `configure` adds them itself.
pub fn sensitive_rules() -> Vec<Rule> {
    let rule = |tool: &'static str| {
        move |pattern: &&'static str| Rule::ask(tool).for_keys([KeyPattern::path(*pattern)])
    };
    let reads = SENSITIVE_READS.iter().map(rule(super::READ_FILE));
    let writes = [super::EDIT_FILE, super::WRITE_FILE]
        .into_iter()
        .flat_map(|tool| SENSITIVE_READS.iter().chain(SENSITIVE_WRITES).map(rule(tool)));
    reads.chain(writes).collect()
}

/// The patterns, compiled.
#[derive(Debug)]
pub(super) struct Sensitive {
    reads: Vec<Glob>,
    writes: Vec<Glob>,
}

impl Sensitive {
    pub(super) fn new() -> Self {
        let compiled = |patterns: &[&str]| patterns.iter().map(|pattern| Glob::new(*pattern)).collect();
        Self { reads: compiled(SENSITIVE_READS), writes: compiled(SENSITIVE_WRITES) }
    }

    /// Whether a file holds credentials by its name.
    pub(super) fn is_read(&self, path: &str) -> bool {
        matches(&self.reads, path)
    }

    /// Whether writing a file has to be asked about.
    pub(super) fn is_write(&self, path: &str) -> bool {
        self.is_read(path) || matches(&self.writes, path)
    }
}

/// Case does not count, and neither do characters that some file systems leave out of names.
fn matches(globs: &[Glob], path: &str) -> bool {
    let bare: String = path.chars().filter(|c| !is_ignorable(*c)).collect();
    globs.iter().any(|glob| glob.matches_in_any_case(&bare))
}

/// What HFS+ takes for nothing in a name: joiners, marks of direction, the byte order mark.
fn is_ignorable(c: char) -> bool {
    matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_secrets_and_what_makes_programs_run_is_told_by_its_name() {
        let sensitive = Sensitive::new();
        for path in [
            ".env",
            "a/.env.local",
            ".ENV",
            "config/.e\u{200c}nv",
            "deploy/id_rsa.pub",
            "x/secrets.yaml",
            "secrets/a/b",
            "certs/server.PEM",
            ".git/config",
        ] {
            assert!(sensitive.is_read(path) && sensitive.is_write(path), "{path}");
        }
        for path in [
            ".git/hooks/pre-commit",
            ".gbs/skills/x/SKILL.md",
            ".mcp.json",
            ".claude/settings.json",
            "sub/AGENTS.md",
            "package.json",
            "Makefile",
            "tools/run.sh",
            "vite.config.ts",
            "node_modules/a/index.js",
            ".eslintrc.json",
        ] {
            assert!(!sensitive.is_read(path) && sensitive.is_write(path), "{path}");
        }
        for path in
            ["src/main.rs", "README.md", "environment.ts", "keys.rs", "docs/secret-santa.md", "a.sh.md"]
        {
            assert!(!sensitive.is_write(path), "{path}");
        }
    }
}
