//! HTTP/1.1 messages as bytes, without any normalisation: attacks are in the spelling.
//!
//! Must not repair what it reads or writes.

use std::fmt::Write as _;
use std::io::{self, BufRead};

/// A request as a client writes it.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: Headers,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn new(method: &str, target: &str) -> Self {
        let headers = Vec::new();
        Self { method: method.to_owned(), target: target.to_owned(), headers, body: String::new() }
    }

    pub(crate) fn get(target: &str) -> Self {
        Self::new("GET", target)
    }

    pub(crate) fn post(target: &str, body: &str) -> Self {
        Self { body: body.to_owned(), ..Self::new("POST", target) }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The values of a header, of all its lines.
    pub(crate) fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        values(&self.headers, name)
    }

    /// The request's bytes; a connection serves one request.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut text = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        if self.values("Host").next().is_none() {
            text.push_str("Host: site.example\r\n");
        }
        for (name, value) in &self.headers {
            let _ = write!(text, "{name}: {value}\r\n");
        }
        if self.values("Connection").next().is_none() {
            text.push_str("Connection: close\r\n");
        }
        if self.method != "GET" {
            let _ = write!(text, "Content-Length: {}\r\n", self.body.len());
        }
        text.push_str("\r\n");
        text.push_str(&self.body);
        text.into_bytes()
    }

    /// Reads the next request of a connection; `None` when there is none.
    pub(crate) fn read(stream: &mut impl BufRead) -> io::Result<Option<Self>> {
        let Some((first, headers)) = head(stream)? else { return Ok(None) };
        let mut words = first.splitn(2, ' ');
        let method = words.next().unwrap_or_default().to_owned();
        let rest = words.next().unwrap_or_default();
        let target = rest.rsplit_once(' ').map_or(rest, |(target, _)| target).to_owned();
        let length = values(&headers, "Content-Length").next().map_or(Ok(0), str::parse);
        let mut body = vec![0; length.unwrap_or(0)];
        stream.read_exact(&mut body)?;
        let body = String::from_utf8_lossy(&body).into_owned();
        Ok(Some(Self { method, target, headers, body }))
    }
}

/// What a client got back.
#[derive(Debug)]
pub(crate) struct Response {
    /// Zero when the connection was closed without an answer.
    pub(crate) status: u16,
    headers: Headers,
    pub(crate) body: String,
}

impl Response {
    /// Reads a response to the end of its connection.
    pub(crate) fn read(stream: &mut impl BufRead) -> io::Result<Self> {
        let Some((first, headers)) = head(stream)? else {
            return Ok(Self { status: 0, headers: Vec::new(), body: String::new() });
        };
        let status = first.split(' ').nth(1).and_then(|text| text.parse().ok()).unwrap_or(0);
        let mut body = Vec::new();
        stream.read_to_end(&mut body)?;
        Ok(Self { status, headers, body: String::from_utf8_lossy(&body).into_owned() })
    }

    /// The first line of a header.
    pub(crate) fn header<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        values(&self.headers, name).next()
    }
}

fn values<'a>(headers: &'a [(String, String)], name: &'a str) -> impl Iterator<Item = &'a str> {
    let lines = headers.iter().filter(move |(own, _)| own.eq_ignore_ascii_case(name));
    lines.map(|(_, value)| value.as_str())
}

type Headers = Vec<(String, String)>;

/// The first line and the headers.
fn head(stream: &mut impl BufRead) -> io::Result<Option<(String, Headers)>> {
    let Some(first) = line(stream)? else { return Ok(None) };
    let mut headers = Vec::new();
    while let Some(text) = line(stream)?.filter(|text| !text.is_empty()) {
        let (name, value) = text.split_once(':').unwrap_or((&text, ""));
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    Ok(Some((first, headers)))
}

fn line(stream: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    if stream.read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    Ok(Some(String::from_utf8_lossy(&bytes).trim_end_matches(['\r', '\n']).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let sent = Request::post("/x/../y;z?a=%00", "body").header("X-A", "1").header("x-a", "2");
        let read = Request::read(&mut &sent.bytes()[..]).unwrap().unwrap();
        assert_eq!(
            (&*read.method, &*read.target, &*read.body),
            ("POST", "/x/../y;z?a=%00", "body")
        );
        assert_eq!(read.values("X-A").collect::<Vec<_>>(), ["1", "2"]);
        assert!(Request::read(&mut &b""[..]).unwrap().is_none());
    }

    #[test]
    fn a_closed_connection_is_a_response_without_a_status() {
        assert_eq!(Response::read(&mut &b""[..]).unwrap().status, 0);
        let denied = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\n\r\nno";
        let read = Response::read(&mut &denied[..]).unwrap();
        assert_eq!((read.status, read.header("retry-after"), &*read.body), (429, Some("7"), "no"));
    }
}
