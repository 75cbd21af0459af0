//! A model behind an API: what a host holds, and what the agent loop calls.

use std::fmt;
use std::sync::Arc;

use haversack_agent_core::model::{ModelError, ModelInfo, ModelRequest, ModelStream};
use haversack_http::{HttpClient, Secret};
use serde_json::Value;

use crate::api::{self, Api};
use crate::call::{Call, Kept, list};
use crate::endpoint::{Endpoint, Limits, Timeouts};
use crate::listing::ListedModel;

/// One model behind one API. Cheap to clone; clones share what is kept of encoded histories.
///
/// `A` is the API: use the names [`OpenAiChat`](crate::OpenAiChat), [`OpenAiResponses`](crate::OpenAiResponses) and so on.
/// All settings are consuming methods:
///
/// ```
/// # use haversack_http::{HttpClient, HttpError, HttpErrorKind, HttpRequest, HttpResponse};
/// # #[derive(Debug)]
/// # struct NoNetwork;
/// # #[async_trait::async_trait]
/// # impl HttpClient for NoNetwork {
/// #     async fn send(&self, _: HttpRequest) -> Result<HttpResponse, HttpError> {
/// #         Err(HttpError::new(HttpErrorKind::Connect, "no network here"))
/// #     }
/// # }
/// use haversack_agent_core::model::Model;
/// use haversack_providers::{OpenAiChat, Timeouts};
///
/// let http = NoNetwork; // or haversack_http::ReqwestClient::new()?
/// let model = OpenAiChat::new(http, "http://127.0.0.1:8080/v1", "qwen3")
///     .with_key("none needed here")
///     .with_context_window(32_768)
///     .with_timeouts(Timeouts::default().with_idle(std::time::Duration::from_secs(30)));
/// assert_eq!(&*model.info().model, "qwen3");
/// assert!(!format!("{model:?}").contains("none needed"));
/// ```
///
/// # Time
///
/// [`Timeouts`] are kept on tokio's clock. Called outside a tokio runtime, with an HTTP client of the host's own, a call
/// has no time-outs: the client bounds its waiting.
///
/// # What is tried again
///
/// Nothing is retried in here: that is the loop's to decide. A request that the server refuses for its *form* is sent
/// once more in another form, where the API has two (the name of the output limit; sealed reasoning that the server can no
/// longer open).
pub struct Provider<A> {
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) api: Arc<A>,
    kept: Arc<Kept>,
}

impl<A> Clone for Provider<A> {
    fn clone(&self) -> Self {
        Self {
            endpoint: Arc::clone(&self.endpoint),
            api: Arc::clone(&self.api),
            kept: Arc::clone(&self.kept),
        }
    }
}

impl<A> Provider<A> {
    pub(crate) fn from_parts(http: impl HttpClient, base_url: &str, info: ModelInfo, api: A) -> Self {
        let endpoint = Arc::new(Endpoint::new(Arc::new(http), base_url, info));
        Self { endpoint, api: Arc::new(api), kept: Arc::default() }
    }

    /// Changes the settings. What was kept under the old ones may no longer be right.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Endpoint)) -> Self {
        change(Arc::make_mut(&mut self.endpoint));
        self.kept = Arc::default();
        self
    }

    /// As [`with`](Self::with), for the settings of the API.
    pub(crate) fn with_api(mut self, change: impl FnOnce(&mut A)) -> Self
    where
        A: Clone,
    {
        change(Arc::make_mut(&mut self.api));
        self.kept = Arc::default();
        self
    }

    /// Sets the key, which goes into the header that the API has for it.
    #[must_use]
    pub fn with_key(self, key: impl Into<Secret>) -> Self {
        self.with(|endpoint| endpoint.key = Some(key.into()))
    }

    /// Adds a header to every request; it wins over ours of the same name. Its value is treated as a secret. A name
    /// or value that HTTP does not allow fails each call with kind `InvalidRequest`.
    #[must_use]
    pub fn with_header(self, name: &str, value: &str) -> Self {
        self.with(|endpoint| endpoint.add_header(name, value))
    }

    /// Adds a field to every body, as it is; it wins over ours of the same name.
    #[must_use]
    pub fn with_body_field(self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.with(|endpoint| {
            endpoint.extra_body.insert(name.into(), value.into());
        })
    }

    /// Sets the bounds on time.
    #[must_use]
    pub fn with_timeouts(self, timeouts: Timeouts) -> Self {
        self.with(|endpoint| endpoint.timeouts = timeouts)
    }

    /// Sets the bounds on size.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        self.with(|endpoint| endpoint.limits = limits)
    }

    /// Asks for the whole answer at once instead of a stream. The events are the same, all at the end.
    #[must_use]
    pub fn without_streaming(self) -> Self {
        self.with(|endpoint| endpoint.streaming = false)
    }

    /// Sets the provider's name in reports, messages and seals, where the address does not tell it.
    #[must_use]
    pub fn with_provider_name(self, name: impl Into<Arc<str>>) -> Self {
        self.with(|endpoint| endpoint.info.provider = name.into())
    }

    /// Sets the context window in tokens, for hosts that compact before it is full.
    #[must_use]
    pub fn with_context_window(self, tokens: u64) -> Self {
        self.with(|endpoint| endpoint.info.context_window = Some(tokens))
    }

    /// Sets the longest answer of the model in tokens.
    #[must_use]
    pub fn with_max_output_tokens(self, tokens: u64) -> Self {
        self.with(|endpoint| endpoint.info.max_output_tokens = Some(tokens))
    }

    /// Tells whether the model takes images.
    #[must_use]
    pub fn with_images(self, images: bool) -> Self {
        self.with(|endpoint| endpoint.info.images = Some(images))
    }

    pub(crate) fn info(&self) -> ModelInfo {
        self.endpoint.info.clone()
    }
}

#[expect(private_bounds, reason = "the list of APIs is closed: each has its public name")]
impl<A: Api> Provider<A> {
    /// Who issues the seals of reasoning that this model writes: provider, API and model. Reasoning goes back word for
    /// word to the issuer of its seal and to nobody else.
    pub fn issuer(&self) -> Arc<str> {
        api::issuer::<A>(&self.endpoint)
    }

    /// Asks the server what models it has, whichever model this is. In the server's order; of a list without end the first
    /// 20,000.
    ///
    /// # Errors
    ///
    /// As a call has them. A server without such a list answers with kind `NotFound`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives the request up; nothing else happens.
    pub async fn list_models(&self) -> Result<Vec<ListedModel>, ModelError> {
        list::models(&*self.api, &self.endpoint).await.map_err(|error| *error)
    }

    pub(crate) fn call(&self, request: ModelRequest) -> ModelStream<'_> {
        Box::pin(Call::new(&*self.api, &self.endpoint, &self.kept, request))
    }
}

impl<A> fmt::Debug for Provider<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}
