//! Walking in circles: the same call with the same result, and tools that do not exist.

use std::sync::Arc;

use serde_json::Value;

use crate::event::Event;
use crate::message::{Block, Media, MediaSource, ToolCall, ToolResult, ToolStatus};
use crate::outcome::{Outcome, StopCause};
use crate::session::Session;
use crate::session::open::Repeat;
use crate::state::RunState;

/// Distinct calls that the detection of repeats remembers.
const REMEMBERED_CALLS: usize = 64;

impl RunState {
    /// The same call with the same result again and again: the model is told, then the run stops.
    pub(super) fn notice_repeats(
        &mut self,
        session: &mut Session,
        place: usize,
        call: &ToolCall,
        result: &mut ToolResult,
    ) {
        if result.status == ToolStatus::NotStarted {
            return;
        }
        let Some(slot) = Self::slot(session, place) else { return };
        let key = repeat_key(call, slot.arguments(call), result);
        let repeats = &mut session.open.repeats;
        let times = match repeats.iter_mut().find(|r| r.key == key) {
            Some(repeat) => {
                repeat.times = repeat.times.saturating_add(1);
                repeat.times
            }
            None => {
                if repeats.len() >= REMEMBERED_CALLS {
                    repeats.remove(0);
                }
                repeats.push(Repeat { key, times: 1 });
                1
            }
        };
        let limits = &self.ancestry.limits;
        if times >= limits.repeat_stop {
            self.end_with(StopCause::Repeats { tool: Arc::clone(&call.name), times });
        } else if times >= limits.repeat_nudge {
            let note = format!(
                "Note: this is the same call with the same result ({times} times by now). Try something else, or say what is missing."
            );
            result.content.push(Block::text(note));
            self.events.push_back(Event::RepeatNoticed { name: Arc::clone(&call.name), times });
        }
    }

    /// Whether the run is about to end because the same call was made too often.
    pub(super) fn walks_in_circles(&self) -> bool {
        matches!(&self.verdict_on_run, Some(Ok(Outcome::Stopped { why: StopCause::Repeats { .. } })))
    }

    /// Answers in a row that call tools which do not exist, and none that does: each gets the real names, and
    /// after a few of them that does not help. A new name each time is no way around it.
    pub(super) fn count_unknown_tools(&mut self, session: &mut Session) {
        let count = &mut session.open.unknown_tools;
        if std::mem::take(&mut self.any_ok) {
            self.unknown_tool = false;
            *count = 0;
        }
        if std::mem::take(&mut self.unknown_tool) {
            *count = count.saturating_add(1);
            let times = *count;
            if times >= self.ancestry.limits.repeat_stop && self.verdict_on_run.is_none() {
                self.end_with(StopCause::UnknownTools { times });
            }
        }
    }
}

/// What makes two calls the same: tool, arguments and what came back.
fn repeat_key(call: &ToolCall, arguments: &Value, result: &ToolResult) -> u64 {
    let mut key = StableHash::default();
    key.text(&call.name);
    key.text(call.malformed.as_deref().unwrap_or_default());
    key.json(arguments);
    key.word(match result.status {
        ToolStatus::Ok => 1,
        ToolStatus::Error => 2,
        ToolStatus::Denied => 3,
        ToolStatus::NotStarted => 4,
        ToolStatus::Interrupted => 5,
    });
    for block in &result.content {
        match block {
            Block::Text { text } => key.text(text),
            Block::Image(media) | Block::Document(media) => key.media(media),
            _ => {}
        }
    }
    key.0
}

/// A hash that is the same in every build and on every machine, since it is stored with the session. It has to be
/// quick over long outputs and tell calls apart; nobody is kept out by it.
#[derive(Default)]
struct StableHash(u64);

impl StableHash {
    fn word(&mut self, word: u64) {
        /// Odd and without a pattern: digits of the golden ratio and of pi.
        const FACTORS: (u64, u64) = (0x9e37_79b9_7f4a_7c15, 0x2437_54a0_88a3_0d31);
        let wide = u128::from(self.0 ^ word ^ FACTORS.1) * u128::from(FACTORS.0);
        let [low, high] = [wide, wide >> 64].map(|half| {
            let bytes = half.to_le_bytes();
            bytes.first_chunk().copied().map_or(0, u64::from_le_bytes)
        });
        self.0 = (low ^ high).rotate_left(23);
    }

    fn text(&mut self, text: &str) {
        self.word(text.len() as u64);
        let (words, rest) = text.as_bytes().as_chunks();
        words.iter().for_each(|word| self.word(u64::from_le_bytes(*word)));
        let mut last = [0; 8];
        last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        self.word(u64::from_le_bytes(last));
    }

    fn media(&mut self, media: &Media) {
        match &media.source {
            MediaSource::Base64(data) => self.text(data),
            MediaSource::Url(url) => self.text(url),
        }
    }

    fn json(&mut self, value: &Value) {
        match value {
            Value::Null => self.word(0),
            Value::Bool(b) => self.word(1 + u64::from(*b)),
            // As it is written: numbers have one form.
            Value::Number(n) => {
                self.word(3);
                self.text(&n.to_string());
            }
            Value::String(text) => {
                self.word(4);
                self.text(text);
            }
            Value::Array(items) => {
                self.word(5);
                self.word(items.len() as u64);
                items.iter().for_each(|item| self.json(item));
            }
            Value::Object(map) => {
                self.word(6);
                // The order of keys does not matter.
                let sum = map.iter().fold(0_u64, |sum, (key, item)| {
                    let mut entry = Self::default();
                    entry.text(key);
                    entry.json(item);
                    sum.wrapping_add(entry.0)
                });
                self.word(sum);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::json;

    use super::*;

    fn key(arguments: &Value, text: &str, status: ToolStatus) -> u64 {
        let call = ToolCall::new("id", "tool", arguments.clone());
        repeat_key(&call, arguments, &ToolResult::new("id", "tool", status, vec![Block::text(text)]))
    }

    #[test]
    fn keys_are_the_same_in_every_build_because_sessions_keep_them() {
        let arguments = json!({"b": [1, 2.5, null, true], "a": {"text": "ä"}});
        assert_eq!(key(&arguments, "what came back", ToolStatus::Ok), 2_138_173_269_073_603_849);
        assert_eq!(key(&json!({}), "", ToolStatus::Error), 17_560_747_011_012_535_281);
    }

    #[test]
    fn the_order_of_keys_does_not_matter_and_everything_else_does() {
        let ok = ToolStatus::Ok;
        assert_eq!(key(&json!({"a": 1, "b": 2}), "x", ok), key(&json!({"b": 2, "a": 1}), "x", ok));
        let different = [
            key(&json!({"a": 1, "b": 2}), "x", ok),
            key(&json!({"a": 2, "b": 1}), "x", ok),
            key(&json!({"a": 1, "b": 2}), "y", ok),
            key(&json!({"a": 1, "b": 2}), "x", ToolStatus::Error),
            key(&json!({"a": 1, "b": "2"}), "x", ok),
            key(&json!({"a": [1, 2]}), "x", ok),
            key(&json!({"a": [[1], 2]}), "x", ok),
            key(&json!({"a": [12]}), "x", ok),
            key(&json!({"a": "12345678"}), "x", ok),
            key(&json!({"a": "123456780"}), "x", ok),
            key(&json!({"a": "12345678\u{0}"}), "x", ok),
        ];
        assert_eq!(different.iter().collect::<HashSet<_>>().len(), different.len());
    }
}
