//! What a tool gives back, cut to a size that a model can take.
//!
//! Text keeps its head and its tail, where the command echo and the error are, and says how much is missing between
//! them and where the whole is, if the host keeps it ([`SpillSink`]). Images and documents are kept or replaced by a
//! line that says why. Nothing goes without a trace: [`Cut`] tells the host, the text tells the model.
//!
//! ```
//! use haversack_agent_core::output::{OutputLimits, limit};
//! use haversack_agent_core::tool::ToolOutput;
//!
//! let limits = OutputLimits::default().with_result_bytes(100);
//! let (output, cut) = limit(ToolOutput::text("x".repeat(1_000)), &limits, None);
//! let text = output.blocks[0].as_text().unwrap();
//! assert!(text.contains("900 bytes of 1000 are left out here"));
//! assert_eq!(cut.text_bytes, 900);
//! ```

use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use serde_json::Value;

use crate::message::{Block, CallId, Media, MediaSource, ToolResult};
use crate::tool::{ToolError, ToolOutput};

/// How much of a tool's output reaches the model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutputLimits {
    /// Bytes of text in one result. 20,000 by default, about 5,000 tokens: a long file, a test run's failures.
    pub result_bytes: usize,
    /// Bytes of text in all results of one answer together, applied when they are handed to the model.
    /// 200,000 by default: ten full results.
    pub turn_bytes: usize,
    /// Images and documents in one result. 8 by default.
    pub media_count: usize,
    /// Base64 characters of one image or document. 8,000,000 by default, about 6 MB of data: what the providers take.
    pub media_bytes: usize,
    /// Bytes of structured output, as JSON, kept for the host in the session. 262,144 by default.
    pub structured_bytes: usize,
    /// Whether the model can see images; if not, a line says that there was one.
    pub images: bool,
}

impl Default for OutputLimits {
    fn default() -> Self {
        Self {
            result_bytes: 20_000,
            turn_bytes: 200_000,
            media_count: 8,
            media_bytes: 8_000_000,
            structured_bytes: 256 * 1024,
            images: true,
        }
    }
}

impl OutputLimits {
    /// Sets the bytes of text in one result.
    #[must_use]
    pub fn with_result_bytes(mut self, bytes: usize) -> Self {
        self.result_bytes = bytes;
        self
    }

    /// Sets the bytes of text in all results of one answer together.
    #[must_use]
    pub fn with_turn_bytes(mut self, bytes: usize) -> Self {
        self.turn_bytes = bytes;
        self
    }

    /// Sets how many images and documents one result may hold, and the base64 characters of each.
    #[must_use]
    pub fn with_media(mut self, count: usize, bytes: usize) -> Self {
        self.media_count = count;
        self.media_bytes = bytes;
        self
    }

    /// Sets the bytes of structured output.
    #[must_use]
    pub fn with_structured_bytes(mut self, bytes: usize) -> Self {
        self.structured_bytes = bytes;
        self
    }

    /// Sets whether the model can see images.
    #[must_use]
    pub fn with_images(mut self, images: bool) -> Self {
        self.images = images;
        self
    }
}

/// What was left out of one output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cut {
    /// Bytes of text.
    pub text_bytes: usize,
    /// Images and documents.
    pub media: usize,
    /// Blocks that have no place in a result.
    pub foreign_blocks: usize,
    /// Bytes of structured output; it is kept whole or not at all.
    pub structured_bytes: usize,
}

impl Cut {
    /// Whether everything was kept.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// The whole text of an output that is about to be cut.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spill {
    /// The call.
    pub call: CallId,
    /// The tool's public name.
    pub tool: Arc<str>,
    /// The text blocks, joined by line breaks.
    pub text: String,
}

/// Keeps whole outputs for the host: in a file, a store, a view. The loop itself writes nothing.
///
/// # Contract
///
/// - An error or a panic loses nothing but the pointer: the result is cut all the same, and says that the rest was not
///   kept.
/// - A slow sink holds up its own call only. The future is dropped with the call's.
#[async_trait]
pub trait SpillSink: Send + Sync + 'static {
    /// Keeps a text, and says in words for the model where it is and how to get at it.
    ///
    /// # Errors
    ///
    /// Why it could not be kept; the model sees the message.
    async fn spill(&self, spill: Spill) -> Result<String, ToolError>;
}

#[async_trait]
impl<S: SpillSink + ?Sized> SpillSink for Arc<S> {
    async fn spill(&self, spill: Spill) -> Result<String, ToolError> {
        (**self).spill(spill).await
    }
}

/// The whole text of an output, if it would be cut.
pub fn spill_of(output: &ToolOutput, limits: &OutputLimits, call: &CallId, tool: &Arc<str>) -> Option<Spill> {
    (text_bytes(&output.blocks) > limits.result_bytes).then(|| {
        let text = output.blocks.iter().filter_map(Block::as_text).collect::<Vec<_>>().join("\n");
        Spill { call: call.clone(), tool: Arc::clone(tool), text }
    })
}

/// Cuts an output to the limits. `kept` says where the whole text is, in words for the model.
pub fn limit(output: ToolOutput, limits: &OutputLimits, kept: Option<&str>) -> (ToolOutput, Cut) {
    let ToolOutput { blocks, is_error, structured, attachments } = output;
    let mut cut = Cut::default();
    let mut media = 0;
    let blocks = blocks.into_iter().map(|block| match block {
        Block::Text { .. } => block,
        Block::Image(m) => match refused(&m, true, &mut media, limits) {
            Some(why) => left_out(&m, &why, &mut cut),
            None => Block::Image(m),
        },
        Block::Document(m) => match refused(&m, false, &mut media, limits) {
            Some(why) => left_out(&m, &why, &mut cut),
            None => Block::Document(m),
        },
        _ => {
            cut.foreign_blocks += 1;
            Block::text("[left out: a tool result holds text, images and documents]")
        }
    });
    let mut blocks: Vec<Block> = blocks.collect();
    cut.text_bytes = cut_blocks(&mut blocks, limits.result_bytes, kept);
    if blocks.iter().all(|b| b.as_text().is_some_and(|text| text.trim().is_empty())) {
        // Some wires refuse empty results, and a model reads silence as a failure.
        blocks = vec![Block::text("(no output)")];
    }
    let size = structured.as_ref().map_or(0, json_bytes);
    let structured = structured.filter(|_| size <= limits.structured_bytes);
    if size > limits.structured_bytes {
        cut.structured_bytes = size;
    }
    (ToolOutput { blocks, is_error, structured, attachments }, cut)
}

/// Cuts an output to the limits, after the sink, if there is one, has kept the whole of what is about to be cut.
///
/// Cancellation safe: dropping the future drops the sink's with it.
pub async fn limit_and_spill(
    output: ToolOutput,
    limits: &OutputLimits,
    sink: Option<&dyn SpillSink>,
    call: &CallId,
    tool: &Arc<str>,
) -> (ToolOutput, Cut) {
    let spill = sink.and_then(|sink| Some((sink, spill_of(&output, limits, call, tool)?)));
    let kept = match spill {
        None => None,
        // Host code: a panic must not take the result with it, wherever in the sink it happens.
        Some((sink, spill)) => {
            let kept = AssertUnwindSafe(async { sink.spill(spill).await }).catch_unwind().await;
            Some(match kept {
                Ok(Ok(pointer)) => pointer,
                Ok(Err(error)) => format!("the whole could not be kept: {error}"),
                Err(_panic) => "the whole could not be kept".to_owned(),
            })
        }
    };
    limit(output, limits, kept.as_deref())
}

/// Cuts the results of one answer so that together they hold no more than `bytes` of text: short results stay whole,
/// long ones are cut to one common size. Gives back the bytes that were left out. The same results are always cut
/// the same way, whichever call ended first.
pub fn limit_together(results: &mut [ToolResult], bytes: usize) -> usize {
    let mut sizes: Vec<usize> = results.iter().map(|r| text_bytes(&r.content)).collect();
    if sizes.iter().sum::<usize>() <= bytes {
        return 0;
    }
    sizes.sort_unstable();
    let mut left = bytes;
    let mut share = 0;
    for (index, size) in sizes.iter().enumerate() {
        share = left / (sizes.len() - index);
        if *size > share {
            break;
        }
        left -= size;
    }
    results.iter_mut().map(|result| cut_blocks(&mut result.content, share, None)).sum()
}

/// Why an image or document is not sent.
fn refused(media: &Media, image: bool, count: &mut usize, limits: &OutputLimits) -> Option<String> {
    if image && !limits.images {
        return Some("this model sees no images".to_owned());
    }
    let size = match &media.source {
        MediaSource::Base64(data) => data.len(),
        MediaSource::Url(_) => 0,
    };
    if size > limits.media_bytes {
        return Some(format!("{size} characters of base64 are more than {}", limits.media_bytes));
    }
    *count += 1;
    (*count > limits.media_count).then(|| format!("a result holds at most {}", limits.media_count))
}

fn left_out(media: &Media, why: &str, cut: &mut Cut) -> Block {
    cut.media += 1;
    let name = media.name.as_deref().map(|n| format!(" {}", head(n, 200))).unwrap_or_default();
    Block::text(format!("[{}{name} left out: {why}]", head(&media.media_type, 100)))
}

fn text_bytes(blocks: &[Block]) -> usize {
    blocks.iter().filter_map(Block::as_text).map(str::len).sum()
}

/// Keeps the head and the tail of the text of all blocks together, and puts a notice between them. Blocks that are no
/// text stay where they are. Gives back the bytes that were left out.
fn cut_blocks(blocks: &mut Vec<Block>, limit: usize, kept: Option<&str>) -> usize {
    let total = text_bytes(blocks);
    if total <= limit {
        return 0;
    }
    // The end of an output says how it went, the beginning what it was: two fifths and three.
    let head_end = limit / 5 * 2;
    let tail_start = total - (limit - head_end);
    let mut out: Vec<Block> = Vec::with_capacity(blocks.len());
    let mut notice_at = None;
    let (mut place, mut dropped) = (0, 0);
    for block in std::mem::take(blocks) {
        let Block::Text { text } = block else {
            out.push(block);
            continue;
        };
        let (start, end) = (place, place + text.len());
        place = end;
        if end <= head_end || start >= tail_start {
            out.push(Block::Text { text });
            continue;
        }
        let first = head(&text, head_end.saturating_sub(start));
        let last = tail(&text, end.saturating_sub(tail_start));
        dropped += text.len() - first.len() - last.len();
        if notice_at.is_none() {
            notice_at = Some((out.len(), first.len()));
        } else if last.is_empty() {
            // All of it is between head and tail.
            continue;
        }
        out.push(Block::text(format!("{first}{last}")));
    }
    if let Some((index, at)) = notice_at
        && let Some(Block::Text { text }) = out.get_mut(index)
    {
        text.insert_str(at, &notice(dropped, total, kept));
    }
    *blocks = out;
    dropped
}

fn notice(dropped: usize, total: usize, kept: Option<&str>) -> String {
    let kept = kept.map(|kept| format!("; {}", head(kept, 1_000))).unwrap_or_default();
    format!("\n[… {dropped} bytes of {total} are left out here{kept} …]\n")
}

/// The longest beginning of at most so many bytes that ends between two characters.
fn head(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// The longest end of at most so many bytes that begins between two characters.
fn tail(text: &str, bytes: usize) -> &str {
    let mut start = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text.get(start..).unwrap_or_default()
}

/// The size of a value as JSON, without writing it anywhere.
fn json_bytes(value: &Value) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        // Cannot happen for a `Value`; if it does, it is too large to keep.
        Err(_) => usize::MAX,
    }
}

#[cfg(test)]
mod tests;
