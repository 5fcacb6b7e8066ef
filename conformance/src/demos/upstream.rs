//! An upstream of a demo, in this process: one thread for each connection, one request on each.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use anyhow::Result;

/// A request that the upstream got.
pub(super) struct UpstreamRequest {
    /// Method and path.
    pub(super) line: String,
    /// The lines of the head.
    head: String,
    pub(super) body: String,
}

impl UpstreamRequest {
    /// The value of a header.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

/// A response of the upstream. Several parts are sent one by one, as a stream.
pub(super) struct UpstreamResponse {
    pub(super) status: &'static str,
    pub(super) content_type: &'static str,
    pub(super) parts: Vec<String>,
}

type Handler = dyn Fn(&UpstreamRequest) -> UpstreamResponse + Send + Sync;

/// Starts an upstream, and returns its URL. It ends with this process.
pub(super) fn start(
    handler: impl Fn(&UpstreamRequest) -> UpstreamResponse + Send + Sync + 'static,
) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    let handler: Arc<Handler> = Arc::new(handler);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let handler = Arc::clone(&handler);
            // A proxy that has closed its connection needs no response.
            thread::spawn(move || serve(stream, &*handler).ok());
        }
    });
    Ok(url)
}

fn serve(stream: TcpStream, handler: &Handler) -> Result<()> {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    let mut lengths = lines.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = lengths.next().and_then(|(_, value)| value.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body)?;
    let line = head.split(" HTTP/").next().unwrap_or_default().to_owned();
    let body = String::from_utf8_lossy(&body).into_owned();
    let request = UpstreamRequest { line, head, body };
    let UpstreamResponse { status, content_type, parts } = handler(&request);
    let out = stream.get_mut();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\
         connection: close\r\n\r\n"
    );
    out.write_all(head.as_bytes())?;
    for part in parts {
        out.write_all(format!("{:x}\r\n{part}\r\n", part.len()).as_bytes())?;
    }
    out.write_all(b"0\r\n\r\n")?;
    Ok(())
}
