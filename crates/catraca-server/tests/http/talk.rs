//! One connection, spoken by hand: so that a test can say what no client library would.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType};
use serde_json::Value;

/// No answer takes this long; a test that waits longer has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection.
pub struct Talk {
    reader: BufReader<TcpStream>,
}

/// One answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Talk {
    pub fn to(address: &str) -> Self {
        Self::over(TcpStream::connect(address).unwrap())
    }

    /// A connection that comes from this address, such as `127.0.0.2`.
    pub fn from(source: &str, address: &str) -> Self {
        let source: IpAddr = source.parse().unwrap();
        let address: SocketAddr = address.parse().unwrap();
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        rustix::net::bind(&socket, &SocketAddr::new(source, 0)).unwrap();
        rustix::net::connect(&socket, &address).unwrap();
        Self::over(TcpStream::from(socket))
    }

    fn over(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self { reader: BufReader::new(stream) }
    }

    /// Sends bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.try_raw(bytes).unwrap();
    }

    /// The same, to somebody who may be gone.
    pub fn try_raw(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.reader.get_mut().write_all(bytes)
    }

    /// Sends a request such as `GET /healthz`.
    pub fn send(&mut self, request: &str, headers: &[(&str, &str)], body: &[u8]) {
        // In one piece: a second one would wait until the first is acknowledged.
        self.raw(&[&head(request, headers, Some(body.len())), body].concat());
    }

    /// Sends a POST of JSON.
    pub fn post(&mut self, path: &str, body: &str) {
        self.send(&format!("POST {path}"), &[JSON], body.as_bytes());
    }

    /// Says that nothing more will be sent.
    pub fn half_close(&self) {
        self.reader.get_ref().shutdown(Shutdown::Write).unwrap();
    }

    /// How long a read waits from now on.
    pub fn patience(&self, patience: Duration) {
        self.reader.get_ref().set_read_timeout(Some(patience)).unwrap();
    }

    /// Reads one answer whole.
    pub fn answer(&mut self) -> Answer {
        self.try_answer().unwrap()
    }

    /// The same, of somebody who may be gone.
    pub fn try_answer(&mut self) -> std::io::Result<Answer> {
        let first = self.line()?;
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status =
            status.ok_or_else(|| std::io::Error::other(format!("no answer: {first:?}")))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut answer = Answer { status, headers, body: String::new() };
        let length = answer.header("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body)?;
        answer.body = String::from_utf8(body).unwrap();
        Ok(answer)
    }

    /// Reads until something is said; everything up to the end of that line.
    pub fn until(&mut self, wanted: &str) -> String {
        let (mut heard, mut from) = (String::new(), 0);
        while !heard[from..].contains(wanted) {
            from = heard.len();
            assert!(self.reader.read_line(&mut heard).unwrap() > 0, "{wanted}: no more is said");
        }
        heard
    }

    /// Whether the other end has closed, and said nothing more.
    pub fn is_closed(&mut self) -> bool {
        matches!(self.reader.read(&mut [0; 1]), Ok(0))
    }

    /// Everything until the other end closes.
    pub fn rest(&mut self) -> String {
        let mut text = String::new();
        self.reader.read_to_string(&mut text).unwrap();
        text
    }

    fn line(&mut self) -> std::io::Result<String> {
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The code of a problem, which must look like one.
    pub fn problem(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let problem = self.json();
        assert_eq!(problem["status"], self.status, "{self:?}");
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.len() > 10), "{self:?}");
        let code = problem["code"].as_str().unwrap().to_owned();
        assert_eq!(problem["type"], format!("/docs/errors/{code}"));
        code
    }
}

/// What JSON says of itself.
pub const JSON: (&str, &str) = ("Content-Type", "application/json");

/// The head of a request.
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
