//! Requests that two servers could read in two ways, in front of a back end that reads anything:
//! the back end must not get a request that the proxy has not checked.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::{Arc, mpsc};

use super::helpers::{ProxyServer, SOON, TestUpstream, catalog, wait_until};
use super::strict_back_end::StrictBackEnd;

const CASES: &str = include_str!("smuggling_cases.txt");
/// Follows every case: it is served if the connection survives.
const END: &str = "GET /end HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
/// What is before a case: nothing, or another request in the same packet.
const PREFIXES: [&str; 2] = ["", "GET /out HTTP/1.1\r\nHost: a\r\n\r\n"];
pub const LIMIT: i64 = 10_000;

struct SmugglingCase {
    expectation: &'static str,
    name: &'static str,
    bytes: Vec<u8>,
}

fn cases() -> Vec<SmugglingCase> {
    let lines = CASES.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let parse = |line: &'static str| {
        let mut fields = line.splitn(3, "; ");
        let mut next = || fields.next().unwrap();
        SmugglingCase { expectation: next(), name: next(), bytes: unescape(next()) }
    };
    lines.map(parse).collect()
}

fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.chars();
    while let Some(next) = rest.next() {
        match next {
            '|' => bytes.extend(b"\r\n"),
            '\\' => bytes.push(match rest.next().unwrap() {
                'n' => b'\n',
                'r' => b'\r',
                't' => b'\t',
                '0' => 0,
                'x' => {
                    let digits: String = rest.by_ref().take(2).collect();
                    u8::from_str_radix(&digits, 16).unwrap()
                }
                other => panic!("\\{other} is not an escape: {text}"),
            }),
            plain => bytes.push(u8::try_from(plain).unwrap()),
        }
    }
    bytes
}

/// Which of two lengths a back end believes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BelievedLength {
    ContentLength,
    Chunks,
}

/// A back end that reads lines without CR, spaces before colons, folded headers, second spellings
/// and any coding that contains `chunked`, and notes the target of everything that it takes for a
/// request.
pub struct LaxBackEnd {
    url: String,
    targets: Arc<Mutex<Vec<String>>>,
}

impl LaxBackEnd {
    pub fn start(believed: BelievedLength) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let targets = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&targets);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let seen = Arc::clone(&seen);
                std::thread::spawn(move || serve_lax(stream.unwrap(), believed, &seen));
            }
        });
        Self { url, targets }
    }

    /// How many requests it got for each target, without the query.
    fn counts(&self) -> BTreeMap<String, i64> {
        let mut counts = BTreeMap::new();
        for target in self.targets.lock().unwrap().iter() {
            *counts.entry(target.clone()).or_default() += 1;
        }
        counts
    }
}

fn serve_lax(stream: TcpStream, believed: BelievedLength, seen: &Mutex<Vec<String>>) {
    stream.set_read_timeout(Some(SOON)).unwrap();
    let mut reader = BufReader::new(stream);
    while let Some(first) = read_lax_line(&mut reader) {
        if first.is_empty() {
            continue;
        }
        let mut headers: Vec<(String, String)> = Vec::new();
        while let Some(line) = read_lax_line(&mut reader).filter(|line| !line.is_empty()) {
            match line.split_once(':') {
                Some((name, value)) => {
                    let name = name.trim().to_ascii_lowercase().replace('_', "-");
                    headers.push((name, value.trim().to_ascii_lowercase()));
                }
                None => headers.last_mut().unwrap().1.push_str(line.trim()),
            }
        }
        let value = |name: &str| headers.iter().rfind(|(own, _)| own == name).map(|(_, v)| v);
        let replaced = value("x-original-url").or(value("x-rewrite-url"));
        let target = first.split(' ').nth(1).unwrap_or(&first);
        let target = replaced.map_or(target, |other| other.as_str());
        let path = target.split(['?', '%']).next().unwrap().to_owned();
        seen.lock().unwrap().push(path);
        if value("upgrade").is_some_and(|protocol| protocol.contains("h2c")) {
            seen.lock().unwrap().push("/unchecked-tunnel".to_owned());
        }
        let length = value("content-length").and_then(|length| length.parse::<u64>().ok());
        let is_chunked = value("transfer-encoding").is_some_and(|own| own.contains("chunked"));
        let by_chunks = is_chunked && (believed == BelievedLength::Chunks || length.is_none());
        if by_chunks {
            while read_lax_chunk(&mut reader) {}
        } else if let Some(length) = length {
            let _ = std::io::copy(&mut (&mut reader).take(length), &mut std::io::sink());
        }
        let _ = reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    }
}

fn read_lax_line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = Vec::new();
    let count = reader.read_until(b'\n', &mut line).unwrap_or(0);
    (count > 0).then(|| String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned())
}

/// Whether another chunk follows.
fn read_lax_chunk(reader: &mut impl BufRead) -> bool {
    let Some(line) = read_lax_line(reader) else { return false };
    let digits: String = line.trim().chars().take_while(char::is_ascii_hexdigit).collect();
    let size = u64::from_str_radix(&digits, 16).unwrap_or(0);
    if size == 0 {
        while read_lax_line(reader).is_some_and(|line| !line.is_empty()) {}
        return false;
    }
    let copied = std::io::copy(&mut (&mut *reader).take(size), &mut std::io::sink());
    read_lax_line(reader);
    copied.is_ok_and(|copied| copied == size)
}

pub fn lax_catalog(back_end: &LaxBackEnd) -> String {
    catalog_to(&back_end.url, "200ms")
}

/// A catalog with a gate for each target of the cases.
pub fn catalog_to(url: &str, first_byte_timeout: &str) -> String {
    let policy = |name: &str, path: &str| {
        format!(
            "[policy.{name}]\nby = ['ip']\nwindow = '{LIMIT} per 1h'\n\
             [[route]]\nmatch = '{path}'\ngate = '{name}'\nupstream = '{url}'\n"
        )
    };
    let policies = [("inner", "/in"), ("end", "/end"), ("outer", "/**")];
    let policies: String = policies.iter().map(|(name, path)| policy(name, path)).collect();
    policies + &format!("[proxy]\nfirst_byte_timeout = '{first_byte_timeout}'\n")
}

/// The statuses of the responses on a connection that the proxy closes.
fn statuses(server: &ProxyServer, bytes: &[u8]) -> Vec<u16> {
    let mut client = server.connect();
    // The proxy may close before it has read everything.
    let _ = client.try_send_bytes(bytes);
    let text = client.read_to_end_lossy();
    let heads = text.split("HTTP/1.1 ").skip(1);
    heads.map(|head| head[..3].parse().unwrap()).filter(|status| *status != 100).collect()
}

#[test]
fn the_back_end_gets_no_request_that_was_not_checked() {
    for believed in [BelievedLength::ContentLength, BelievedLength::Chunks] {
        let back_end = LaxBackEnd::start(believed);
        let server = ProxyServer::start(&lax_catalog(&back_end));
        let checked = |gate: &str| LIMIT - server.remaining(gate);
        let all = cases();
        assert!(all.len() >= 120, "{}", all.len());
        for case in &all {
            for prefix in PREFIXES {
                let before = checked("outer");
                let bytes = [prefix.as_bytes(), &case.bytes, END.as_bytes()].concat();
                let mut statuses = statuses(&server, &bytes);
                let what = format!("{believed:?}: {}: {statuses:?}", case.name);
                if !prefix.is_empty() {
                    assert_eq!(statuses.remove(0), 200, "{what}");
                }
                let last = statuses.last().copied().unwrap_or(0);
                match case.expectation {
                    "refused" => {
                        // The preface of HTTP/2 ends the connection without a response.
                        let is_closed = statuses.is_empty();
                        assert!(is_closed || (statuses.len() == 1 && last >= 400), "{what}");
                        let of_prefix = i64::from(!prefix.is_empty());
                        assert_eq!(checked("outer") - before, of_prefix, "{what}");
                    }
                    "broken" => assert!(statuses.len() == 1 && last >= 400, "{what}"),
                    "served" => {
                        assert!(statuses.len() >= 2, "{what}");
                        assert!(statuses.iter().all(|status| *status == 200), "{what}");
                    }
                    other => panic!("{other}: {what}"),
                }
                assert_no_desync(&back_end, &checked, &what);
            }
        }
        let served = all.iter().filter(|case| case.expectation == "served").count() as i64;
        assert_eq!(checked("end"), 2 * served);
        wait_until("all requests have arrived", || {
            back_end.counts().get("/end") == Some(&(2 * served))
        });
    }
}

#[test]
fn a_strict_back_end_refuses_nothing() {
    let back_end = StrictBackEnd::start();
    let server = ProxyServer::start(&catalog_to(&back_end.url, "2s"));
    let mut served = 0;
    for prefix in PREFIXES {
        for case in cases() {
            let bytes = [prefix.as_bytes(), &case.bytes, END.as_bytes()].concat();
            let statuses = statuses(&server, &bytes);
            let what = format!("{prefix:?} {}: {statuses:?}", case.name);
            served += usize::from(case.expectation == "served");
            back_end.assert_nothing_refused(&what);
        }
    }
    assert!(served > 0);
    wait_until("all requests have arrived", || back_end.count("/end") == served);
    back_end.assert_nothing_refused("at the end");
}

/// The back end has got each target at most as often as it was checked, and no other target.
pub fn assert_no_desync(back_end: &LaxBackEnd, checked: &dyn Fn(&str) -> i64, what: &str) {
    for (target, count) in back_end.counts() {
        let gate = match target.as_str() {
            "/in" => "inner",
            "/end" => "end",
            "/out" => "outer",
            other => panic!("the back end got {other:?}: {what}"),
        };
        assert!(count <= checked(gate), "{target} was not checked: {what}");
    }
}

#[test]
fn a_tunnel_through_the_proxy_is_refused() {
    let back_end = LaxBackEnd::start(BelievedLength::Chunks);
    let server = ProxyServer::start(&lax_catalog(&back_end));
    let mut client = server.connect();
    client.send_bytes(b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n");
    assert_eq!(client.read_response().status, 405);
    assert!(back_end.counts().is_empty());
}

#[test]
fn an_absolute_target_is_forwarded_as_a_path() {
    let (seen, calls) = mpsc::channel();
    let upstream = TestUpstream::start(move |call| {
        seen.send((call.line().to_owned(), call.header("host").unwrap())).unwrap();
        call.send("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        true
    });
    let server = ProxyServer::start(&catalog("window = '9 per 1m'", &upstream));
    for rest in ["HTTP/1.1\r\nHost: A:8080\r\n\r\n", "HTTP/1.0\r\n\r\n"] {
        let mut client = server.connect();
        client.send_bytes(format!("GET http://a:8080/x?y {rest}").as_bytes());
        assert_eq!(client.read_response().status, 200, "{rest}");
        let expected = ("GET /x?y HTTP/1.1".to_owned(), "a:8080".to_owned());
        assert_eq!(calls.recv().unwrap(), expected);
    }
    let mut client = server.connect();
    client.send_bytes(b"GET /x HTTP/1.0\r\n\r\n");
    assert_eq!(client.read_response().status, 200);
    assert_eq!(calls.recv().unwrap(), ("GET /x HTTP/1.1".to_owned(), String::new()));
}
