//! One connection: a request that is only patched, and an answer read without copying.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

/// The largest answer.
const ANSWER_BYTES_MAX: usize = 16 << 10;
/// The digits of a key, before they are patched.
const KEY: &str = "00000000";
/// What an answer that lets pass says.
const PASSED: &[u8] = br#""allowed":true"#;

/// One connection.
pub struct Wire {
    /// The socket.
    pub stream: TcpStream,
    request: Vec<u8>,
    /// Where the key's digits are.
    key_at: usize,
    answer: Vec<u8>,
    filled: usize,
    asked: Instant,
}

/// What the connection received.
pub enum Event {
    /// Not all of an answer yet.
    Nothing,
    /// An answer.
    Answer {
        /// Whether it lets pass.
        passed: bool,
        /// When it was asked, or due.
        asked: Instant,
    },
}

impl Wire {
    /// Connects; the path or the body holds `{key}` once.
    pub fn connect(port: u16, path: &str, body: &str) -> Result<Self, String> {
        let stream =
            TcpStream::connect(("127.0.0.1", port)).map_err(|e| format!("connect: {e}"))?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        stream.set_nonblocking(true).map_err(|error| error.to_string())?;
        let body = body.replace("{key}", KEY);
        let path = path.replace("{key}", KEY);
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        let request = head + &body;
        let key_at = request.find(KEY).ok_or("neither path nor body has {key}")?;
        let request = request.into_bytes();
        let answer = vec![0; ANSWER_BYTES_MAX];
        Ok(Self { stream, request, key_at, answer, filled: 0, asked: Instant::now() })
    }

    /// Sends a request for a key.
    pub fn ask(&mut self, mut key: u64, asked: Instant) -> Result<(), String> {
        for digit in self.request[self.key_at..self.key_at + KEY.len()].iter_mut().rev() {
            *digit = b'0' + (key % 10) as u8;
            key /= 10;
        }
        self.asked = asked;
        self.filled = 0;
        // One request is in flight per connection, so the socket's buffer always has room for it.
        self.stream.write_all(&self.request).map_err(|error| format!("send: {error}"))
    }

    /// Reads what is there.
    pub fn hear(&mut self) -> Result<Event, String> {
        match self.stream.read(&mut self.answer[self.filled..]) {
            Ok(0) => return Err("the server closed a connection".to_owned()),
            Ok(bytes) => self.filled += bytes,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Event::Nothing),
            Err(error) => return Err(format!("receive: {error}")),
        }
        let answer = &self.answer[..self.filled];
        let Some(body) = whole_body(answer) else { return Ok(Event::Nothing) };
        let passed = answer.starts_with(b"HTTP/1.1 200") && find(body, PASSED).is_some();
        Ok(Event::Answer { passed, asked: self.asked })
    }
}

/// The body of an answer that is all there.
fn whole_body(answer: &[u8]) -> Option<&[u8]> {
    let at = find(answer, b"\r\n\r\n")?;
    let length = length(&answer[..at])?;
    answer.get(at + 4..at + 4 + length)
}

fn length(head: &[u8]) -> Option<usize> {
    let mut lines = head.split(|byte| *byte == b'\n');
    let line = lines
        .find(|line| line.len() > 15 && line[..15].eq_ignore_ascii_case(b"content-length:"))?;
    std::str::from_utf8(&line[15..]).ok()?.trim().parse().ok()
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_when_its_length_says_so() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nx: y\r\n\r\nok";
        assert_eq!(whole_body(answer), Some(&b"ok"[..]));
        assert_eq!(whole_body(&answer[..answer.len() - 1]), None);
        assert_eq!(whole_body(b"HTTP/1.1 200 OK\r\n"), None);
    }
}
