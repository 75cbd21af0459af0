//! Skills that servers offer (SEP-2640): listed, asked for, and read file by file, each checked on every read.

use base64::Engine as _;
use serde_json::Value;

use crate::client::{Client, object};
use crate::error::Error;
use crate::fingerprint::Fingerprint;
use crate::protocol::{Item as _, ListKind, Listing, Problem, ProblemCode, ServedFiles, ServedSkill};

/// The extension's name among a server's capabilities.
const EXTENSION: &str = "io.modelcontextprotocol/skills";

impl Client {
    /// Whether the server declares the skills extension.
    pub fn serves_skills(&self) -> bool {
        let extensions = self.info().capabilities.as_object().get("extensions");
        extensions.and_then(|all| all.get(EXTENSION)).is_some_and(Value::is_object)
    }

    /// Lists the skills of the server, all pages of them. Nothing of their files is read: that is for when one is loaded.
    ///
    /// A server that does not declare the extension has none, and is not asked. A bad entry never costs the rest: see
    /// [`Listing::problems`].
    ///
    /// # Errors
    /// If not even the first page could be had.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request.
    pub async fn list_skills(&self) -> Result<Listing<ServedSkill>, Error> {
        if !self.serves_skills() {
            let message = format!("{} does not declare skills, so it was not asked for any", self.label());
            let mut listing = Listing::default();
            listing.problems.push(Problem::new(ProblemCode::NotDeclared, message));
            return Ok(listing);
        }
        self.list_all("skills/list", ListKind::Resources, &["skills", "nextCursor"]).await
    }

    /// Asks for one skill, which need not be among the listed ones.
    ///
    /// # Errors
    /// If there is no answer, it is an error, or what is described cannot be checked.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request.
    pub async fn get_skill(&self, uri: &str) -> Result<ServedSkill, Error> {
        const METHOD: &str = "skills/get";
        let mut result = self.request_object(METHOD, &object([("uri", uri.into())])).await?;
        let skill = match result.remove("skill") {
            Some(Value::Object(entry)) => ServedSkill::from_object(entry),
            _ => Err("there is no skill in it".to_owned()),
        };
        let skill = skill.map_err(|reason| self.invalid(METHOD, reason))?;
        if skill.uri == uri { Ok(skill) } else { Err(self.invalid(METHOD, "it is another skill".to_owned())) }
    }

    /// Reads one file of a skill, and checks its length and digest: bytes that are not the listed ones are never given out.
    ///
    /// The front matter of `SKILL.md` has to be compared with the entry's by whoever parses it.
    ///
    /// # Errors
    /// If the skill does not list the file, there is no answer, or the file is not what is listed.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request.
    pub async fn read_skill_file(&self, skill: &ServedSkill, uri: &str) -> Result<Vec<u8>, Error> {
        const METHOD: &str = "resources/read";
        let Some(listed) = skill.file(uri) else {
            let reason = match skill.files {
                ServedFiles::Dynamic => {
                    "its files are made when they are asked for, so that none can be checked"
                }
                _ => "the skill does not list this file",
            };
            return Err(self.not_sent(METHOD, reason));
        };
        let result = self.read_resource(uri).await?;
        let mut contents = result.contents.into_iter().filter(|one| one.uri.is_empty() || one.uri == uri);
        let (Some(one), None) = (contents.next(), contents.next()) else {
            return Err(self.invalid(METHOD, format!("it is not one content with the address {uri}")));
        };
        let bytes = match (one.text, one.blob) {
            (Some(text), _) => text.into_bytes(),
            (None, Some(blob)) => base64::engine::general_purpose::STANDARD
                .decode(blob)
                .map_err(|error| self.invalid(METHOD, format!("its base64 is broken: {error}")))?,
            (None, None) => {
                return Err(self.invalid(METHOD, "there is neither text nor data in it".to_owned()));
            }
        };
        let checked = listed.verify(&bytes);
        checked.map_err(|difference| {
            self.invalid(METHOD, format!("{uri} is not the listed file: {difference}"))
        })?;
        Ok(bytes)
    }

    fn invalid(&self, method: &str, reason: String) -> Error {
        Error::InvalidAnswer { server: self.label().to_owned(), method: method.to_owned(), reason }
    }
}

impl Fingerprint {
    /// The fingerprint of a server's skills: of the host's name for the server, and of the addresses and digests of all
    /// files. Consent that is stored under it ends when a file changes.
    ///
    /// A skill whose files are made when they are asked for counts by its address alone.
    #[must_use]
    pub fn of_served<'a>(server: &str, skills: impl IntoIterator<Item = &'a ServedSkill>) -> Self {
        let mut files: Vec<(&str, &str)> = Vec::new();
        for skill in skills {
            match &skill.files {
                ServedFiles::Listed(listed) => {
                    files.extend(listed.iter().map(|file| (file.uri.as_str(), file.digest.as_str())));
                }
                ServedFiles::Dynamic => files.push((&skill.uri, "dynamic")),
            }
        }
        files.sort_unstable();
        files.dedup();
        Self::of_value(&serde_json::json!(["haversack-served/1", server, files]))
    }
}
