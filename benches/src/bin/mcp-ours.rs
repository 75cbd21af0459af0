//! Our contestant among MCP clients over standard input and output: `--server PROGRAM --case C --iters N --warmup W`
//! `--size BYTES --tools T --rt multi|current`.
//!
//! The server is started with `--size` and `--tools` and answers every call with a text of that size. `startup` times
//! the start, the handshake and a list of the tools; `seq` (and `instr`, for instruction counters) one call at a time;
//! `pipe` `--conc` tasks over one connection; `mem` what `--servers` connections hold that were used once.

use std::sync::Arc;
use std::time::Instant;

use haversack_benches::contest::{Flags, Report, Resources, Sample, memory_kib, threads};
use haversack_mcp_client::protocol::{EraChoice, ToolInfo};
use haversack_mcp_client::{Client, ClientOptions, ServerCommand};
use serde_json::Value;

fn main() {
    let flags = Flags::of_process();
    let runtime = match flags.text("rt", "multi") {
        "current" => tokio::runtime::Builder::new_current_thread().enable_all().build(),
        _ => {
            let workers = flags.number("workers", 2);
            tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build()
        }
    };
    // In a task, as a host's code is: `block_on` itself would wake another thread at every await.
    let contest = async { tokio::spawn(run(flags)).await };
    runtime.expect("a runtime").block_on(contest).expect("the case ends").print();
}

async fn run(flags: Flags) -> Report {
    let report = Report::new("mcp", "ours", flags.text("case", "seq"));
    let iterations = flags.number("iters", 1_000);
    let contest = Contest {
        server: flags.required("server").to_owned(),
        size: flags.number("size", 100),
        tools: flags.number("tools", 20),
        warmup: flags.number("warmup", iterations / 10),
        iterations,
    };
    match flags.text("case", "seq") {
        "startup" => contest.startup(report).await,
        "seq" | "instr" => contest.one_at_a_time(report).await,
        "pipe" => contest.in_flight(report, flags.number("conc", 16)).await,
        "mem" => contest.memory(report, flags.number("servers", 1)).await,
        other => panic!("there is no case {other}"),
    }
}

struct Contest {
    server: String,
    size: usize,
    tools: usize,
    iterations: usize,
    warmup: usize,
}

impl Contest {
    async fn connect(&self) -> Client {
        let arguments =
            ["--size".to_owned(), self.size.to_string(), "--tools".to_owned(), self.tools.to_string()];
        let command = ServerCommand::new(&self.server).args(arguments).envs(std::env::vars_os());
        // The server knows the handshake only; asking for the other era first would time a question of no use.
        let options = ClientOptions::new("bench", "0").with_era(EraChoice::Legacy);
        Client::start(&command, options).await.expect("the server starts")
    }

    async fn list(&self, client: &Client) -> Vec<ToolInfo> {
        let tools = client.list_tools().await.expect("a list of tools").items;
        assert_eq!(tools.len(), self.tools, "every tool is listed");
        tools
    }

    async fn startup(self, report: Report) -> Report {
        let mut sample = Sample::default();
        for number in 0..self.iterations + self.warmup {
            let start = Instant::now();
            let client = self.connect().await;
            let tools = self.list(&client).await;
            let took = start.elapsed();
            client.close().await;
            drop(tools);
            if number >= self.warmup {
                sample.push(took);
            }
        }
        report.sample(&sample)
    }

    async fn one_at_a_time(self, report: Report) -> Report {
        let client = self.connect().await;
        for _ in 0..self.warmup {
            call(&client, self.size).await;
        }
        let (before, start) = (Resources::now(), Instant::now());
        let mut sample = Sample::default();
        for _ in 0..self.iterations {
            let start = Instant::now();
            call(&client, self.size).await;
            sample.push(start.elapsed());
        }
        let wall = start.elapsed().as_secs_f64() * 1e3;
        let report = report.with("size", self.size).with("wall_ms", wall).sample(&sample).used_since(before);
        client.close().await;
        report.with("tenths_us", sample.tenths_us())
    }

    async fn in_flight(self, report: Report, tasks: usize) -> Report {
        let client = self.connect().await;
        for _ in 0..self.warmup.min(200) {
            call(&client, self.size).await;
        }
        let (before, start) = (Resources::now(), Instant::now());
        let size = self.size;
        let calls = |number: usize| self.iterations / tasks + usize::from(number < self.iterations % tasks);
        let running: Vec<_> = (0..tasks)
            .map(|number| {
                let (client, calls) = (client.clone(), calls(number));
                tokio::spawn(async move {
                    for _ in 0..calls {
                        call(&client, size).await;
                    }
                })
            })
            .collect();
        for task in running {
            task.await.expect("every call is answered");
        }
        let wall = start.elapsed().as_secs_f64();
        let (calls, bytes) = (self.iterations as f64, self.size as f64);
        let report = report
            .with("size", self.size)
            .with("conc", tasks)
            .with("n", self.iterations)
            .with("wall_ms", wall * 1e3)
            .with("calls_per_s", calls / wall)
            .with("mb_per_s", calls * bytes / wall / 1e6)
            .used_since(before);
        client.close().await;
        report
    }

    async fn memory(self, report: Report, servers: usize) -> Report {
        let base = memory_kib("VmRSS");
        let mut held = Vec::new();
        for _ in 0..servers {
            let client = self.connect().await;
            let tools: Arc<[ToolInfo]> = self.list(&client).await.into();
            call(&client, self.size).await;
            held.push((client, tools));
        }
        let report = report
            .with("servers", servers)
            .with("base_kib", base)
            .with("rss_kib", memory_kib("VmRSS"))
            .with("pss_kib", memory_kib("Pss"))
            .with("private_kib", memory_kib("Private_Dirty"))
            .with("hwm_kib", memory_kib("VmHWM"))
            .with("threads", threads());
        for (client, _) in held {
            client.close().await;
        }
        report
    }
}

/// One call, its arguments built anew, its answer read down to the text.
async fn call(client: &Client, size: usize) {
    let Value::Object(arguments) = serde_json::json!({ "path": "src/main.rs", "limit": 10 }) else { return };
    let answer = client.call_tool("tool_0", arguments).await.expect("the call is answered");
    let text = answer.content.first().and_then(|content| content.as_text()).unwrap_or_default();
    assert_eq!(text.len(), size, "the whole text came back");
}
