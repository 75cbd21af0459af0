//! One neutral request to one model, and what came of it as one JSON object: the parts of `inspect-model`.

pub mod outcome;
pub mod request;
pub mod ask;
