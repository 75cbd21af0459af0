//! A skill's file as a whole, for hosts that read fields of their own.

use crate::digest;
use crate::load::read::read_document;
use crate::load::{Caller, LoadError, Reader};

impl Reader {
    /// The whole `SKILL.md` of a skill for the model, front matter and all, for hosts that read fields which this crate
    /// does not know. Nothing is noted: no model has seen it. Bytes that are no UTF-8 are replaced.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn source(&self, name: &str) -> Result<String, LoadError> {
        let usable = self.find(name, Caller::Model)?;
        let what = || format!("the skill {}", usable.skill.name());
        let bytes = read_document(usable.skill.folder(), self.snapshot.limits().file_bytes)
            .map_err(|error| error.of(&what()))?;
        if usable.digest.is_some_and(|digest| digest.document != digest::hash(&bytes)) {
            return Err(LoadError::Changed { what: what() });
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}
