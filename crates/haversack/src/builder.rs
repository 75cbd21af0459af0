//! What a host says once.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use haversack_agent_core::agent::AgentBuilder;
use haversack_agent_core::approval::Approver;
use haversack_agent_core::hooks::Hooks;
use haversack_agent_core::limits::Limits;
use haversack_agent_core::model::{Model, PromptSection};
use haversack_agent_core::policy::{Mode, Policy};
use haversack_agent_core::tool_context::Tool;

use crate::consent::Consent;
use crate::equip::Haversack;
use crate::error::Error;

/// Puts a [`Haversack`] together. Nothing is read, asked or started before [`Haversack::prepare`].
#[must_use = "a builder does nothing until `build` is called"]
pub struct HaversackBuilder {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) project: Option<PathBuf>,
    #[cfg(feature = "skills")]
    pub(crate) user_skills: Option<PathBuf>,
    #[cfg(feature = "skills")]
    pub(crate) roots: Option<haversack_skills::Roots>,
    #[cfg(feature = "skills")]
    pub(crate) skill_limits: haversack_skills::Limits,
    #[cfg(feature = "skills")]
    pub(crate) catalogue: haversack_skills::CatalogueOptions,
    #[cfg(feature = "skill-modes")]
    pub(crate) skill_modes: Option<crate::skill_modes::SkillModes>,
    #[cfg(feature = "mcp")]
    pub(crate) host_servers: Vec<serde_json::Value>,
    #[cfg(feature = "mcp")]
    pub(crate) environment: haversack_mcp_client::environment::Environment,
    #[cfg(feature = "mcp")]
    pub(crate) client: Option<haversack_mcp_client::ClientOptions>,
    #[cfg(feature = "mcp")]
    pub(crate) browses_servers: bool,
    #[cfg(feature = "http")]
    pub(crate) http: Option<haversack_mcp_client::http::HttpAccess>,
    #[cfg(all(feature = "skills", feature = "mcp"))]
    pub(crate) served_skills: bool,
    pub(crate) consent: Option<Arc<dyn Consent>>,
    pub(crate) consent_folder: Option<PathBuf>,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    #[cfg(feature = "fs-tools")]
    pub(crate) fs_tools: Option<crate::fs_tools::FsTools>,
    pub(crate) sections: Vec<PromptSection>,
    pub(crate) policy: Policy,
    pub(crate) limits: Limits,
    pub(crate) hooks: Vec<Arc<dyn Hooks>>,
    pub(crate) configure: Option<Configure>,
}

/// The host's own settings of the agent, applied for each run.
pub(crate) type Configure = Box<dyn Fn(AgentBuilder) -> AgentBuilder + Send + Sync>;

impl fmt::Debug for HaversackBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HaversackBuilder").field("project", &self.project).finish_non_exhaustive()
    }
}

impl HaversackBuilder {
    pub(crate) fn new(model: impl Model) -> Self {
        Self {
            model: Arc::new(model),
            project: None,
            #[cfg(feature = "skills")]
            user_skills: None,
            #[cfg(feature = "skills")]
            roots: None,
            #[cfg(feature = "skills")]
            skill_limits: haversack_skills::Limits::default(),
            #[cfg(feature = "skills")]
            catalogue: haversack_skills::CatalogueOptions::default(),
            #[cfg(feature = "skill-modes")]
            skill_modes: None,
            #[cfg(feature = "mcp")]
            host_servers: Vec::new(),
            #[cfg(feature = "mcp")]
            environment: haversack_mcp_client::environment::Environment::default(),
            #[cfg(feature = "mcp")]
            client: None,
            #[cfg(feature = "mcp")]
            browses_servers: false,
            #[cfg(feature = "http")]
            http: None,
            #[cfg(all(feature = "skills", feature = "mcp"))]
            served_skills: false,
            consent: None,
            consent_folder: None,
            approver: None,
            tools: Vec::new(),
            #[cfg(feature = "fs-tools")]
            fs_tools: None,
            sections: Vec::new(),
            policy: Policy::default(),
            limits: Limits::default(),
            hooks: Vec::new(),
            configure: None,
        }
    }

    /// Sets the project's root folder: its skills, the skills of its packages, and the servers of its `.mcp.json` and
    /// `.gbs/mcp.json` are looked for. Without one, only what the host names itself is used.
    pub fn project(mut self, root: impl Into<PathBuf>) -> Self {
        self.project = Some(root.into());
        self
    }

    /// Sets the user's own folder of skills, which needs no consent. The host knows where its users keep things; no
    /// home folder is looked up here.
    #[cfg(feature = "skills")]
    #[cfg_attr(docsrs, doc(cfg(feature = "skills")))]
    pub fn user_skills(mut self, folder: impl Into<PathBuf>) -> Self {
        self.user_skills = Some(folder.into());
        self
    }

    /// Sets the places to look for skills, in the place of the preset over [`project`](Self::project) and
    /// [`user_skills`](Self::user_skills).
    #[cfg(feature = "skills")]
    #[cfg_attr(docsrs, doc(cfg(feature = "skills")))]
    pub fn skill_roots(mut self, roots: haversack_skills::Roots) -> Self {
        self.roots = Some(roots);
        self
    }

    /// Sets the limits of the search for skills.
    #[cfg(feature = "skills")]
    #[cfg_attr(docsrs, doc(cfg(feature = "skills")))]
    pub fn skill_limits(mut self, limits: haversack_skills::Limits) -> Self {
        self.skill_limits = limits;
        self
    }

    /// Sets how the list of skills in the prompt looks.
    #[cfg(feature = "skills")]
    #[cfg_attr(docsrs, doc(cfg(feature = "skills")))]
    pub fn catalogue(mut self, options: haversack_skills::CatalogueOptions) -> Self {
        self.catalogue = options;
        self
    }

    /// Makes tools of skills in tool and agent mode: a pipeline is the tool `skill_<name>`, a sub-agent the tool of its
    /// name. Without it all skills are texts.
    #[cfg(feature = "skill-modes")]
    #[cfg_attr(docsrs, doc(cfg(feature = "skill-modes")))]
    pub fn skill_modes(mut self, modes: crate::skill_modes::SkillModes) -> Self {
        self.skill_modes = Some(modes);
        self
    }

    /// Adds servers of the host's own, an object from name to entry as in `mcpServers` of an `.mcp.json`. They need no
    /// consent, and no repository can take their names.
    #[cfg(feature = "mcp")]
    #[cfg_attr(docsrs, doc(cfg(feature = "mcp")))]
    pub fn servers(mut self, servers: serde_json::Value) -> Self {
        self.host_servers.push(servers);
        self
    }

    /// Sets the variables that `${VAR}` in server entries stands for and that servers inherit the safe part of; most
    /// hosts pass `std::env::vars_os().collect()`. Empty by default: nothing is taken from the process.
    #[cfg(feature = "mcp")]
    #[cfg_attr(docsrs, doc(cfg(feature = "mcp")))]
    pub fn environment(mut self, environment: haversack_mcp_client::environment::Environment) -> Self {
        self.environment = environment;
        self
    }

    /// Sets how clients work: the host's name and version, times, limits, handlers.
    #[cfg(feature = "mcp")]
    #[cfg_attr(docsrs, doc(cfg(feature = "mcp")))]
    pub fn client_options(mut self, options: haversack_mcp_client::ClientOptions) -> Self {
        self.client = Some(options);
        self
    }

    /// Sets how servers with a `url` are reached: by which HTTP client, at which addresses, with which tokens. It holds
    /// for those of the project's files, which are asked about like any other, and for the host's own. Without it, they
    /// are left out, and the report says so.
    ///
    /// ```no_run
    /// use std::sync::Arc;
    /// use haversack::Haversack;
    /// use haversack::http::{HttpClient, Secret};
    /// use haversack::mcp::http::HttpAccess;
    /// use serde_json::json;
    ///
    /// # fn build(model: impl haversack::prelude::Model, client: impl HttpClient) -> Result<Haversack, haversack::Error> {
    /// let access = HttpAccess::new(Arc::new(client))
    ///     .with_bearer_token("https://mcp.example.com/mcp", Secret::new("…"));
    /// Haversack::builder(model)
    ///     .servers(json!({"docs": {"url": "https://mcp.example.com/mcp"}}))
    ///     .mcp_over_http(access)
    ///     .build()
    /// # }
    /// ```
    #[cfg(feature = "http")]
    #[cfg_attr(docsrs, doc(cfg(feature = "http")))]
    pub fn mcp_over_http(mut self, access: haversack_mcp_client::http::HttpAccess) -> Self {
        self.http = Some(access);
        self
    }

    /// Offers the resources and prompts of servers too, as the tools `mcp_resources` and `mcp_prompts`, where a server
    /// has some. Off by default: most servers are made for their tools, and each tool costs room in every request.
    #[cfg(feature = "mcp")]
    #[cfg_attr(docsrs, doc(cfg(feature = "mcp")))]
    pub fn browse_servers(mut self) -> Self {
        self.browses_servers = true;
        self
    }

    /// Offers the skills that servers serve (SEP-2640), under names like `docs:pdf`, in a section of the prompt behind
    /// that of the local skills and through the same `skill` tool. Each server's skills are asked about once, and again
    /// when a byte of them changes; their files are read when the model asks for them, and checked at each read. Off by
    /// default: they are texts of others that tell the model what to do.
    #[cfg(all(feature = "skills", feature = "mcp"))]
    #[cfg_attr(docsrs, doc(cfg(all(feature = "skills", feature = "mcp"))))]
    pub fn served_skills(mut self) -> Self {
        self.served_skills = true;
        self
    }

    /// Sets who is asked before something of the repository is used.
    pub fn consent(mut self, consent: impl Consent) -> Self {
        self.consent = Some(Arc::new(consent));
        self
    }

    /// Sets a folder of the host's own where answers are kept. Without one they are kept as long as this value lives.
    pub fn consent_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.consent_folder = Some(folder.into());
        self
    }

    /// Sets who is asked before a call runs. Without one, a run pauses at the first call that needs an answer.
    pub fn approver(mut self, approver: impl Approver) -> Self {
        self.approver = Some(Arc::new(approver));
        self
    }

    /// Adds a tool of the host's own: a type with `#[async_trait] impl Tool`, or a function wrapped by
    /// [`tool_fn`](haversack_agent_core::tool_fn::tool_fn).
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Adds tools of the host's own.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Adds tools that read, list, search and edit files inside a root, and run commands there; see
    /// [`fs_tools`](crate::fs_tools). Commands see the safe part of [`environment`](Self::environment).
    #[cfg(feature = "fs-tools")]
    #[cfg_attr(docsrs, doc(cfg(feature = "fs-tools")))]
    pub fn fs_tools(mut self, tools: crate::fs_tools::FsTools) -> Self {
        self.fs_tools = Some(tools);
        self
    }

    /// Adds a section to the system prompt. The host's sections come before those of skills and servers.
    pub fn section(mut self, name: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Self {
        self.sections.push(PromptSection::new(name, text));
        self
    }

    /// Sets what happens to calls that no rule speaks of. [`Mode::Ask`] by default: everything is asked about but what
    /// the host itself calls read-only.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.policy.mode = mode;
        self
    }

    /// Sets mode and rules at once: who may run what.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the limits and budgets of a run: turns, tokens, cost, tool calls, time.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Adds hooks: the host's own code before a request, around a call, and at the end of a run.
    pub fn hooks(mut self, hooks: impl Hooks) -> Self {
        self.hooks.push(Arc::new(hooks));
        self
    }

    /// Sets everything else of the agent (retries, a fallback model, prices, options of the model) by a function that is
    /// called for each run, after all that is set here and before the agent is built. A policy that is set in it takes
    /// the place of that of the builder.
    pub fn configure(
        mut self,
        configure: impl Fn(AgentBuilder) -> AgentBuilder + Send + Sync + 'static,
    ) -> Self {
        self.configure = Some(Box::new(configure));
        self
    }

    /// Builds it. Nothing is read but whether the project is a folder; the root of file tools is opened.
    ///
    /// # Errors
    ///
    /// [`Error::NoProject`] and [`Error::NoRoot`].
    #[cfg_attr(not(feature = "fs-tools"), expect(unused_mut, reason = "nothing is added"))]
    pub fn build(mut self) -> Result<Haversack, Error> {
        if let Some(path) = self.project.as_ref().filter(|path| !path.is_dir()) {
            return Err(Error::NoProject { path: path.clone() });
        }
        #[cfg(feature = "fs-tools")]
        self.open_fs_tools()?;
        Ok(Haversack::new(self))
    }

    #[cfg(feature = "fs-tools")]
    fn open_fs_tools(&mut self) -> Result<(), Error> {
        let Some(fs_tools) = self.fs_tools.take() else { return Ok(()) };
        let fs_tools = fs_tools.or_environment(&self.environment);
        let no_root = |error| Error::NoRoot { path: fs_tools.root().to_owned(), error };
        self.tools.extend(fs_tools.tools().map_err(no_root)?);
        if self.policy.mode != Mode::Autonomous {
            self.policy.rules.extend(crate::fs_tools::sensitive_rules());
        }
        Ok(())
    }
}
