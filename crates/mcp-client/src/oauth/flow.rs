//! The whole way, from a refusal to a token.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use haversack_http::{HttpClient, Secret};
use oauth2::url::Url;

use crate::oauth::address::{AddressRule, shown};
use crate::oauth::browser::{AuthorizationRequest, Browser};
use crate::oauth::discover::{Discovered, discover};
use crate::oauth::error::OAuthError;
use crate::oauth::fetch::Fetch;
use crate::oauth::options::OAuthOptions;
use crate::oauth::redirect::{self, Expected};
use crate::oauth::registration::client_for;
use crate::oauth::scopes::{self, ScopeSources};
use crate::oauth::store::{CredentialStore, IssuerCredentials, MemoryCredentialStore, Tokens};
use crate::oauth::tokens::TokenClient;

/// How often the user is sent to the browser for one server within [`VISIT_WINDOW`]: a first time, a wider scope, a new
/// authorization server. A server that wants more is broken or hostile.
const MAX_VISITS: usize = 3;
/// The time that [`MAX_VISITS`] is counted over.
const VISIT_WINDOW: Duration = Duration::from_secs(600);
/// A token that ends within this time is renewed first, so that it does not end on its way.
const LEEWAY_SECONDS: u64 = 30;

/// Gets tokens for MCP servers, and keeps them. Cheap to clone; all clones share what they know.
///
/// Requests that need a token for the same server wait for the one that gets it, so that the user is asked once.
#[derive(Clone)]
pub struct OAuth {
    shared: Arc<Shared>,
}

struct Shared {
    fetch: Fetch,
    browser: Box<dyn Browser>,
    store: Box<dyn CredentialStore>,
    options: OAuthOptions,
    servers: Mutex<HashMap<String, Arc<tokio::sync::Mutex<Known>>>>,
}

/// What is known of one server.
#[derive(Default)]
struct Known {
    /// Its authorization server and resource, once discovered.
    place: Option<Discovered>,
    tokens: Option<Tokens>,
    visits: VecDeque<Instant>,
}

/// Why a server did not take a request: the relevant parts of its `WWW-Authenticate` header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refused {
    /// Where the server is described.
    pub resource_metadata: Option<String>,
    /// The scopes that it wants.
    pub scope: Option<String>,
    /// Whether the token was fine but does not reach: `403` with `insufficient_scope`.
    pub insufficient_scope: bool,
    /// The token that the request carried, if it carried one.
    pub token: Option<Secret>,
}

impl OAuth {
    /// Gets tokens through this HTTP client and this browser, and keeps them in memory.
    pub fn new(http: impl HttpClient, browser: impl Browser, options: OAuthOptions) -> Self {
        Self::with_store(http, browser, options, MemoryCredentialStore::default())
    }

    /// The same with a store that outlives the program.
    pub fn with_store(
        http: impl HttpClient,
        browser: impl Browser,
        options: OAuthOptions,
        store: impl CredentialStore,
    ) -> Self {
        let fetch = Fetch { http: Arc::new(http), timeout: options.request_timeout };
        Self {
            shared: Arc::new(Shared {
                fetch,
                browser: Box::new(browser),
                store: Box::new(store),
                options,
                servers: Mutex::default(),
            }),
        }
    }

    /// The token that requests to this server go out with, if there is one. One that is about to end is renewed first;
    /// where that fails there is none, and the server's refusal starts [`renew`](Self::renew).
    ///
    /// Nobody is asked anything.
    ///
    /// # Cancel safety
    ///
    /// Dropping it may lose a token that was just renewed; the user is then asked again.
    pub async fn token(&self, server: &str) -> Option<Secret> {
        let known = self.known(server);
        let mut known = known.lock().await;
        let ending = known.tokens.as_ref().is_some_and(|tokens| ends(tokens, seconds()));
        if ending {
            let renewed = self.refreshed(&known).await.ok().flatten();
            known.tokens = renewed;
        }
        known.tokens.as_ref().map(|tokens| tokens.access.clone())
    }

    /// A token that may be taken after `refused`: the server is looked at anew, then a kept or refreshed token is tried,
    /// and only then the user is asked.
    ///
    /// # Errors
    ///
    /// See [`OAuthError`]. Nothing of a refused or foreign answer is kept.
    ///
    /// # Cancel safety
    ///
    /// Dropping it gives the question up; the next refusal asks again.
    pub async fn renew(&self, server: &str, refused: &Refused) -> Result<Secret, OAuthError> {
        let known = self.known(server);
        let mut known = known.lock().await;
        // Somebody else has been here while this request waited.
        if let Some(tokens) = &known.tokens
            && refused.token.as_ref() != Some(&tokens.access)
        {
            return Ok(tokens.access.clone());
        }
        let url = Url::parse(server).map_err(|_| OAuthError::Address {
            what: "MCP server",
            url: shown(server),
            reason: "it is no absolute address",
        })?;
        let rule = AddressRule::for_server(&url, self.shared.options.private_addresses);
        let place = discover(&self.shared.fetch, rule, &url, refused.resource_metadata.as_deref()).await?;
        let record = self.load(&place.issuer.issuer).await?;
        let kept = record.tokens.get(&place.resource).cloned();
        known.place = Some(place.clone());
        known.tokens = None;
        let tokens = match self.without_asking(&place, &record, kept.as_ref(), refused).await? {
            Some(tokens) => tokens,
            None => {
                self.count_visit(&mut known, server)?;
                self.by_asking(server, rule, &place, &record, kept.as_ref(), refused).await?
            }
        };
        known.tokens = Some(tokens.clone());
        Ok(tokens.access)
    }

    /// A kept token that was not the refused one, or one that a refresh token is good for.
    async fn without_asking(
        &self,
        place: &Discovered,
        record: &IssuerCredentials,
        kept: Option<&Tokens>,
        refused: &Refused,
    ) -> Result<Option<Tokens>, OAuthError> {
        let Some(kept) = kept else { return Ok(None) };
        if refused.insufficient_scope {
            return Ok(None);
        }
        if refused.token.as_ref() != Some(&kept.access) && !ends(kept, seconds()) {
            return Ok(Some(kept.clone()));
        }
        match self.refresh(place, record, kept).await {
            Ok(tokens) => Ok(tokens),
            // A refresh token that is not taken any more is no reason to fail: the user can still agree.
            Err(OAuthError::Refused { .. } | OAuthError::Answer { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn by_asking(
        &self,
        server: &str,
        rule: AddressRule,
        place: &Discovered,
        record: &IssuerCredentials,
        kept: Option<&Tokens>,
        refused: &Refused,
    ) -> Result<Tokens, OAuthError> {
        let Shared { fetch, browser, options, .. } = &*self.shared;
        let before = kept.filter(|_| refused.insufficient_scope).map(|tokens| tokens.asked.as_slice());
        if let Some(before) = before
            && let Some(wanted) = &refused.scope
            && scopes::is_covered(wanted, before)
        {
            return Err(OAuthError::ScopesNotEnough {
                server: shown(server),
                scopes: crate::visible::short(wanted, 200),
            });
        }
        let redirect_uri = browser.redirect_uri();
        let (client, new) =
            client_for(fetch, rule, options, &place.issuer, record.client.as_ref(), &redirect_uri, seconds())
                .await?;
        let mut record = record.clone();
        if new {
            record.client = Some(client.clone());
            self.save(&place.issuer.issuer, &record).await?;
        }
        let scopes = scopes::to_ask(ScopeSources {
            challenged: refused.scope.as_deref(),
            of_resource: place.resource_scopes.as_deref(),
            of_issuer: place.issuer.scopes_supported.as_deref(),
            before: before.unwrap_or_default(),
            refresh: options.refresh,
        });
        let tokens = TokenClient::new(fetch, &place.issuer, &place.resource, &client, &redirect_uri)?;
        let asked = tokens.ask(&scopes);
        let request = AuthorizationRequest {
            url: asked.url.clone(),
            server: shown(server),
            issuer: place.issuer.issuer.clone(),
            scopes: scopes.clone(),
        };
        let after = options.visit_timeout;
        let answer = tokio::time::timeout(after, browser.visit(&request))
            .await
            .map_err(|_| OAuthError::TimedOut { issuer: shown(&place.issuer.issuer), after })?
            .map_err(OAuthError::Browser)?;
        let code = redirect::code(
            &answer,
            Expected {
                state: &asked.state,
                issuer: &place.issuer.issuer,
                names_itself: place.issuer.authorization_response_iss_parameter_supported,
            },
        )?;
        let tokens = tokens.exchange(code, asked, &scopes, seconds()).await?;
        self.keep(place, record, &tokens).await?;
        Ok(tokens)
    }

    /// The refreshed tokens of a server whose place is known; none if there is nothing to refresh with.
    async fn refreshed(&self, known: &Known) -> Result<Option<Tokens>, OAuthError> {
        let (Some(place), Some(tokens)) = (&known.place, &known.tokens) else { return Ok(None) };
        let record = self.load(&place.issuer.issuer).await?;
        self.refresh(place, &record, tokens).await
    }

    async fn refresh(
        &self,
        place: &Discovered,
        record: &IssuerCredentials,
        tokens: &Tokens,
    ) -> Result<Option<Tokens>, OAuthError> {
        let Shared { fetch, browser, options, .. } = &*self.shared;
        let Some(refresh) = &tokens.refresh else { return Ok(None) };
        let by_metadata = options
            .client_metadata_url
            .as_deref()
            .filter(|_| place.issuer.client_id_metadata_document_supported)
            .map(crate::oauth::store::ClientCredentials::new);
        // Who got the token refreshes it; without that client there is nothing to refresh with.
        let client =
            options.client_at(&place.issuer.issuer).or(by_metadata.as_ref()).or(record.client.as_ref());
        let Some(client) = client else { return Ok(None) };
        let redirect_uri = browser.redirect_uri();
        let tokens = TokenClient::new(fetch, &place.issuer, &place.resource, client, &redirect_uri)?
            .refresh(refresh, &tokens.asked, seconds())
            .await?;
        self.keep(place, record.clone(), &tokens).await?;
        Ok(Some(tokens))
    }

    async fn keep(
        &self,
        place: &Discovered,
        mut record: IssuerCredentials,
        tokens: &Tokens,
    ) -> Result<(), OAuthError> {
        record.tokens.insert(place.resource.clone(), tokens.clone());
        self.save(&place.issuer.issuer, &record).await
    }

    async fn load(&self, issuer: &str) -> Result<IssuerCredentials, OAuthError> {
        Ok(self.shared.store.load(issuer).await.map_err(OAuthError::Store)?.unwrap_or_default())
    }

    async fn save(&self, issuer: &str, record: &IssuerCredentials) -> Result<(), OAuthError> {
        self.shared.store.save(issuer, record).await.map_err(OAuthError::Store)
    }

    fn known(&self, server: &str) -> Arc<tokio::sync::Mutex<Known>> {
        let mut servers = self.shared.servers.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(servers.entry(server.to_owned()).or_default())
    }

    fn count_visit(&self, known: &mut Known, server: &str) -> Result<(), OAuthError> {
        known.visits.retain(|visit| visit.elapsed() < VISIT_WINDOW);
        if known.visits.len() >= MAX_VISITS {
            return Err(OAuthError::TooManyVisits { server: shown(server), visits: MAX_VISITS });
        }
        known.visits.push_back(Instant::now());
        Ok(())
    }
}

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth").field("options", &self.shared.options).finish_non_exhaustive()
    }
}

fn ends(tokens: &Tokens, now: u64) -> bool {
    tokens.expires_at.is_some_and(|end| end <= now.saturating_add(LEEWAY_SECONDS))
}

/// Seconds since 1970: tokens outlive the program, so a monotonic clock is no use.
fn seconds() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
