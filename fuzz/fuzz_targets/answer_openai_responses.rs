//! Any bytes as the answer of OpenAI's Responses API, streamed and whole.
#![no_main]

#[path = "answers.rs"]
mod answers;

use haversack_providers::OpenAiResponses;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (bool, &[u8])| {
    let (streams, body) = input;
    answers::read_but(
        answers::PREVIEWS,
        |http| {
            let model = OpenAiResponses::new(http, "http://in.memory", "m");
            Box::new(if streams { model } else { model.without_streaming() })
        },
        body,
    );
});
