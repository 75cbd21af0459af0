//! Skills that dependencies bring along: the `gbsSkills` field of their `package.json`.
//!
//! The root manifest's `dependencies` and `devDependencies` are looked at, and for each the manifest in `node_modules`.
//! The package's folder may be a link (pnpm keeps packages elsewhere), but a skill must lie inside the package: each
//! entry is opened part by part, as a resource is.

use std::path::{Path, PathBuf};

use indexmap::IndexSet;
use serde_json::Value;

use crate::folder::{Folder, Kind, Stamp};
use crate::jail::{self, Jail, JailError};
use crate::limits::Limits;
use crate::problem::{Bound, BoundHit, SkipReason, Skipped};
use crate::roots::Root;
use crate::skill::Source;

/// The field of a package's `package.json` that lists its skills.
pub const FIELD: &str = "gbsSkills";
const MANIFEST: &str = "package.json";
/// The longest name npm allows a package.
const NAME_BYTES: usize = 214;

/// What the packages of a project gave.
#[derive(Debug, Default)]
pub(crate) struct Packages {
    pub(crate) roots: Vec<Root>,
    pub(crate) skipped: Vec<Skipped>,
    pub(crate) bounds: Vec<BoundHit>,
    /// The manifests that were looked at, as they were.
    pub(crate) seen: Vec<(PathBuf, Option<Stamp>)>,
}

/// Finds the skills of a project's direct dependencies. The later dependency has the higher precedence.
pub(crate) fn find(project: &Path, limits: &Limits) -> Packages {
    let mut packages = Packages::default();
    let Some(manifest) = packages.manifest(project, limits) else { return packages };
    let mut names = IndexSet::new();
    for field in ["dependencies", "devDependencies"] {
        names.extend(
            manifest.get(field).and_then(Value::as_object).into_iter().flat_map(|map| map.keys().cloned()),
        );
    }
    if names.len() > limits.dependencies {
        let manifest = project.join(MANIFEST);
        packages.bounds.push(BoundHit::new(
            Bound::Dependencies,
            limits.dependencies,
            project.into(),
            manifest,
        ));
    }
    let names: Vec<_> = names.into_iter().take(limits.dependencies).collect();
    for name in names.iter().rev().filter(|name| is_name(name)) {
        packages.add(&project.join("node_modules").join(name), name, limits);
    }
    packages
}

/// `name` or `@scope/name`, with nothing in it that a path would take for more.
fn is_name(name: &str) -> bool {
    let plain = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && !part.contains(['/', '\\', ':', '\0'])
            && !part.starts_with('@')
    };
    let is_name = match name.strip_prefix('@').map(|scoped| scoped.split_once('/')) {
        Some(Some((scope, rest))) => plain(scope) && plain(rest),
        Some(None) => false,
        None => plain(name),
    };
    is_name && name.len() <= NAME_BYTES
}

impl Packages {
    /// Reads a folder's `package.json`; one that is not there is no fault.
    fn manifest(&mut self, folder: &Path, limits: &Limits) -> Option<Value> {
        let path = folder.join(MANIFEST);
        let opened = Folder::open(folder).and_then(|open| open.file(Path::new(MANIFEST), true)).ok();
        self.seen.push((path.clone(), opened.as_ref().map(|(_, facts)| facts.stamp)));
        let (mut file, facts) = opened?;
        let bad = if facts.kind != Kind::File {
            format!("{MANIFEST} is not a file")
        } else if facts.stamp.bytes > limits.file_bytes {
            format!(
                "{} bytes are more than the {} a {MANIFEST} may have",
                facts.stamp.bytes, limits.file_bytes
            )
        } else {
            let bytes = jail::read(&mut file, limits.file_bytes, facts.stamp.bytes)
                .map_err(|error| error.to_string());
            match bytes.and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| error.to_string())) {
                Ok(value) => return Some(value),
                Err(why) => why,
            }
        };
        self.skipped.push(Skipped::new(path, SkipReason::BadManifest(bad)));
        None
    }

    fn add(&mut self, folder: &Path, name: &str, limits: &Limits) {
        let Some(manifest) = self.manifest(folder, limits) else { return };
        let Some(listed) = manifest.get(FIELD) else { return };
        let Some(items) = listed.as_array() else {
            self.bad(folder, format!("{FIELD} is not a list of paths"));
            return;
        };
        if items.len() > limits.package_skills {
            let at = folder.join(MANIFEST);
            self.bounds.push(BoundHit::new(Bound::PackageSkills, limits.package_skills, folder.into(), at));
        }
        let jail = match Jail::open(folder) {
            Ok(jail) => jail,
            Err(error) => return self.bad(folder, error.to_string()),
        };
        for item in items.iter().take(limits.package_skills) {
            match item.as_str().map(|path| (path, jail.folder(path))) {
                Some((path, Ok(_))) => {
                    let path = path.replace('\\', "/");
                    let path = path.split('/').filter(|part| !part.is_empty() && *part != ".");
                    let path = path.fold(folder.to_path_buf(), |folder, part| folder.join(part));
                    self.roots.push(Root::one_skill(path, Source::Package, name));
                }
                Some((path, Err(error))) => self.bad(folder, format!("{path:?} {}", why(&error))),
                None => self.bad(folder, "it is not a text".to_owned()),
            }
        }
    }

    fn bad(&mut self, folder: &Path, why: String) {
        self.skipped.push(Skipped::new(folder.join(MANIFEST), SkipReason::BadPackageSkill(why)));
    }
}

fn why(error: &JailError) -> String {
    match error {
        JailError::Shape => "must be relative and inside the package".to_owned(),
        JailError::Outside | JailError::TooLong => "leads out of the package by a link".to_owned(),
        JailError::Missing | JailError::NotAFile => "is no folder".to_owned(),
        JailError::Foreign(name) => format!("lies in {name}"),
        JailError::Io(error) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_name_is_one_or_two_plain_parts() {
        for name in ["a", "a-b.c", "@scope/a", "A_1"] {
            assert!(is_name(name), "{name}");
        }
        for name in [
            "",
            ".",
            "..",
            ".bin",
            "a/b",
            "@scope",
            "@/a",
            "@scope/",
            "@scope/../x",
            "@scope/a/b",
            "/etc",
            r"a\b",
            "C:x",
        ] {
            assert!(!is_name(name), "{name}");
        }
    }
}
