//! An MCP server that costs next to nothing: what the MCP bench talks to over real pipes.
//!
//! Its answers are rendered once; of a request only the id and the method are looked for, as text, so that what is
//! measured is the client. It speaks the handshake of 2025-06-18. `--size BYTES` is the length of the text that every call gives
//! (100 unless told), `--tools N` how many tools it lists (`tool_0` and so on; one unless told).

use std::io::{self, BufRead as _, BufReader, Write as _};

use haversack_benches::contest::Flags;

/// Bytes of one read and of the answers that are written together.
const BUFFER: usize = 64 << 10;

fn main() -> io::Result<()> {
    let flags = Flags::of_process();
    let size = flags.number("size", 100);
    let tools: Vec<_> = (0..flags.number("tools", 1))
        .map(|n| {
            format!(r#"{{"name":"tool_{n}","description":"Reads a file","inputSchema":{{"type":"object"}}}}"#)
        })
        .collect();
    let listed = format!(r#"{{"tools":[{}]}}"#, tools.join(","));
    let called =
        format!(r#"{{"content":[{{"type":"text","text":"{}"}}],"isError":false}}"#, "x".repeat(size));
    let mut input = BufReader::with_capacity(BUFFER, io::stdin().lock());
    let mut output = io::stdout().lock();
    let (mut line, mut answers) = (String::new(), Vec::with_capacity(BUFFER));
    loop {
        line.clear();
        if input.read_line(&mut line)? == 0 {
            return Ok(());
        }
        if let Some(id) = member(&line, "\"id\":") {
            let result = match member(&line, "\"method\":").unwrap_or_default() {
                "\"initialize\"" => concat!(
                    r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"#,
                    r#""serverInfo":{"name":"stub","version":"1"}}"#
                ),
                "\"tools/list\"" => &listed,
                "\"tools/call\"" => &called,
                "\"ping\"" => "{}",
                _ => "",
            };
            answers.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
            answers.extend_from_slice(id.as_bytes());
            if result.is_empty() {
                answers.extend_from_slice(br#","error":{"code":-32601,"message":"method not found"}}"#);
            } else {
                answers.extend_from_slice(br#","result":"#);
                answers.extend_from_slice(result.as_bytes());
                answers.push(b'}');
            }
            answers.push(b'\n');
        }
        // Requests that came together are answered together.
        if !input.buffer().contains(&b'\n') || answers.len() >= BUFFER {
            output.write_all(&answers)?;
            output.flush()?;
            answers.clear();
        }
    }
}

/// The text of a plain member that stands before all nested ones, as the clients of the bench write it.
fn member<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let rest = &line[line.find(key)? + key.len()..];
    rest.split([',', '}']).next()
}
