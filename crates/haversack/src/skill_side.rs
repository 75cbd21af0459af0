//! Skills: found again for each run, asked about where they belong to the repository.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use haversack_agent_core::tool_context::Tool;
use haversack_skills::consent::{
    Consent as Settled, ConsentStore, Decision, JsonStore, MemoryStore, Question,
};
use haversack_skills::{
    Available, Catalogue, CatalogueOptions, Filter, Limits, Reader, Registry, Roots, Snapshot,
};

use crate::consent::{Consent, ConsentQuestion, ConsentSubject};
use crate::report::{Note, Report, SkillReport, SkillState};

/// The skills of a project, kept between runs.
pub(crate) struct SkillSide {
    roots: Roots,
    limits: Limits,
    catalogue: CatalogueOptions,
    workspace: PathBuf,
    registry: Mutex<Option<Registry>>,
    store: Box<dyn ConsentStore + Send + Sync>,
}

/// The skills of one run.
pub(crate) struct RunSkills {
    pub(crate) reader: Arc<Reader>,
    pub(crate) catalogue: Catalogue,
    pub(crate) tools: Vec<Arc<dyn Tool>>,
}

/// Skills that are no texts, made tools: gives back the skills that are left, the tools, and what to say in the report
/// once the skills have their lines there.
pub(crate) struct Sorted {
    pub(crate) texts: Snapshot,
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    pub(crate) tell: Box<dyn FnOnce(&mut Report)>,
}

impl SkillSide {
    pub(crate) fn new(
        roots: Roots,
        limits: Limits,
        catalogue: CatalogueOptions,
        workspace: PathBuf,
        store: Option<&Path>,
    ) -> Self {
        let store: Box<dyn ConsentStore + Send + Sync> = match store {
            Some(folder) => Box::new(JsonStore::new(folder.join("skills.json"))),
            None => Box::new(MemoryStore::new()),
        };
        Self { roots, limits, catalogue, workspace, registry: Mutex::new(None), store }
    }

    /// Looks at the folders, asks what has to be asked, and freezes what may be used.
    pub(crate) async fn prepare(
        &self,
        consent: Option<&dyn Consent>,
        available: Available,
        open_files: &[&str],
        sort: &(dyn Fn(Snapshot, &mut Report) -> Sorted + Sync),
        report: &mut Report,
    ) -> RunSkills {
        let question = self.with_registry(|registry| registry.question(&self.workspace));
        let settled = match question {
            None => Settled::not_needed(),
            Some(question) => self.settle(&question, consent, report).await,
        };
        let filter = Filter::new(settled).with_available(available);
        self.with_registry(|registry| {
            let Sorted { texts, tools, tell } = sort(registry.snapshot(&filter), report);
            let catalogue = texts.catalogue(&self.catalogue, open_files);
            describe(registry, &texts, &catalogue, report);
            tell(report);
            let reader = Reader::new(texts);
            reader.note_offered(&catalogue);
            RunSkills { reader: Arc::new(reader), catalogue, tools }
        })
    }

    /// The bounds of pages and files.
    #[cfg(feature = "mcp")]
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// How the list of skills is written.
    #[cfg(feature = "mcp")]
    pub(crate) fn catalogue_options(&self) -> &CatalogueOptions {
        &self.catalogue
    }

    /// Forgets what was read and answered, so that the next run looks and asks anew.
    pub(crate) fn reload(&self) -> Option<Note> {
        *self.registry.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let workspace = self.workspace.to_string_lossy();
        self.store.forget(&workspace).err().map(|error| Note::new("skill consent", error.to_string()))
    }

    async fn settle(
        &self,
        question: &Question,
        consent: Option<&dyn Consent>,
        report: &mut Report,
    ) -> Settled {
        match question.look_up(&*self.store) {
            Ok(Some(settled)) => return settled,
            Ok(None) => {}
            Err(error) => report.notes.push(Note::new("skill consent", error.to_string())),
        }
        let Some(consent) = consent else { return Settled::withheld() };
        let asked =
            ConsentQuestion::new(ConsentSubject::Skills, question.text(), question.fingerprint().to_string());
        let decision = match consent.ask(asked).await {
            None => return Settled::withheld(),
            Some(true) => Decision::Allowed,
            Some(false) => Decision::Refused,
        };
        question.record(&*self.store, decision).unwrap_or_else(|error| {
            report.notes.push(Note::new("skill consent", format!("the answer counts for now only: {error}")));
            question.decide(decision)
        })
    }

    /// Works on a registry that is up to date with the disk.
    fn with_registry<T>(&self, work: impl FnOnce(&mut Registry) -> T) -> T {
        let mut registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *registry {
            Some(registry) => {
                registry.rescan();
                work(registry)
            }
            none => work(none.insert(Registry::scan(&self.roots, &self.limits))),
        }
    }
}

fn describe(registry: &Registry, snapshot: &Snapshot, catalogue: &Catalogue, report: &mut Report) {
    let origin = |skill: &haversack_skills::Skill| registry.origin(skill).label.to_string();
    for skill in registry.skills() {
        let withheld = snapshot.withheld().iter().find(|w| w.name == skill.name());
        let state = match withheld {
            Some(withheld) => SkillState::Withheld(withheld.reason.to_string()),
            None if catalogue.shown.iter().any(|shown| shown.name == skill.name()) => SkillState::Offered,
            None if skill.is_for_model() => SkillState::Omitted,
            None => SkillState::Withheld("it is for the user to invoke".to_owned()),
        };
        report.skills.push(SkillReport { name: skill.name().to_owned(), origin: origin(skill), state });
    }
    for skill in registry.invalid() {
        let why: Vec<String> =
            skill.problems().iter().map(|p| format!("line {}: {}", p.line, p.message)).collect();
        let why = why.join("; ");
        report.notes.push(Note::new(skill.file().display().to_string(), why.clone()));
        let state = SkillState::Invalid(why);
        report.skills.push(SkillReport { name: skill.name().to_owned(), origin: origin(skill), state });
    }
    for shadowed in registry.shadowed() {
        let by = shadowed.by.file();
        let message = format!("not used: {} comes first ({})", by.display(), shadowed.reason.as_str());
        report.notes.push(Note::new(shadowed.skill.file().display().to_string(), message));
        let name = shadowed.skill.name().to_owned();
        report.skills.push(SkillReport {
            name,
            origin: origin(&shadowed.skill),
            state: SkillState::Shadowed,
        });
    }
    for skipped in registry.skipped() {
        report.notes.push(Note::new("skills", skipped.to_string()));
    }
    for hit in registry.bounds_hit() {
        report.notes.push(Note::new("skills", hit.to_string()));
    }
    report.skills.sort_by(|a, b| a.name.cmp(&b.name));
}
