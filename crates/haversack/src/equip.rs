//! One agent for each run, equipped with what there is now.

use std::fmt;
#[cfg(feature = "skills")]
use std::path::Path;
#[cfg(feature = "mcp")]
use std::path::PathBuf;
use std::sync::Arc;

use haversack_agent_core::agent::{Agent, AgentBuilder};
use haversack_agent_core::clock::TokioClock;
#[cfg(feature = "skills")]
use haversack_agent_core::compaction::Compaction;
use haversack_agent_core::message::{Block, Message};
use haversack_agent_core::model::{Model, PromptSection};
use haversack_agent_core::run::Run;
use haversack_agent_core::session::Session;
use haversack_agent_core::tool_context::Tool;
#[cfg(all(feature = "skills", feature = "mcp"))]
use haversack_tool_adapter::served_skills::ServedSkills;
#[cfg(feature = "skills")]
use haversack_tool_adapter::skill_tool::{SkillTool, protected_skills};

use crate::builder::HaversackBuilder;
use crate::error::Error;
use crate::report::{Note, Report, SectionCost};

/// A model with everything that a project and its host give to it. Clones stand for the same one.
#[derive(Clone)]
pub struct Haversack(Arc<Parts>);

struct Parts {
    host: HaversackBuilder,
    #[cfg(feature = "skills")]
    skills: crate::skill_side::SkillSide,
    #[cfg(feature = "skill-modes")]
    modes: Option<crate::skill_modes::ModeSide>,
    #[cfg(feature = "mcp")]
    servers: crate::server_side::ServerSide,
}

impl fmt::Debug for Haversack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Haversack").field("host", &self.0.host).finish_non_exhaustive()
    }
}

const _: () = {
    const fn shareable<T: Clone + Send + Sync + 'static>() {}
    shareable::<Haversack>();
};

impl Haversack {
    /// Begins to put one together.
    pub fn builder(model: impl Model) -> HaversackBuilder {
        HaversackBuilder::new(model)
    }

    #[cfg_attr(
        not(any(feature = "skills", feature = "mcp")),
        expect(unused_mut, unused_variables, reason = "both sides are switched off")
    )]
    pub(crate) fn new(mut host: HaversackBuilder) -> Self {
        // A host without a project starts its servers where it runs itself.
        let root = host.project.clone().unwrap_or_else(|| ".".into());
        let root = std::path::absolute(&root).unwrap_or(root);
        let root = root.canonicalize().unwrap_or(root);
        Self(Arc::new(Parts {
            #[cfg(feature = "skills")]
            skills: skill_side(&mut host, &root),
            #[cfg(feature = "skill-modes")]
            modes: crate::skill_modes::ModeSide::of(&mut host),
            #[cfg(feature = "mcp")]
            servers: server_side(&mut host, root),
            host,
        }))
    }

    /// Equips an agent for the next run: looks for skills, asks for consent where there is no answer yet, starts the
    /// servers that are wanted, and freezes prompt and tools.
    ///
    /// Folders are read with blocking calls, which takes milliseconds where little has changed.
    ///
    /// # Errors
    ///
    /// [`Error`] for what only the host can mend. What is broken in the project is in the report, and the agent goes
    /// without it.
    ///
    /// # Cancel safety
    ///
    /// Dropped, servers that were starting go on, and the next call finds them; a question counts as unanswered.
    pub async fn prepare(&self) -> Result<Equipped, Error> {
        self.prepare_for(&[]).await
    }

    /// The same, with the files that the user has open, relative to the project with `/`: skills for them come first,
    /// and the first message of the run says so.
    ///
    /// # Errors
    ///
    /// As [`prepare`](Self::prepare).
    ///
    /// # Cancel safety
    ///
    /// As [`prepare`](Self::prepare).
    pub async fn prepare_for(&self, open_files: &[&str]) -> Result<Equipped, Error> {
        let host = &self.0.host;
        let mut gathered = Gathered {
            tools: host.tools.clone(),
            sections: host.sections.clone(),
            report: Report::default(),
            hints: Vec::new(),
            #[cfg(feature = "skills")]
            reader: None,
            #[cfg(all(feature = "skills", feature = "mcp"))]
            served: None,
            #[cfg(all(feature = "skills", feature = "mcp"))]
            about_served: None,
        };
        // Servers first, since a skill may require one; their section of the prompt stands behind that of the skills.
        let about_servers = self.add_servers(&mut gathered).await?;
        self.add_skills(&mut gathered, open_files).await;
        gathered.sections.extend(about_servers);
        gathered.report.sections = gathered.sections.iter().map(SectionCost::of).collect();
        let builder = self.agent(std::mem::take(&mut gathered.tools), std::mem::take(&mut gathered.sections));
        let builder = gathered.protect(builder);
        let agent = self.configured(builder).build().map_err(Error::Agent)?;
        gathered.report.tools = agent.tools().iter().map(|spec| Arc::clone(&spec.name)).collect();
        let hint = (!gathered.hints.is_empty()).then(|| gathered.hints.join("\n"));
        Ok(Equipped {
            agent,
            report: gathered.report,
            hint,
            #[cfg(feature = "skills")]
            reader: gathered.reader,
            #[cfg(all(feature = "skills", feature = "mcp"))]
            served: gathered.served,
        })
    }

    #[cfg(feature = "mcp")]
    async fn add_servers(&self, gathered: &mut Gathered) -> Result<Option<PromptSection>, Error> {
        let reserved: Vec<_> = gathered.tools.iter().map(|tool| Arc::clone(&tool.spec().name)).collect();
        let consent = self.0.host.consent.as_deref();
        let made = self.0.servers.prepare(consent, &reserved, &mut gathered.report).await?;
        gathered.tools.extend(made.tools);
        Ok(made.section.map(|text| PromptSection::new("mcp-servers", text)))
    }

    #[cfg(not(feature = "mcp"))]
    async fn add_servers(&self, _: &mut Gathered) -> Result<Option<PromptSection>, Error> {
        Ok(None)
    }

    #[cfg(feature = "skills")]
    async fn add_skills(&self, gathered: &mut Gathered, open_files: &[&str]) {
        let names = gathered.tools.iter().map(|tool| tool.spec().name.to_string());
        let available = haversack_skills::Available::nothing().with_tools(names);
        #[cfg(feature = "mcp")]
        let available = available.with_servers(self.0.servers.connected());
        let consent = self.0.host.consent.as_deref();
        let tools = gathered.tools.clone();
        let sort = |snapshot, report: &mut Report| self.sort_skills(snapshot, &tools, report);
        let found = self.0.skills.prepare(consent, available, open_files, &sort, &mut gathered.report).await;
        gathered.tools.extend(found.tools);
        #[cfg(feature = "mcp")]
        let tool = SkillTool::with_served(Arc::clone(&found.reader), self.add_served_skills(gathered).await);
        #[cfg(not(feature = "mcp"))]
        let tool = SkillTool::for_reader(Arc::clone(&found.reader));
        gathered.tools.extend(tool.map(|tool| Arc::new(tool) as Arc<dyn Tool>));
        if !found.catalogue.text.is_empty() {
            gathered.sections.push(PromptSection::new("skills", found.catalogue.text));
        }
        #[cfg(feature = "mcp")]
        gathered.sections.extend(gathered.about_served.take());
        gathered.hints.extend(open_files.iter().filter_map(|file| found.reader.snapshot().hint(file)));
        gathered.reader = Some(found.reader);
    }

    /// The skills of servers; their section waits for that of the local ones.
    #[cfg(all(feature = "skills", feature = "mcp"))]
    async fn add_served_skills(&self, gathered: &mut Gathered) -> Arc<ServedSkills> {
        let host = &self.0.host;
        let mut offers = Vec::new();
        if host.served_skills {
            let consent = host.consent.as_deref();
            offers = crate::served_side::agreed(&self.0.servers, consent, &mut gathered.report).await;
        }
        let served = Arc::new(ServedSkills::new(offers, self.0.skills.limits().clone()));
        let (section, omitted) = served.section(self.0.skills.catalogue_options());
        crate::served_side::describe(&served, &omitted, &mut gathered.report);
        gathered.about_served = section.map(|text| PromptSection::new("served-skills", text));
        gathered.served = Some(Arc::clone(&served));
        served
    }

    /// Without modes all skills are texts.
    #[cfg(feature = "skills")]
    #[cfg_attr(
        not(feature = "skill-modes"),
        expect(unused_variables, clippy::unused_self, reason = "only modes make tools of skills")
    )]
    fn sort_skills(
        &self,
        snapshot: haversack_skills::Snapshot,
        tools: &[Arc<dyn Tool>],
        report: &mut Report,
    ) -> crate::skill_side::Sorted {
        #[cfg(feature = "skill-modes")]
        if let Some(modes) = &self.0.modes {
            let (texts, mut made) = modes.make(&snapshot, tools, report);
            let tools = std::mem::take(&mut made.tools);
            let tell = Box::new(move |report: &mut Report| crate::skill_modes::describe(&made, report));
            return crate::skill_side::Sorted { texts, tools, tell };
        }
        crate::skill_side::Sorted { texts: snapshot, tools: Vec::new(), tell: Box::new(|_| {}) }
    }

    /// What agent-mode skills run on, if there are [modes](HaversackBuilder::skill_modes): contracts that wait to be
    /// resumed and the day's books, to be stored with the session.
    #[cfg(feature = "skill-modes")]
    #[cfg_attr(docsrs, doc(cfg(feature = "skill-modes")))]
    pub fn agent_skills(&self) -> Option<&haversack_skill_runtime::agent::AgentSkills> {
        self.0.modes.as_ref().map(|modes| &modes.agents)
    }

    #[cfg(not(feature = "skills"))]
    async fn add_skills(&self, _: &mut Gathered, _: &[&str]) {}

    fn agent(&self, tools: Vec<Arc<dyn Tool>>, sections: Vec<PromptSection>) -> AgentBuilder {
        let host = &self.0.host;
        let mut builder = Agent::builder(Arc::clone(&host.model))
            .clock(TokioClock::new())
            .policy(host.policy.clone())
            .limits(host.limits.clone())
            .tools(tools);
        for hooks in &host.hooks {
            builder = builder.hooks(Arc::clone(hooks));
        }
        for section in sections {
            builder = builder.section(section.name, section.text);
        }
        match &host.approver {
            Some(approver) => builder.approver(Arc::clone(approver)),
            None => builder,
        }
    }

    fn configured(&self, builder: AgentBuilder) -> AgentBuilder {
        match &self.0.host.configure {
            Some(configure) => configure(builder),
            None => builder,
        }
    }

    /// Forgets everything that was read, answered or failed, so that the next [`prepare`](Self::prepare) begins anew:
    /// what a user wants after mending a file. Servers end and start again. Gives back what could not be forgotten.
    ///
    /// # Cancel safety
    ///
    /// Dropped, some of it may be forgotten; calling again finishes it.
    #[cfg_attr(
        not(any(feature = "skills", feature = "mcp")),
        expect(unused_mut, reason = "both sides are switched off")
    )]
    pub async fn reload(&self) -> Vec<Note> {
        let mut notes = Vec::new();
        #[cfg(feature = "skills")]
        notes.extend(self.0.skills.reload());
        #[cfg(feature = "mcp")]
        notes.extend(self.0.servers.reload().await);
        notes
    }

    /// Ends all servers in order and waits until none of their processes is left.
    ///
    /// # Cancel safety
    ///
    /// Dropped, the servers still end.
    pub async fn close(&self) {
        #[cfg(feature = "mcp")]
        self.0.servers.close().await;
    }
}

/// What a run is made of, while it is put together.
struct Gathered {
    tools: Vec<Arc<dyn Tool>>,
    sections: Vec<PromptSection>,
    report: Report,
    /// Lines about skills for open files.
    hints: Vec<String>,
    #[cfg(feature = "skills")]
    reader: Option<Arc<haversack_skills::Reader>>,
    #[cfg(all(feature = "skills", feature = "mcp"))]
    served: Option<Arc<ServedSkills>>,
    #[cfg(all(feature = "skills", feature = "mcp"))]
    about_served: Option<PromptSection>,
}

impl Gathered {
    /// Keeps the texts of loaded skills through a compaction.
    #[cfg(feature = "skills")]
    fn protect(&self, builder: AgentBuilder) -> AgentBuilder {
        let Some(reader) = &self.reader else { return builder };
        let protected = protected_skills(Arc::clone(reader));
        #[cfg(feature = "mcp")]
        let protected = {
            let served = self.served.clone();
            move |going: &[Arc<Message>]| {
                served.iter().for_each(|served| served.forget_all());
                protected(going)
            }
        };
        builder.compaction(Compaction::default().with_protected(protected))
    }

    #[cfg(not(feature = "skills"))]
    fn protect(&self, builder: AgentBuilder) -> AgentBuilder {
        builder
    }
}

#[cfg(feature = "skills")]
fn skill_side(host: &mut HaversackBuilder, root: &Path) -> crate::skill_side::SkillSide {
    use haversack_skills::{Root, Roots};
    let roots = host.roots.take().unwrap_or_else(|| match (&host.project, host.user_skills.take()) {
        (Some(_), user) => Roots::preset(root, user),
        (None, Some(user)) => Roots::new().with_root(Root::user(user)),
        (None, None) => Roots::new(),
    });
    let limits = std::mem::take(&mut host.skill_limits);
    let catalogue = std::mem::take(&mut host.catalogue);
    crate::skill_side::SkillSide::new(
        roots,
        limits,
        catalogue,
        root.to_owned(),
        host.consent_folder.as_deref(),
    )
}

#[cfg(feature = "mcp")]
fn server_side(host: &mut HaversackBuilder, root: PathBuf) -> crate::server_side::ServerSide {
    use haversack_mcp_client::ClientOptions;
    use haversack_mcp_client::manager::ManagerOptions;
    let client = host.client.take();
    let client = client.unwrap_or_else(|| ClientOptions::new("haversack", env!("CARGO_PKG_VERSION")));
    let options = ManagerOptions::new(client);
    #[cfg(feature = "http")]
    let (has_http, options) = match host.http.take() {
        Some(access) => (true, options.with_http(access)),
        None => (false, options),
    };
    #[cfg(not(feature = "http"))]
    let has_http = false;
    crate::server_side::ServerSide::new(
        std::mem::take(&mut host.host_servers),
        root,
        host.project.is_some(),
        std::mem::take(&mut host.environment),
        options,
        host.browses_servers,
        host.consent_folder.as_deref(),
    )
    .with_http(has_http)
}

/// An agent for one run, with what it was made of.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Equipped {
    agent: Agent,
    report: Report,
    hint: Option<String>,
    #[cfg(feature = "skills")]
    reader: Option<Arc<haversack_skills::Reader>>,
    #[cfg(all(feature = "skills", feature = "mcp"))]
    served: Option<Arc<ServedSkills>>,
}

impl Equipped {
    /// The agent. A host that needs more than [`start`](Self::start) and [`resume`](Self::resume) takes it from here.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// What was found, used and left out.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Starts a run; see [`Agent::start`]. If files are open that skills are made for, the message gets a line that
    /// says so.
    pub fn start<'a>(&'a self, session: &'a mut Session, message: impl Into<Message>) -> Run<'a> {
        let mut message = message.into();
        if let Some(hint) = &self.hint {
            message.blocks.push(Block::text(format!("\n\n{hint}")));
        }
        self.agent.start(session, message)
    }

    /// What hands out skills in this run, for listings, a record of what was loaded, and sub-agents of the host's own.
    #[cfg(feature = "skills")]
    #[cfg_attr(docsrs, doc(cfg(feature = "skills")))]
    pub fn skills(&self) -> Option<&Arc<haversack_skills::Reader>> {
        self.reader.as_ref()
    }

    /// The skills that servers offer in this run; see [`HaversackBuilder::served_skills`].
    #[cfg(all(feature = "skills", feature = "mcp"))]
    #[cfg_attr(docsrs, doc(cfg(all(feature = "skills", feature = "mcp"))))]
    pub fn served_skills(&self) -> Option<&Arc<ServedSkills>> {
        self.served.as_ref().filter(|served| !served.is_empty())
    }

    /// Turns `/name arguments` or `$name arguments` of a user into the message that starts a run with that skill;
    /// `None` when the text is no such call of a skill that there is, and so an ordinary message.
    ///
    /// # Errors
    ///
    /// When the skill cannot be read any more, or has changed since the user agreed to it.
    #[cfg(feature = "skills")]
    #[cfg_attr(docsrs, doc(cfg(feature = "skills")))]
    pub fn invoke(&self, text: &str) -> Option<Result<Message, haversack_skills::LoadError>> {
        let call = haversack_tool_adapter::invocation::Invocation::parse(text)?;
        match call.expand(self.reader.as_ref()?) {
            Err(haversack_skills::LoadError::Unknown { .. }) => None,
            result => Some(result),
        }
    }

    /// Goes on where a session ended; see [`Agent::resume`].
    pub fn resume<'a>(&'a self, session: &'a mut Session) -> Run<'a> {
        self.agent.resume(session)
    }
}
