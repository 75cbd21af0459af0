//! Whatever is dropped, and whenever: nothing waits, no process is left.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use haversack_mcp_client::protocol::EraChoice;
use haversack_mcp_client::{Client, ClientOptions, Error, ServerCommand};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};

/// A server in a few lines of shell: it answers what every client asks, and writes its number where it is told to.
const SERVER: &str = r#"
echo $$ > "$PID_FILE"
while IFS= read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  case $line in
    *'"initialize"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}}}}" ;;
    *'"tools/list"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"tools\":[{\"name\":\"wait\"}]}}" ;;
    *'"ping"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{}}" ;;
    *cancelled*) echo "$line" >> "$PID_FILE.cancelled" ;;
  esac
done
"#;

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn command(&self) -> ServerCommand {
        ServerCommand::new("/bin/sh").args(["-c", SERVER]).env("PID_FILE", self.file("pid"))
    }

    /// The number of the process, once it runs.
    fn pid(&self) -> Option<String> {
        let text = std::fs::read_to_string(self.file("pid")).ok()?;
        text.ends_with('\n').then(|| text.trim().to_owned())
    }

    fn cancelled(&self) -> usize {
        std::fs::read_to_string(self.file("pid.cancelled")).unwrap_or_default().lines().count()
    }

    /// Whether the process is there, be it as a zombie.
    fn is_running(&self) -> bool {
        self.pid().is_some_and(|pid| std::path::Path::new("/proc").join(pid).exists())
    }
}

fn options() -> ClientOptions {
    ClientOptions::new("haversack-tests", "0").with_era(EraChoice::Legacy)
}

/// Polls a future that many times and drops it.
struct PollTimes<F> {
    inner: Pin<Box<F>>,
    left: usize,
}

impl<F: Future> Future for PollTimes<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        self.left -= 1;
        match self.inner.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if self.left == 0 => Poll::Ready(None),
            Poll::Pending => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }
}

fn poll_times<F: Future>(times: usize, future: F) -> PollTimes<F> {
    PollTimes { inner: Box::pin(future), left: times }
}

#[tokio::test]
async fn a_start_that_is_dropped_at_any_await_leaves_no_process() {
    let mut completed = false;
    for polls in (0..12).chain([1_000, 100_000, 10_000_000]) {
        let home = Home::new();
        let command = home.command();
        if let Some(client) = poll_times(polls, Client::start(&command, options())).await {
            completed = true;
            client.unwrap().close().await;
        }
        // The keeper ends it and reaps it; if it never got far enough to write its number, there is nothing to see.
        while home.is_running() {
            tokio::task::yield_now().await;
        }
        if completed {
            break;
        }
    }
    assert!(completed, "a start takes more polls than were tried");
}

#[tokio::test]
async fn a_call_that_is_dropped_at_any_await_leaves_nothing_waiting_and_is_cancelled() {
    let home = Home::new();
    let client = Client::start(&home.command(), options()).await.unwrap();
    for polls in 0..4 {
        // The server never answers this one.
        let called = poll_times(polls, client.call_tool("wait", serde_json::Map::new())).await;
        assert!(called.is_none());
        assert_eq!(client.in_flight(), 0, "after {polls} polls");
        client.ping().await.unwrap();
    }
    let mut listed = false;
    for polls in (0..12).chain([1_000, 100_000, 10_000_000]) {
        if listed {
            break;
        }
        listed |=
            poll_times(polls, client.list_tools()).await.is_some_and(|list| list.unwrap().items.len() == 1);
        assert_eq!(client.in_flight(), 0, "after {polls} polls");
    }
    assert!(listed);
    client.close().await;
    // A call that was never polled was never sent; of a list, it depends on when the answer came.
    assert!(home.cancelled() >= 3, "{}", home.cancelled());
}

#[tokio::test]
async fn a_close_that_is_dropped_goes_on() {
    let home = Home::new();
    let client = Client::start(&home.command(), options()).await.unwrap();
    assert_eq!(poll_times(1, client.close()).await, None);
    let exit = client.ended().await;
    assert!(exit.status.is_some_and(|status| status.success()), "{exit:?}");
    assert!(!home.is_running());
    assert!(client.ping().await.unwrap_err().is_closed());
    assert_eq!(client.close().await, exit, "closing again tells the same");
}

#[tokio::test]
async fn dropping_the_last_handle_ends_the_process() {
    let home = Home::new();
    let client = Client::start(&home.command(), options()).await.unwrap();
    let other = client.clone();
    drop(client);
    other.ping().await.unwrap();
    assert!(home.is_running());
    drop(other);
    while home.is_running() {
        tokio::task::yield_now().await;
    }
}

#[test]
fn dropping_the_runtime_ends_the_process_at_once_and_settles_what_waits() {
    for threads in [false, true] {
        let home = Home::new();
        let mut builder = if threads {
            tokio::runtime::Builder::new_multi_thread()
        } else {
            tokio::runtime::Builder::new_current_thread()
        };
        let runtime = builder.enable_all().build().unwrap();
        let client = runtime.block_on(Client::start(&home.command(), options())).unwrap();
        let waiting = client.clone();
        let mut call = pin!(waiting.call_tool("wait", serde_json::Map::new()));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(call.as_mut().poll(&mut cx).is_pending());
        assert!(home.is_running());
        drop(runtime);
        assert!(!home.is_running(), "killed and reaped before the runtime is gone");
        let Poll::Ready(Err(error)) = call.as_mut().poll(&mut cx) else { panic!("it still waits") };
        assert!(error.is_closed(), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_over_streams_times_out_by_the_clock_and_the_server_is_told() {
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    let (ours, theirs) = tokio::io::duplex(4096);
    let (reader, writer) = tokio::io::split(ours);
    let server = tokio::spawn(async move {
        let (reader, mut writer) = tokio::io::split(theirs);
        let mut lines = BufReader::new(reader).lines();
        let mut seen: Vec<Value> = Vec::new();
        while let Some(line) = lines.next_line().await.unwrap() {
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["method"] == "initialize" {
                let answer = json!({"id": message["id"], "result": {"protocolVersion": "2025-11-25"}});
                writer.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
            }
            seen.push(message);
        }
        seen
    });
    let options =
        options().with_call_timeout(Duration::from_secs(300)).with_call_limit(Duration::from_secs(200));
    let client = Client::connect(reader, writer, options).await.unwrap();
    let before = tokio::time::Instant::now();
    let error = client.call_tool("never", serde_json::Map::new()).await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert!(before.elapsed() < Duration::from_secs(1000));
    client.close().await;
    let seen = server.await.unwrap();
    let last = seen.last().unwrap();
    assert_eq!(
        (&last["method"], &last["params"]["requestId"]),
        (&json!("notifications/cancelled"), &json!(2))
    );
}

type Call = Pin<Box<dyn Future<Output = Error> + Send>>;

/// Goes on the moment it is woken, as a caller on another thread may.
struct AtOnce {
    call: Mutex<Option<Call>>,
    heard: tokio::sync::watch::Sender<Option<Error>>,
}

impl Wake for AtOnce {
    fn wake(self: Arc<Self>) {
        let waker = Waker::from(Arc::clone(&self));
        let mut call = self.call.lock().unwrap();
        if let Some(waiting) = call.as_mut()
            && let Poll::Ready(error) = waiting.as_mut().poll(&mut Context::from_waker(&waker))
        {
            *call = None;
            self.heard.send_replace(Some(error));
        }
    }
}

#[tokio::test]
async fn a_caller_who_goes_on_at_once_hears_why_the_connection_broke() {
    const LIMIT: usize = 10_000;
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    tokio::spawn(async move {
        let (reader, mut writer) = tokio::io::split(theirs);
        let mut lines = tokio::io::BufReader::new(reader).lines();
        lines.next_line().await.unwrap();
        let opening = b"{\"id\":1,\"result\":{\"protocolVersion\":\"2025-06-18\"}}\n";
        writer.write_all(opening).await.unwrap();
        while !lines.next_line().await.unwrap().unwrap().contains("tools/call") {}
        while writer.write_all(&[b'x'; 1000]).await.is_ok() {}
    });
    let (reader, writer) = tokio::io::split(ours);
    let client = Client::connect(reader, writer, options().with_max_line_bytes(LIMIT)).await.unwrap();
    let calling = client.clone();
    let call = async move { calling.call_tool("wait", serde_json::Map::new()).await.unwrap_err() };
    let (heard, mut hears) = tokio::sync::watch::channel(None);
    Arc::new(AtOnce { call: Mutex::new(Some(Box::pin(call))), heard }).wake();
    let error = hears.wait_for(Option::is_some).await.unwrap().as_ref().unwrap().to_string();
    assert!(error.contains("does not end") && error.contains("limit of 10000 bytes"), "{error}");
}
