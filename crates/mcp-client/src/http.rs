//! Servers over Streamable HTTP.

mod token;

pub use token::{BearerToken, TokenError, TokenRefusal, TokenSource};
