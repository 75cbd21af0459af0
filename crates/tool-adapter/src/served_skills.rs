//! Skills that MCP servers offer (SEP-2640), beside those of folders: another origin under names of its own.
//!
//! - **Names** are `server:skill`, so a served skill never stands before a local one, and no name changes because another
//!   server was added. Skills of one server that share a name are all called by their folder: `server:folder/skill`.
//! - **Nothing is fetched ahead of need.** What a server lists is enough for the catalogue; a file is read when the model
//!   asks for it.
//! - **What is read is what was agreed to.** An offer is frozen with the digests of all its files: see
//!   [`ServedOffer::fingerprint`]. Each read compares length and digest, and `SKILL.md` its front matter with what was
//!   listed, field by field. What differs is an error and never shown.
//! - **Nothing is granted.** `allowed-tools` and whatever else a served skill asks for has no effect.

mod names;
mod read;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haversack_agent_core::prelude::*;
use haversack_mcp_client::Client;
use haversack_mcp_client::fingerprint::Fingerprint;
use haversack_mcp_client::protocol::{ServedFiles, ServedSkill};
use haversack_skills::{CatalogueOptions, Limits, text};
use serde_json::Value;

/// Skills that one search names at most, beside those of the folders.
const HITS: usize = 10;
/// Skills that an error names.
const NAMED: usize = 50;
/// Skills that a question names; the rest is counted.
const ASKED: usize = 100;

/// The skills that one server lists, nothing of them read yet.
#[derive(Clone, Debug)]
pub struct ServedOffer {
    server: Arc<str>,
    client: Client,
    skills: Vec<(String, ServedSkill)>,
    refused: Vec<RefusedSkill>,
}

/// A skill of a server that is not offered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedSkill {
    /// Its name, as it would be.
    pub name: String,
    /// Why, as a clause.
    pub reason: &'static str,
}

impl ServedOffer {
    /// What a server lists, under the name that the host has for it.
    pub fn new(server: impl Into<Arc<str>>, client: Client, listed: Vec<ServedSkill>) -> Self {
        let server = server.into();
        let (mut skills, mut refused) = (Vec::new(), Vec::new());
        let mut before = String::new();
        for (name, skill) in names::named(&server, listed) {
            let reason = match &skill.files {
                _ if name == before => Some(names::CLASH),
                ServedFiles::Dynamic => {
                    Some("its files are made when they are asked for, so that nobody can agree to them")
                }
                _ if skill.frontmatter.get("disable-model-invocation") == Some(&Value::Bool(true)) => {
                    Some("it is for the user to invoke")
                }
                _ => None,
            };
            before.clone_from(&name);
            match reason {
                None => skills.push((name, skill)),
                Some(reason) => refused.push(RefusedSkill { name, reason }),
            }
        }
        Self { server, client, skills, refused }
    }

    /// The host's name for the server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The public names of its skills, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.skills.iter().map(|(name, _)| name.as_str())
    }

    /// What is not offered, and why.
    pub fn refused(&self) -> &[RefusedSkill] {
        &self.refused
    }

    /// Whether there is nothing to offer.
    pub fn is_empty(&self) -> bool {
        self.skills.is_empty()
    }

    /// What an approval is bound to: the host's name for the server, and the addresses and digests of all files.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of_served(&self.server, self.skills.iter().map(|(_, skill)| skill))
    }

    /// The question to a person, in lines; what cannot be seen is left out of names and descriptions.
    pub fn question(&self) -> String {
        let count = self.skills.len();
        let skills = if count == 1 { "skill" } else { "skills" };
        let server = text::line(&self.server);
        let mut question = format!(
            "The MCP server {server} offers {count} {skills}: texts that tell the model what to do. Use them, as they are now?"
        );
        for (name, skill) in self.skills.iter().take(ASKED) {
            let files = match &skill.files {
                ServedFiles::Listed(files) => files.len(),
                _ => 0,
            };
            let (name, description) = (text::line(name), shortened(skill.description(), 240));
            question.push_str(&format!("\n- {name} ({files} files): {description}"));
        }
        if count > ASKED {
            question.push_str(&format!("\n… and {} more", count - ASKED));
        }
        question
    }
}

/// The served skills of one run: those of all servers that somebody agreed to. The list is frozen; files are read from
/// the servers when they are asked for.
pub struct ServedSkills {
    skills: Vec<Offered>,
    clashes: Vec<(Arc<str>, RefusedSkill)>,
    limits: Limits,
    /// Pages that are in context.
    shown: Mutex<HashMap<String, Vec<usize>>>,
}

struct Offered {
    name: String,
    server: Arc<str>,
    client: Client,
    skill: ServedSkill,
}

impl ServedSkills {
    /// The skills of these offers, each of which somebody agreed to. Pages and files are bounded as those of folders.
    pub fn new(offers: impl IntoIterator<Item = ServedOffer>, limits: Limits) -> Self {
        let offered = |offer: ServedOffer| {
            let ServedOffer { server, client, skills, .. } = offer;
            skills.into_iter().map(move |(name, skill)| Offered {
                name,
                server: Arc::clone(&server),
                client: client.clone(),
                skill,
            })
        };
        let mut skills: Vec<_> = offers.into_iter().flat_map(offered).collect();
        skills.sort_by(|a, b| a.name.cmp(&b.name));
        // Only possible where the name of a server has a colon in it: the one that sorts first counts.
        let mut clashes = Vec::new();
        skills.dedup_by(|later, first| {
            let clash = later.name == first.name;
            if clash {
                let refused = RefusedSkill { name: later.name.clone(), reason: names::CLASH };
                clashes.push((Arc::clone(&later.server), refused));
            }
            clash
        });
        Self { skills, clashes, limits, shown: Mutex::default() }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.skills.is_empty()
    }

    /// The public names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.skills.iter().map(|offered| offered.name.as_str())
    }

    /// The server that offers a skill.
    pub fn server(&self, name: &str) -> Option<&str> {
        self.find(name).map(|offered| &*offered.server)
    }

    /// What was left out because another server's skill has the same public name, with its server.
    pub fn clashes(&self) -> impl Iterator<Item = (&str, &RefusedSkill)> {
        self.clashes.iter().map(|(server, refused)| (&**server, refused))
    }

    /// The section for the system prompt, with the bounds of the catalogue of local skills; `None` when there is no
    /// skill, so that nothing is left of the feature. Also the names that it has no room for.
    pub fn section(&self, options: &CatalogueOptions) -> (Option<String>, Vec<String>) {
        if self.skills.is_empty() {
            return (None, Vec::new());
        }
        let tool = &options.tool;
        let mut section = format!(
            "# Skills of MCP servers\n\nThey come from servers, not from the user. Load one with `{tool}` by its whole name."
        );
        section.push('\n');
        for offered in self.skills.iter().take(options.lines) {
            let description = shortened(offered.skill.description(), options.description_chars);
            section.push_str(&format!("\n- {}: {description}", text::line(&offered.name)));
        }
        let omitted: Vec<_> =
            self.skills.iter().skip(options.lines).map(|offered| offered.name.clone()).collect();
        if !omitted.is_empty() {
            let count = omitted.len();
            section.push_str(&format!("\n… and {count} more: find them with the `search` of `{tool}`."));
        }
        (Some(section), omitted)
    }

    /// Whether a name is one of a served skill.
    pub fn contains(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// A page of a skill's body, from 1. A page that is in context is answered by a pointer.
    ///
    /// # Errors
    ///
    /// When there is no such skill or page, the server does not answer, or what it gives is not what was agreed to.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the request.
    pub async fn load(&self, name: &str, page: usize) -> Result<String, ToolError> {
        let offered = self.find(name).ok_or_else(|| self.unknown(name))?;
        if self.shown().get(name).is_some_and(|pages| pages.contains(&page)) {
            // Its bytes cannot have changed: another digest would be no answer at all.
            return Ok(format!(
                "Page {page} of the skill {name} is in this conversation already. Read it there."
            ));
        }
        let body = read::body(&offered.client, &offered.skill).await.map_err(|error| failed(name, &error))?;
        let shown = read::Shown { name, server: &offered.server, path: None };
        let text = shown.page(&body, page, self.limits.body_page_chars)?;
        self.shown().entry(name.to_owned()).or_default().push(page);
        Ok(text)
    }

    /// A page of a file that a skill lists, named relative to its folder.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load), and when the file is no text or too large.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the request.
    pub async fn resource(&self, name: &str, path: &str, page: usize) -> Result<String, ToolError> {
        let offered = self.find(name).ok_or_else(|| self.unknown(name))?;
        let uri = format!("{}/{path}", offered.skill.folder());
        let Some(file) = offered.skill.file(&uri) else {
            return Err(ToolError::invalid_arguments(format!(
                "the skill {name} lists no file {path:?}; `.` as `resource` lists what there is"
            )));
        };
        if file.size > self.limits.resource_bytes {
            let size = file.size;
            return Err(ToolError::invalid_arguments(format!("{path} is too large: it has {size} bytes")));
        }
        let text = read::text(&offered.client, &offered.skill, &uri).await;
        let text = text.map_err(|error| failed(name, &error))?;
        let shown = read::Shown { name, server: &offered.server, path: Some(path) };
        shown.page(&text, page, self.limits.resource_page_chars)
    }

    /// The files that a skill lists, as the model is to see them: a path and a size a line.
    ///
    /// # Errors
    ///
    /// When there is no such skill.
    pub fn files(&self, name: &str) -> Result<String, ToolError> {
        let offered = self.find(name).ok_or_else(|| self.unknown(name))?;
        let folder = format!("{}/", offered.skill.folder());
        let ServedFiles::Listed(files) = &offered.skill.files else { return Ok(String::new()) };
        let mut lines: Vec<String> = files
            .iter()
            .filter_map(|file| {
                let path = file.uri.strip_prefix(&folder).filter(|path| *path != "SKILL.md")?;
                Some(format!("{} ({} bytes)", text::line(path), file.size))
            })
            .collect();
        lines.sort_unstable();
        if lines.is_empty() {
            return Ok(format!("The skill {name} has no other files."));
        }
        Ok(lines.join("\n"))
    }

    /// Lines for the skills whose name or description has a word of the query, best first; empty for none.
    pub fn search(&self, query: &str) -> Vec<String> {
        let words: Vec<String> = query.split_whitespace().take(32).map(str::to_lowercase).collect();
        let score = |offered: &Offered| {
            let (name, description) =
                (offered.name.to_lowercase(), offered.skill.description().to_lowercase());
            let of = |word: &String| {
                3 * usize::from(name.contains(word)) + usize::from(description.contains(word))
            };
            words.iter().map(of).sum::<usize>()
        };
        let mut hits: Vec<_> = self
            .skills
            .iter()
            .map(|offered| (score(offered), offered))
            .filter(|(score, _)| *score > 0)
            .collect();
        hits.sort_by(|(a, _), (b, _)| b.cmp(a));
        let line = |(_, offered): (usize, &Offered)| {
            format!("- {}: {}", text::line(&offered.name), shortened(offered.skill.description(), 240))
        };
        hits.into_iter().take(HITS).map(line).collect()
    }

    /// Says that no page is in context any more, as after a compaction.
    pub fn forget_all(&self) {
        self.shown().clear();
    }

    fn find(&self, name: &str) -> Option<&Offered> {
        let at = self.skills.binary_search_by(|offered| offered.name.as_str().cmp(name)).ok()?;
        self.skills.get(at)
    }

    fn shown(&self) -> MutexGuard<'_, HashMap<String, Vec<usize>>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unknown(&self, name: &str) -> ToolError {
        let names: Vec<_> = self.names().take(NAMED).map(text::line).collect();
        ToolError::invalid_arguments(format!(
            "no server offers a skill {name:?}; there are: {}",
            names.join(", ")
        ))
    }
}

impl fmt::Debug for ServedSkills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

fn failed(name: &str, error: &read::ReadError) -> ToolError {
    ToolError::new(ToolErrorKind::Failed, format!("the skill {name} cannot be used: {error}"))
}

/// One line of at most so many characters.
fn shortened(description: &str, chars: usize) -> String {
    let line = text::line(description);
    if line.chars().count() <= chars {
        return line;
    }
    let mut short: String = line.chars().take(chars.saturating_sub(1)).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests;
