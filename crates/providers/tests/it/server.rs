//! A server on loopback that answers with recorded bytes: a path for each answer.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::memory::Reply;

/// Serves each reply under `/KEY/…`, for as long as the test runs. Gives the address without the key.
pub(crate) async fn serve(replies: HashMap<String, Reply>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let replies = Arc::new(replies);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let replies = Arc::clone(&replies);
            tokio::spawn(async move { answer_all(stream, &replies).await });
        }
    });
    address
}

async fn answer_all(mut stream: TcpStream, replies: &HashMap<String, Reply>) {
    let mut buffer = Vec::new();
    while let Some(path) = request(&mut stream, &mut buffer).await {
        let key = path.split('/').nth(1).unwrap_or_default();
        let Some(reply) = replies.get(key) else { panic!("no answer for {path}") };
        let mut head = format!("HTTP/1.1 {} X\r\ntransfer-encoding: chunked\r\n", reply.status);
        for (name, value) in &reply.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        for piece in reply.body.chunks(reply.piece.clamp(1, 1 << 20)) {
            bytes.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            bytes.extend_from_slice(piece);
            bytes.extend_from_slice(b"\r\n");
        }
        if !reply.breaks {
            bytes.extend_from_slice(b"0\r\n\r\n");
        }
        if stream.write_all(&bytes).await.is_err() || reply.breaks {
            return;
        }
    }
}

/// Reads one request and gives its path.
async fn request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<String> {
    loop {
        if let Some(end) = buffer.windows(4).position(|w| w == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length: usize = length.map_or(0, |text| text.trim().parse().unwrap());
            if buffer.len() >= end + 4 + length {
                let path = String::from_utf8_lossy(&buffer[..end]).split(' ').nth(1).map(str::to_owned);
                buffer.drain(..end + 4 + length);
                return path;
            }
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
}
