//! Calls in several rounds: a modern server ends a call with questions, and the call is made again with the answers
//! (MCP 2026-07-28, "Multi Round-Trip Requests").

use serde_json::Value;

use super::json::Object;

/// How often a call is made again, as the official Rust client does. A server that still asks then never ends.
pub(crate) const MAX_ROUNDS: usize = 10;

/// How many questions one round may hold.
const MAX_QUESTIONS: usize = 32;

/// What a server needs before it goes on.
#[derive(Debug, PartialEq)]
pub(crate) struct InputRequired {
    /// Key, method and parameters of each question.
    pub(crate) questions: Vec<(String, String, Object)>,
    /// What the server wants to have back, exactly as it gave it.
    pub(crate) state: Option<Value>,
}

/// Reads what kind of result it is from the members beside its content: complete, or in need of input.
///
/// A result that does not say is complete. The error says why the result is invalid.
pub(crate) fn input_required(extra: &mut Object, may_ask: bool) -> Result<Option<InputRequired>, String> {
    match extra.shift_remove("resultType") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(kind)) if kind == "complete" => return Ok(None),
        Some(Value::String(kind)) if kind == "input_required" && may_ask => {}
        Some(Value::String(kind)) if kind == "input_required" => {
            return Err(
                "it asks for input, which only tools/call, prompts/get and resources/read may".to_owned()
            );
        }
        Some(other) => return Err(format!("its resultType is {other}, which is unknown")),
    }
    let state = extra.shift_remove("requestState").filter(|state| !state.is_null());
    let mut questions = Vec::new();
    match extra.shift_remove("inputRequests") {
        None | Some(Value::Null) => {}
        Some(Value::Object(asked)) if asked.len() <= MAX_QUESTIONS => {
            for (key, question) in asked {
                let method = question.get("method").and_then(Value::as_str);
                let method =
                    method.ok_or_else(|| format!("its question \"{key}\" names no method"))?.to_owned();
                let params = question.get("params").and_then(Value::as_object).cloned().unwrap_or_default();
                questions.push((key, method, params));
            }
        }
        Some(Value::Object(asked)) => {
            return Err(format!(
                "it asks {} questions at once, over the limit of {MAX_QUESTIONS}",
                asked.len()
            ));
        }
        Some(_) => return Err("its inputRequests are no object".to_owned()),
    }
    if questions.is_empty() && state.is_none() {
        return Err("it asks for input but says neither which nor what to send back".to_owned());
    }
    Ok(Some(InputRequired { questions, state }))
}

/// What is added to the parameters of the next round.
pub(crate) fn next_round(answers: Object, state: Option<Value>) -> Object {
    let mut round = Object::new();
    if !answers.is_empty() {
        round.insert("inputResponses".to_owned(), Value::Object(answers));
    }
    if let Some(state) = state {
        round.insert("requestState".to_owned(), state);
    }
    round
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(extra: &Value, may_ask: bool) -> Result<Option<InputRequired>, String> {
        input_required(&mut extra.as_object().cloned().unwrap(), may_ask)
    }

    #[test]
    fn a_result_is_complete_unless_it_says_otherwise() {
        for extra in
            [json!({}), json!({"resultType": null}), json!({"resultType": "complete", "requestState": "x"})]
        {
            assert_eq!(read(&extra, true), Ok(None));
        }
        for extra in [
            json!({"resultType": "task"}),
            json!({"resultType": 1}),
            json!({"resultType": "input_required"}),
            json!({"resultType": "input_required", "inputRequests": []}),
            json!({"resultType": "input_required", "inputRequests": {"a": {}}}),
        ] {
            assert!(read(&extra, true).is_err(), "{extra}");
        }
        assert!(read(&json!({"resultType": "input_required", "requestState": "x"}), false).is_err());
    }

    #[test]
    fn questions_keep_their_keys_and_the_state_comes_back_unchanged() {
        let state = "st\u{e4}te|1=\"\\/";
        let extra = json!({"resultType": "input_required", "requestState": state,
            "inputRequests": {"who": {"method": "elicitation/create", "params": {"message": "Name?"}}}});
        let required = read(&extra, true).unwrap().unwrap();
        assert_eq!(required.questions[0].0, "who");
        let round =
            next_round(json!({"who": {"action": "accept"}}).as_object().cloned().unwrap(), required.state);
        assert_eq!(
            Value::Object(round),
            json!({"inputResponses": {"who": {"action": "accept"}}, "requestState": state})
        );
    }
}
