//! Any bytes as the answer of Anthropic's API, streamed and whole.
#![no_main]

#[path = "answers.rs"]
mod answers;

use haversack_providers::Anthropic;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (bool, &[u8])| {
    let (streams, body) = input;
    answers::read_but(
        answers::PREVIEWS,
        |http| {
            let model = Anthropic::new(http, "http://in.memory", "m");
            Box::new(if streams { model } else { model.without_streaming() })
        },
        body,
    );
});
