//! Lists: tools, resources, templates and prompts, all pages of them.

use std::time::Duration;

use serde_json::Value;

use crate::client::Client;
use crate::connection::now;
use crate::error::Error;
use crate::protocol::{
    AnswerError, Era, Item, ListKind, Listing, Object, Page, PageSeed, Paging, Problem, ProblemCode,
    PromptInfo, ResourceInfo, ResourceTemplate, ToolInfo, input_required,
};

impl Client {
    /// Lists the tools, all pages of them.
    ///
    /// A server that declares no tools has none, and is not asked. A bad entry or a page that cannot be had never costs
    /// the rest: see [`Listing::problems`].
    ///
    /// # Errors
    /// If not even the first page could be had.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request.
    pub async fn list_tools(&self) -> Result<Listing<ToolInfo>, Error> {
        let listing = self.list("tools/list", ListKind::Tools, &["tools", "nextCursor"]).await?;
        #[cfg(feature = "http")]
        let listing = self.without_bad_marks(listing);
        Ok(listing)
    }

    /// Over HTTP, modern servers get some parameters in headers as well. A tool that wants that in a way which the
    /// revision forbids is left out.
    #[cfg(feature = "http")]
    fn without_bad_marks(&self, mut listing: Listing<ToolInfo>) -> Listing<ToolInfo> {
        use crate::http::{Marks, ToolMarks};

        let Some(link) = self.http().filter(|_| self.info().era == Era::Modern) else { return listing };
        let (mut marks, mut problems) = (ToolMarks::new(), Vec::new());
        listing.items.retain(|tool| match Marks::of_schema(&tool.input_schema) {
            Ok(found) => {
                if !found.is_empty() {
                    marks.insert(tool.name.clone(), found);
                }
                true
            }
            Err(reason) => {
                let message =
                    format!("the tool {} was left out: {reason}", crate::visible::short(&tool.name, 80));
                problems.push(Problem::new(ProblemCode::BadHeaderMark, message));
                false
            }
        });
        listing.problems.extend(problems);
        link.machine().set_marks(marks);
        listing
    }

    /// Lists the resources, all pages of them; as [`list_tools`](Self::list_tools).
    ///
    /// # Errors
    /// If not even the first page could be had.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request.
    pub async fn list_resources(&self) -> Result<Listing<ResourceInfo>, Error> {
        self.list("resources/list", ListKind::Resources, &["resources", "nextCursor"]).await
    }

    /// Lists the templates of resource addresses; as [`list_tools`](Self::list_tools).
    ///
    /// # Errors
    /// If not even the first page could be had.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request.
    pub async fn list_resource_templates(&self) -> Result<Listing<ResourceTemplate>, Error> {
        self.list("resources/templates/list", ListKind::Resources, &["resourceTemplates", "nextCursor"]).await
    }

    /// Lists the prompts, all pages of them; as [`list_tools`](Self::list_tools).
    ///
    /// # Errors
    /// If not even the first page could be had.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request.
    pub async fn list_prompts(&self) -> Result<Listing<PromptInfo>, Error> {
        self.list("prompts/list", ListKind::Prompts, &["prompts", "nextCursor"]).await
    }

    async fn list<T: Item + Clone + Send + Sync + 'static>(
        &self,
        method: &'static str,
        kind: ListKind,
        members: &'static [&'static str],
    ) -> Result<Listing<T>, Error> {
        if !self.info().capabilities.as_object().contains_key(kind.as_str()) {
            let message =
                format!("{} does not declare {}, so it was not asked for any", self.label(), kind.as_str());
            let mut listing = Listing::default();
            listing.problems.push(Problem::new(ProblemCode::NotDeclared, message));
            return Ok(listing);
        }
        self.list_all(method, kind, members).await
    }

    /// Lists without looking at what the server declares. `kind` is whose changes make a kept list stale.
    pub(crate) async fn list_all<T: Item + Clone + Send + Sync + 'static>(
        &self,
        method: &'static str,
        kind: ListKind,
        members: &'static [&'static str],
    ) -> Result<Listing<T>, Error> {
        let version = self.connection().with_machine(|machine| machine.list_version(kind));
        if let Some(kept) = self.cache().get(now(), method, version) {
            return Ok(kept);
        }
        let mut paging = Paging::new(self.options().list_limits);
        let mut time_to_live = Duration::MAX;
        loop {
            match self.page(method, members, &paging).await {
                Ok((page, page_time)) => {
                    time_to_live = time_to_live.min(page_time);
                    if !paging.feed(page) {
                        break;
                    }
                }
                Err(error) if paging.pages() > 0 => {
                    paging.fail(&error.to_string());
                    time_to_live = Duration::ZERO;
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        let listing = paging.finish();
        if !time_to_live.is_zero() {
            self.cache().put(now(), method, version, time_to_live, listing.clone());
        }
        Ok(listing)
    }

    /// Asks for a page; gives it with the time for which it may be kept.
    async fn page<T: Item>(
        &self,
        method: &'static str,
        members: &'static [&'static str],
        paging: &Paging<T>,
    ) -> Result<(Page<T>, Duration), Error> {
        let timing = self.options().request_timing();
        let answer = self.request(method.into(), &paging.params(), timing, None).await?;
        let read = answer.read(|| PageSeed::new(members, paging.len()));
        let (page, mut extra) = read.map_err(|error| self.answer_error(method, error))?;
        if self.info().era == Era::Legacy {
            return Ok((page, Duration::ZERO));
        }
        let asked = input_required(&mut extra, false);
        asked.map_err(|reason| self.answer_error(method, AnswerError::Invalid(reason)))?;
        Ok((page, time_to_live(&extra)))
    }
}

/// For how long a page may be kept; a server that does not say so, or says nonsense, wants it not kept.
fn time_to_live(extra: &Object) -> Duration {
    extra.get("ttlMs").and_then(Value::as_u64).map_or(Duration::ZERO, Duration::from_millis)
}
