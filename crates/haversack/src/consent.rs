//! Asking the user before something of the repository is used.

use std::future::Future;

use async_trait::async_trait;

/// A question to the user, asked at most once for the same content.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConsentQuestion {
    /// What it is about.
    pub subject: ConsentSubject,
    /// The whole question, in lines, with the exact commands or the names; hidden characters are made visible.
    pub text: String,
    /// A digest of what is asked about: an answer counts for exactly this.
    pub fingerprint: String,
}

impl ConsentQuestion {
    #[cfg(any(feature = "skills", feature = "mcp"))]
    pub(crate) fn new(subject: ConsentSubject, text: String, fingerprint: String) -> Self {
        Self { subject, text, fingerprint }
    }
}

/// What a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConsentSubject {
    /// Skills of the repository and of its packages: text that tells the model what to do.
    Skills,
    /// Skills that an MCP server offers: the same, of whoever runs the server.
    ServedSkills,
    /// Servers of the repository: commands that run with the user's rights, addresses that get what it says.
    Servers,
}

/// Puts a question to the user.
///
/// A closure from [`ConsentQuestion`] to a future of `Option<bool>` is one as well. The future may not borrow from the
/// closure, so one that needs something clones it: `move |question| { let ui = ui.clone(); async move { … } }`.
///
/// # Contract
///
/// - `Some(true)` and `Some(false)` are kept in the host's consent folder, if it has one, until what is asked about
///   changes. `None` means that nobody answered: nothing is kept, and what was asked about is not used.
/// - It may take as long as it likes; a host that goes away drops the future, which counts as no answer.
/// - Without one, nobody is asked, and nothing of the repository is used.
#[async_trait]
pub trait Consent: Send + Sync + 'static {
    /// Asks.
    async fn ask(&self, question: ConsentQuestion) -> Option<bool>;
}

#[async_trait]
impl<F, Answer> Consent for F
where
    F: Fn(ConsentQuestion) -> Answer + Send + Sync + 'static,
    Answer: Future<Output = Option<bool>> + Send + 'static,
{
    async fn ask(&self, question: ConsentQuestion) -> Option<bool> {
        self(question).await
    }
}
