//! Hearing of changes: subscriptions of the modern revisions, and single resources in the legacy ones.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::oneshot;

use crate::client::{Client, object};
use crate::connection::{Connection, Waiter};
use crate::error::Error;
use crate::protocol::{AnswerError, Era, Object, Outcome, RequestId, Timing};

/// The request that opens a subscription.
const LISTEN: &str = "subscriptions/listen";

/// Which changes to hear of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listen {
    /// Changes to the list of tools.
    pub tools: bool,
    /// Changes to the list of prompts.
    pub prompts: bool,
    /// Changes to the list of resources.
    pub resources: bool,
    /// Changes to these resources.
    pub resource_uris: Vec<String>,
}

impl Listen {
    /// Changes to the list of tools.
    pub fn to_tools() -> Self {
        Self { tools: true, ..Self::default() }
    }

    /// Changes to every list.
    pub fn to_lists() -> Self {
        Self { tools: true, prompts: true, resources: true, resource_uris: Vec::new() }
    }

    /// Adds changes to a resource.
    #[must_use]
    pub fn with_resource(mut self, uri: impl Into<String>) -> Self {
        self.resource_uris.push(uri.into());
        self
    }

    fn params(&self) -> Object {
        let lists = [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ];
        let wanted = lists.into_iter().filter(|(_, wanted)| *wanted);
        let mut notifications: Object = wanted.map(|(key, _)| (key.to_owned(), Value::Bool(true))).collect();
        if !self.resource_uris.is_empty() {
            notifications.insert("resourceSubscriptions".to_owned(), self.resource_uris.clone().into());
        }
        object([("notifications", notifications.into())])
    }
}

/// An open subscription. The changes themselves come with [`Client::events`]. Dropping it ends the subscription; it does
/// not keep the connection alive.
#[derive(Debug)]
pub struct Subscription {
    connection: Arc<Connection>,
    id: RequestId,
    outcome: oneshot::Receiver<Outcome>,
    is_open: bool,
}

impl Subscription {
    /// Waits until the server or the connection ends it. A server that ends it politely may be asked again.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub async fn ended(&mut self) {
        if self.is_open {
            // However it ended, there is nothing more to hear.
            let _ = (&mut self.outcome).await;
            self.is_open = false;
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if self.is_open {
            self.connection.cancel(self.id, "not wanted any more");
        }
    }
}

impl Client {
    /// Opens a subscription, in the modern revisions. In the legacy ones servers tell of changed lists unasked.
    ///
    /// # Errors
    /// If the server refuses it (many do; go on without), does not acknowledge it in time, or speaks a legacy revision.
    ///
    /// # Cancel safety
    /// Dropping the future ends the subscription.
    pub async fn listen(&self, wanted: &Listen) -> Result<Subscription, Error> {
        if self.info().era == Era::Legacy {
            let reason =
                "in this revision servers tell of changed lists unasked; there are no subscriptions to lists";
            return Err(self.not_sent(LISTEN, reason));
        }
        let connection = Arc::clone(self.connection());
        let (outcome, mut settled) = oneshot::channel();
        let (acknowledged, mut acknowledgement) = oneshot::channel();
        let waiter = Waiter { outcome, progress: None, acknowledged: Some(acknowledged) };
        let id = connection
            .request(LISTEN.into(), &wanted.params(), Timing::unlimited(), waiter)
            .map_err(|refusal| self.refused(LISTEN, &refusal))?;
        // From here on, dropping it cancels the request.
        let (never, outcome) = oneshot::channel();
        drop(never);
        let mut subscription = Subscription { connection, id, outcome, is_open: true };
        let patience = self.options().request_timeout;
        tokio::select! {
            biased;
            Ok(()) = &mut acknowledgement => {
                subscription.outcome = settled;
                Ok(subscription)
            }
            outcome = &mut settled => {
                subscription.is_open = false;
                Err(match outcome {
                    Ok(Outcome::Answered(answer)) => {
                        let ended = || AnswerError::Invalid("it ended before it was acknowledged".to_owned());
                        self.answer_error(LISTEN, answer.result().err().unwrap_or_else(ended))
                    }
                    Ok(Outcome::Failed(failure)) => self.failed(LISTEN, failure),
                    _ => self.closed(),
                })
            }
            () = tokio::time::sleep(patience) => {
                let (server, method) = (self.label().to_owned(), LISTEN.to_owned());
                Err(Error::Timeout { server, method, after: patience })
            }
        }
    }

    /// Asks to hear of changes to a resource, in the legacy revisions; in the modern ones use [`listen`](Self::listen).
    /// The changes come with [`events`](Self::events).
    ///
    /// # Errors
    /// If there is no answer, or it is an error.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request.
    pub async fn subscribe_resource(&self, uri: &str) -> Result<(), Error> {
        self.legacy_subscription("resources/subscribe", uri).await
    }

    /// Takes back [`subscribe_resource`](Self::subscribe_resource).
    ///
    /// # Errors
    /// If there is no answer, or it is an error.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request.
    pub async fn unsubscribe_resource(&self, uri: &str) -> Result<(), Error> {
        self.legacy_subscription("resources/unsubscribe", uri).await
    }

    async fn legacy_subscription(&self, method: &'static str, uri: &str) -> Result<(), Error> {
        if self.info().era == Era::Modern {
            return Err(self.not_sent(method, "this revision has subscriptions of its own: use `listen`"));
        }
        self.request_object(method, &object([("uri", uri.into())])).await.map(drop)
    }

    /// Tells the server that the folders it may work in have changed, in the legacy revisions. In the modern ones servers
    /// ask each time.
    pub fn roots_changed(&self) {
        if self.info().era == Era::Legacy && self.options().handlers.roots.is_some() {
            self.connection()
                .with_machine(|machine| machine.notify("notifications/roots/list_changed", None));
        }
    }
}
