//! A back end that reads HTTP/1.1 as RFC 9112 defines it, and refuses everything else: what the
//! proxy sends must leave no server anything to interpret.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use super::helpers::SOON;

/// A back end with what it had to refuse.
pub struct StrictBackEnd {
    pub url: String,
    served: Arc<Mutex<Vec<String>>>,
    refused: Arc<Mutex<Vec<String>>>,
}

impl StrictBackEnd {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let back_end = Self { url, served: Arc::default(), refused: Arc::default() };
        let served = Arc::clone(&back_end.served);
        let refused = Arc::clone(&back_end.refused);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let served = Arc::clone(&served);
                let refused = Arc::clone(&refused);
                std::thread::spawn(move || serve(stream.unwrap(), &served, &refused));
            }
        });
        back_end
    }

    /// Fails if it had to refuse a request.
    pub fn assert_nothing_refused(&self, what: &str) {
        let refused = self.refused.lock().unwrap();
        assert!(refused.is_empty(), "{what}: {refused:#?}");
    }

    /// How many requests with this path it has served.
    pub fn count(&self, path: &str) -> usize {
        let served = self.served.lock().unwrap();
        served.iter().filter(|target| target.split('?').next() == Some(path)).count()
    }
}

/// Why a request is not served.
enum Unserved {
    /// The connection ended.
    Ended,
    /// The bytes are not a request.
    Invalid(String),
}

fn serve(stream: TcpStream, served: &Mutex<Vec<String>>, refused: &Mutex<Vec<String>>) {
    stream.set_read_timeout(Some(SOON)).unwrap();
    let mut reader = BufReader::new(stream);
    loop {
        match read_request(&mut reader) {
            Ok(target) => {
                served.lock().unwrap().push(target);
                let response = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                let _ = reader.get_mut().write_all(response);
            }
            Err(Unserved::Ended) => return,
            Err(Unserved::Invalid(why)) => {
                refused.lock().unwrap().push(why);
                let response = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
                let _ = reader.get_mut().write_all(response);
                return;
            }
        }
    }
}

fn invalid(why: &str, bytes: &[u8]) -> Unserved {
    Unserved::Invalid(format!("{why}: {:?}", String::from_utf8_lossy(bytes)))
}

/// Reads a whole request, and returns its target.
fn read_request(reader: &mut impl BufRead) -> Result<String, Unserved> {
    let line = read_line(reader)?;
    let target = read_request_line(&line)?;
    let fields = read_fields(reader)?;
    let values = |name: &str| -> Vec<&str> {
        let own = fields.iter().filter(|(own, _)| own.eq_ignore_ascii_case(name));
        own.map(|(_, value)| value.as_str()).collect()
    };
    if values("host").len() != 1 {
        return Err(invalid("not one Host", &line));
    }
    match (&*values("content-length"), &*values("transfer-encoding")) {
        ([], []) => {}
        ([length], []) if !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit()) => {
            let length = length.parse().map_err(|_| invalid("a length", length.as_bytes()))?;
            read_exactly(reader, length)?;
        }
        ([], [coding]) if coding.eq_ignore_ascii_case("chunked") => read_chunks(reader)?,
        (lengths, codings) => {
            return Err(invalid("lengths", format!("{lengths:?} {codings:?}").as_bytes()));
        }
    }
    Ok(target)
}

fn read_request_line(line: &[u8]) -> Result<String, Unserved> {
    let refuse = |why| invalid(why, line);
    let text = std::str::from_utf8(line).map_err(|_| refuse("not ASCII"))?;
    let [method, target, version] = text.split(' ').collect::<Vec<_>>()[..] else {
        return Err(refuse("not three parts"));
    };
    let is_target_byte = |byte: u8| byte.is_ascii_graphic() && byte != b'#' && byte != b'\\';
    let is_path = target.starts_with('/') && target.bytes().all(is_target_byte);
    match (is_token(method.as_bytes()), is_path, version) {
        (true, true, "HTTP/1.1") => Ok(target.to_owned()),
        _ => Err(refuse("a request line")),
    }
}

/// Reads header or trailer fields up to the empty line.
fn read_fields(reader: &mut impl BufRead) -> Result<Vec<(String, String)>, Unserved> {
    let mut fields = Vec::new();
    loop {
        let line = read_line(reader)?;
        if line.is_empty() {
            return Ok(fields);
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = line.split_at(colon.ok_or_else(|| invalid("no colon", &line))?);
        let is_value = |byte: &u8| *byte == b'\t' || (*byte >= b' ' && *byte != 0x7f);
        // A name is no token if a space is before its colon, and if the line is folded.
        if !is_token(name) || !value.iter().all(is_value) {
            return Err(invalid("a field", &line));
        }
        let value = String::from_utf8_lossy(&value[1..]).trim_matches([' ', '\t']).to_owned();
        fields.push((String::from_utf8_lossy(name).into_owned(), value));
    }
}

fn read_chunks(reader: &mut impl BufRead) -> Result<(), Unserved> {
    loop {
        let line = read_line(reader)?;
        let digits = std::str::from_utf8(&line).unwrap_or_default();
        let is_size =
            (1..=16).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let size = u64::from_str_radix(digits, 16).ok().filter(|_| is_size);
        let size = size.ok_or_else(|| invalid("the size of a chunk", &line))?;
        if size == 0 {
            return read_fields(reader).map(drop);
        }
        read_exactly(reader, size)?;
        let end = read_line(reader)?;
        if !end.is_empty() {
            return Err(invalid("the end of a chunk", &end));
        }
    }
}

fn read_exactly(reader: &mut impl BufRead, length: u64) -> Result<(), Unserved> {
    let copied = std::io::copy(&mut reader.take(length), &mut std::io::sink());
    if copied.is_ok_and(|copied| copied == length) { Ok(()) } else { Err(Unserved::Ended) }
}

/// A line without its CRLF. A line feed or a carriage return alone ends nothing.
fn read_line(reader: &mut impl BufRead) -> Result<Vec<u8>, Unserved> {
    let mut line = Vec::new();
    match reader.read_until(b'\n', &mut line) {
        Ok(count) if count > 0 && line.ends_with(b"\n") => {}
        _ => return Err(Unserved::Ended),
    }
    let whole = line.clone();
    let content = whole.strip_suffix(b"\r\n").ok_or_else(|| invalid("a bare LF", &whole))?;
    if content.contains(&b'\r') {
        return Err(invalid("a bare CR", content));
    }
    Ok(content.to_vec())
}

fn is_token(bytes: &[u8]) -> bool {
    let is_token_byte =
        |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !bytes.is_empty() && bytes.iter().all(is_token_byte)
}

/// A back end that refuses nothing would prove nothing.
#[test]
fn a_strict_back_end_refuses_what_the_standard_forbids() {
    let begin = "POST / HTTP/1.1\r\nHost: a\r\n";
    let served = |bytes: String| {
        let mut reader = BufReader::new(bytes.as_bytes());
        read_request(&mut reader).is_ok()
    };
    for valid in
        ["\r\n", "Content-Length: 1\r\n\r\nx", "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"]
    {
        assert!(served(format!("{begin}{valid}")), "{valid:?}");
    }
    for forbidden in [
        "Host: a\r\n\r\n",
        "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx",
        "Content-Length: +1\r\n\r\nx",
        "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n1;a\r\nx\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n0x1\r\nx\r\n0\r\n\r\n",
        "X : a\r\n\r\n",
        " folded\r\n\r\n",
        "X: a\n\r\n",
        "X: a\rb\r\n\r\n",
        "X: a\0b\r\n\r\n",
    ] {
        assert!(!served(format!("{begin}{forbidden}")), "{forbidden:?}");
    }
    for line in ["GET  / HTTP/1.1", "GET / HTTP/1.0", "GET /a b HTTP/1.1", "G(T / HTTP/1.1"] {
        assert!(!served(format!("{line}\r\nHost: a\r\n\r\n")), "{line}");
    }
}
