//! What a server may ask of the host: folders, a model, the user.
//!
//! Each is offered only if the host gives a handler, and declared only then. In the legacy revisions the server asks
//! while a call is running; in the modern ones a call ends with the question and is made again with the answer. The
//! handlers are the same.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::task::AbortHandle;

use crate::connection::{Connection, ServerAsk};
use crate::protocol::{Object, PeerId, RpcError, code};

/// Gives the folders a server may work in.
///
/// A panic becomes an error for the server. A slow answer holds up nothing but the call that waits for it; when the
/// server takes its question back or the connection ends, the future is dropped.
#[async_trait]
pub trait RootsHandler: Send + Sync {
    /// The folders, as they are now.
    async fn roots(&self) -> Vec<Root>;
}

/// A folder a server may work in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Root {
    /// Its address, `file://…`.
    pub uri: String,
    /// A name for people.
    pub name: Option<String>,
}

impl Root {
    /// A folder without a name.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), name: None }
    }

    /// Gives it a name.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
}

/// Lets a server ask the host's model. What is asked and what is answered are for the user to see and to allow.
///
/// For panics and slow answers see [`RootsHandler`].
#[async_trait]
pub trait SamplingHandler: Send + Sync {
    /// Answers `sampling/createMessage`; both sides are the objects of the specification, unchanged.
    ///
    /// # Errors
    /// What the server is told; code -1 is the usual one for a user who says no.
    async fn create_message(&self, request: Object) -> Result<Object, RpcError>;
}

/// Lets a server ask the user.
///
/// For panics and slow answers see [`RootsHandler`].
#[async_trait]
pub trait ElicitationHandler: Send + Sync {
    /// Asks the user. The text is the server's: say so when it is shown. An address is never opened or fetched without
    /// the user's consent.
    async fn elicit(&self, request: Elicitation) -> ElicitationAnswer;

    /// Whether addresses to be opened are taken, beside forms. Default: no.
    fn takes_urls(&self) -> bool {
        false
    }
}

/// A question to the user.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Elicitation {
    /// What is asked, in words for the user.
    pub message: String,
    /// How it is to be answered.
    pub form: ElicitationForm,
}

/// How a question to the user is to be answered.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ElicitationForm {
    /// By filling in fields; the schema is an object of plain values.
    Fields(Value),
    /// By opening an address; the answer does not come back through this client.
    Url {
        /// The address.
        url: String,
        /// What the server calls this question.
        id: Option<String>,
    },
}

/// What the user says to a question.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ElicitationAnswer {
    /// Yes, with the fields that were filled in. Fields left out get the defaults of the schema.
    Accept(Object),
    /// No.
    Decline,
    /// Neither: the question was closed.
    Cancel,
}

/// The host's handlers.
#[derive(Clone, Default)]
pub(crate) struct Handlers {
    pub(crate) roots: Option<Arc<dyn RootsHandler>>,
    pub(crate) sampling: Option<Arc<dyn SamplingHandler>>,
    pub(crate) elicitation: Option<Arc<dyn ElicitationHandler>>,
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handlers")
            .field("roots", &self.roots.is_some())
            .field("sampling", &self.sampling.is_some())
            .field("elicitation", &self.elicitation.is_some())
            .finish()
    }
}

impl Handlers {
    /// Declares what is served.
    pub(crate) fn declare(&self, capabilities: &mut Object) {
        let mut declare = |key: &str, value| capabilities.insert(key.to_owned(), value);
        if self.roots.is_some() {
            declare("roots", json!({"listChanged": true}));
        }
        if self.sampling.is_some() {
            declare("sampling", json!({}));
        }
        if let Some(elicitation) = &self.elicitation {
            let forms = json!({"form": {}});
            let both = json!({"form": {}, "url": {}});
            declare("elicitation", if elicitation.takes_urls() { both } else { forms });
        }
    }

    /// Whether a question of a server is served.
    pub(crate) fn serves(&self, method: &str) -> bool {
        match method {
            "roots/list" => self.roots.is_some(),
            "sampling/createMessage" => self.sampling.is_some(),
            "elicitation/create" => self.elicitation.is_some(),
            _ => false,
        }
    }

    /// Answers a question of a server.
    pub(crate) async fn serve(&self, method: &str, params: Object) -> Result<Value, RpcError> {
        match (method, &self.roots, &self.sampling, &self.elicitation) {
            ("roots/list", Some(handler), ..) => {
                let roots: Vec<Value> = handler.roots().await.into_iter().map(root_value).collect();
                Ok(json!({"roots": roots}))
            }
            ("sampling/createMessage", _, Some(handler), _) => {
                handler.create_message(params).await.map(Value::Object)
            }
            ("elicitation/create", .., Some(handler)) => elicit(handler.as_ref(), params).await,
            _ => Err(RpcError::new(code::METHOD_NOT_FOUND, format!("this host does not serve {method}"))),
        }
    }

    /// Answers a question of a server, a panic of the handler included.
    pub(crate) async fn serve_safely(self, method: String, params: Object) -> Result<Value, RpcError> {
        let task = tokio::spawn(async move { self.serve(&method, params).await });
        let _stops = AbortOnDrop(task.abort_handle());
        task.await.unwrap_or_else(|_| Err(RpcError::new(code::INTERNAL_ERROR, "the host's handler failed")))
    }
}

struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn root_value(root: Root) -> Value {
    match root.name {
        Some(name) => json!({"uri": root.uri, "name": name}),
        None => json!({"uri": root.uri}),
    }
}

async fn elicit(handler: &dyn ElicitationHandler, mut params: Object) -> Result<Value, RpcError> {
    let text = |params: &Object, key: &str| params.get(key).and_then(Value::as_str).map(str::to_owned);
    let message = text(&params, "message").unwrap_or_default();
    let invalid = |what: &str| RpcError::new(code::INVALID_PARAMS, what);
    let (form, schema) = match text(&params, "mode").as_deref() {
        // The first revision with elicitation had forms only, and no word for them.
        None | Some("form") => {
            let schema = params
                .shift_remove("requestedSchema")
                .ok_or_else(|| invalid("requestedSchema is missing"))?;
            (ElicitationForm::Fields(schema.clone()), schema)
        }
        Some("url") if handler.takes_urls() => {
            let url = text(&params, "url").ok_or_else(|| invalid("url is missing"))?;
            (ElicitationForm::Url { url, id: text(&params, "elicitationId") }, Value::Null)
        }
        Some(_) => return Err(invalid("this mode of elicitation was not declared")),
    };
    Ok(match handler.elicit(Elicitation { message, form }).await {
        ElicitationAnswer::Accept(mut content) => {
            fill_in_defaults(&mut content, &schema);
            if schema.is_null() {
                json!({"action": "accept"})
            } else {
                json!({"action": "accept", "content": content})
            }
        }
        ElicitationAnswer::Decline => json!({"action": "decline"}),
        ElicitationAnswer::Cancel => json!({"action": "cancel"}),
    })
}

/// Gives fields that were left out the defaults of their schema.
fn fill_in_defaults(content: &mut Object, schema: &Value) {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (key, property) in properties.into_iter().flatten() {
        if let Some(default) = property.get("default")
            && !content.contains_key(key)
        {
            content.insert(key.clone(), default.clone());
        }
    }
}

/// Runs the handlers for what a legacy server asks, each in a task of its own.
#[derive(Debug)]
pub(crate) struct AskDesk {
    handlers: Handlers,
    running: Mutex<BTreeMap<PeerId, AbortHandle>>,
}

impl AskDesk {
    pub(crate) fn new(handlers: Handlers) -> Arc<Self> {
        Arc::new(Self { handlers, running: Mutex::default() })
    }

    /// Takes a question, or takes it back. The machine bounds how many there are at once.
    pub(crate) fn take(self: &Arc<Self>, connection: &Arc<Connection>, ask: ServerAsk) {
        match ask {
            ServerAsk::Cancelled { id } => {
                if let Some(task) = self.lock().remove(&id) {
                    task.abort();
                }
            }
            ServerAsk::Asked { id, method, params } => {
                let (desk, handlers, asked) = (Arc::clone(self), self.handlers.clone(), id.clone());
                let connection = Arc::downgrade(connection);
                let mut running = self.lock();
                let task = tokio::spawn(async move {
                    let result = handlers.serve_safely(method, params).await;
                    desk.lock().remove(&asked);
                    if let Some(connection) = connection.upgrade() {
                        connection.with_machine(|machine| machine.answer(&asked, result.as_ref()));
                    }
                });
                running.insert(id, task.abort_handle());
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PeerId, AbortHandle>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
