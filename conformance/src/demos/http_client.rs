//! One HTTP request on a connection of its own.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result};

const TIMEOUT: Duration = Duration::from_secs(30);

/// A request of a story.
#[derive(Clone, Copy)]
pub(super) struct DemoRequest<'a> {
    /// Method and path.
    pub(super) line: &'a str,
    pub(super) headers: &'a [(&'a str, &'a str)],
    pub(super) body: &'a str,
}

/// A response.
pub(super) struct DemoResponse {
    pub(super) status: u16,
    head: String,
    pub(super) body: String,
}

impl DemoResponse {
    /// The value of a header.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        let mut values = lines.filter(|(own, _)| own.eq_ignore_ascii_case(name));
        values.next().map(|(_, value)| value.trim())
    }
}

/// Sends a request and reads the whole response.
pub(super) fn send(address: &str, request: &DemoRequest<'_>) -> Result<DemoResponse> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let DemoRequest { line, headers, body } = request;
    let mut text = format!("{line} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    for (name, value) in *headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() {
        let length = body.len();
        text.push_str(&format!("Content-Type: application/json\r\nContent-Length: {length}\r\n"));
    }
    stream.write_all(format!("{text}\r\n{body}").as_bytes())?;
    let mut received = Vec::new();
    stream.read_to_end(&mut received)?;
    let received = String::from_utf8_lossy(&received);
    let (head, body) = received.split_once("\r\n\r\n").context("no response")?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let body = if is_chunked { join_chunks(body) } else { body.to_owned() };
    Ok(DemoResponse { status: status.context("no status")?, head: head.to_owned(), body })
}

/// The chunks of a body of ASCII, without their sizes.
fn join_chunks(mut body: &str) -> String {
    let mut joined = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        let Some(chunk) = rest.get(..size).filter(|chunk| !chunk.is_empty()) else { break };
        joined.push_str(chunk);
        body = rest.get(size + 2..).unwrap_or_default();
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_joined() {
        assert_eq!(join_chunks("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"), "abcde");
        assert_eq!(join_chunks("3\r\nab"), "");
    }
}
