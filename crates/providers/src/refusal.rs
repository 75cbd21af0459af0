//! A model's refusal: a text that its API keeps apart from the text of an answer.
//!
//! To a reader a refusal is text like any other, so it is previewed and kept as a text block, and every API can be told of
//! it. Behind that block stands a mark for the API that wrote it, so that there it goes back as the refusal it was.

use std::sync::Arc;

use haversack_agent_core::message::{Block, Opaque};
use serde_json::json;

/// The mark behind a text that is a refusal.
pub(crate) fn mark(issuer: &Arc<str>) -> Block {
    Block::Opaque(Opaque::new(Arc::clone(issuer), json!({"type": "refusal"})))
}

/// Whether a block is such a mark, whoever wrote it.
pub(crate) fn is_mark(block: &Block) -> bool {
    matches!(block, Block::Opaque(opaque) if opaque.raw.get("type").is_some_and(|kind| kind == "refusal"))
}

/// The blocks of a message, each with whether it is a text that this issuer marked as a refusal.
pub(crate) fn told_apart<'m>(
    blocks: &'m [Block],
    issuer: &'m str,
) -> impl Iterator<Item = (&'m Block, bool)> {
    let is_own = move |block: &Block| {
        is_mark(block) && matches!(block, Block::Opaque(opaque) if *opaque.issuer == *issuer)
    };
    blocks.iter().enumerate().map(move |(at, block)| (block, blocks.get(at + 1).is_some_and(is_own)))
}
