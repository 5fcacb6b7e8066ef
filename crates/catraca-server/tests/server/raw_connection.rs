//! An HTTP/1.1 connection written by hand, so that a test can send bytes that no client library
//! would send.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType};
use serde_json::Value;

/// Longer than any response takes: a read that waits this long fails the test.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// A TCP connection and the bytes read ahead from it.
pub struct RawConnection {
    reader: BufReader<TcpStream>,
}

/// A whole response; header names are in lower case.
#[derive(Debug)]
pub struct HttpResponse {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl RawConnection {
    pub fn open(address: &str) -> Self {
        Self::from_stream(TcpStream::connect(address).unwrap())
    }

    /// A connection whose source address is `source`, such as `127.0.0.2`.
    pub fn open_from(source: &str, address: &str) -> Self {
        let source: IpAddr = source.parse().unwrap();
        let address: SocketAddr = address.parse().unwrap();
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        rustix::net::bind(&socket, &SocketAddr::new(source, 0)).unwrap();
        rustix::net::connect(&socket, &address).unwrap();
        Self::from_stream(TcpStream::from(socket))
    }

    fn from_stream(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(READ_TIMEOUT)).unwrap();
        stream.set_write_timeout(Some(READ_TIMEOUT)).unwrap();
        Self { reader: BufReader::new(stream) }
    }

    /// Sends bytes as they are.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.try_send_bytes(bytes).unwrap();
    }

    /// The same as `send_bytes`, for a peer that may have closed the connection.
    pub fn try_send_bytes(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.reader.get_mut().write_all(bytes)
    }

    /// Sends a request such as `GET /healthz`.
    pub fn send(&mut self, request: &str, headers: &[(&str, &str)], body: &[u8]) {
        // One write: with Nagle's algorithm a second one would wait for the acknowledgement of the
        // first.
        self.send_bytes(&[&head(request, headers, Some(body.len())), body].concat());
    }

    /// Sends a POST of JSON.
    pub fn post(&mut self, path: &str, body: &str) {
        self.send(&format!("POST {path}"), &[JSON], body.as_bytes());
    }

    /// Closes the sending side; responses can still be read.
    pub fn half_close(&self) {
        self.reader.get_ref().shutdown(Shutdown::Write).unwrap();
    }

    /// Sets how long a read waits.
    pub fn set_read_timeout(&self, timeout: Duration) {
        self.reader.get_ref().set_read_timeout(Some(timeout)).unwrap();
    }

    /// Reads one whole response.
    pub fn read_response(&mut self) -> HttpResponse {
        self.try_read_response().unwrap()
    }

    /// The same as `read_response`, for a peer that may have closed the connection.
    pub fn try_read_response(&mut self) -> std::io::Result<HttpResponse> {
        let first = self.read_line()?;
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status =
            status.ok_or_else(|| std::io::Error::other(format!("not a response: {first:?}")))?;
        let mut headers = Vec::new();
        loop {
            let line = self.read_line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut answer = HttpResponse { status, headers, body: String::new() };
        let length = answer.header("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body)?;
        answer.body = String::from_utf8(body).unwrap();
        Ok(answer)
    }

    /// Reads lines until one contains `wanted`; returns everything that was read.
    pub fn read_until(&mut self, wanted: &str) -> String {
        let mut text = String::new();
        let mut from = 0;
        while !text[from..].contains(wanted) {
            from = text.len();
            assert!(
                self.reader.read_line(&mut text).unwrap() > 0,
                "the connection was closed before {wanted:?}"
            );
        }
        text
    }

    /// Reads the head of a response, with the empty line at its end.
    pub fn read_head(&mut self) -> String {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let count = self.reader.read_line(&mut head).unwrap();
            assert!(count > 0, "the connection was closed in a head: {head:?}");
        }
        head
    }

    /// Whether the peer has closed the connection and every byte of it has been read.
    pub fn is_closed(&mut self) -> bool {
        matches!(self.reader.read(&mut [0; 1]), Ok(0))
    }

    /// Reads until the peer closes the connection.
    pub fn read_to_end(&mut self) -> String {
        let mut text = String::new();
        self.reader.read_to_string(&mut text).unwrap();
        text
    }

    /// Reads until the peer closes the connection, or resets it because it has not read everything.
    pub fn read_to_end_lossy(&mut self) -> String {
        let mut bytes = Vec::new();
        let _ = self.reader.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn read_line(&mut self) -> std::io::Result<String> {
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }
}

impl HttpResponse {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The code of a problem+json body; asserts the members that every problem has.
    pub fn problem_code(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let problem = self.json();
        assert_eq!(problem["status"], self.status, "{self:?}");
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.len() > 10), "{self:?}");
        let code = problem["code"].as_str().unwrap().to_owned();
        assert_eq!(problem["type"], format!("/docs/errors/{code}"));
        code
    }
}

/// The header of a JSON body.
pub const JSON: (&str, &str) = ("Content-Type", "application/json");

/// The head of a request: its first line, headers and the empty line.
pub fn head(request: &str, headers: &[(&str, &str)], length: Option<usize>) -> Vec<u8> {
    let mut head = format!("{request} HTTP/1.1\r\nHost: localhost\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if let Some(length) = length {
        head.push_str(&format!("Content-Length: {length}\r\n"));
    }
    head.push_str("\r\n");
    head.into_bytes()
}
