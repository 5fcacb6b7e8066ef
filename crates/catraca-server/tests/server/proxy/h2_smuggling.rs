//! Requests of HTTP/2 that would be two requests, or ones with other lengths, as HTTP/1.1: the back
//! end must not get a request that the proxy has not checked.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use super::h2_helpers::TlsProxy;
use super::helpers::SOON;
use super::smuggling::{
    BelievedLength, LIMIT, LaxBackEnd, assert_no_desync, catalog_to, lax_catalog,
};
use super::strict_back_end::StrictBackEnd;

pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;
const SMUGGLED: &str = "0\r\n\r\nGET /in HTTP/1.1\r\nHost: a\r\n\r\n";

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The upstream answers.
    Served,
    /// The proxy answers with 400.
    Refused,
    /// Its stream or its connection is reset.
    Reset,
}

use Fate::{Refused, Reset, Served};

/// The method, the path, the authority, further headers, the body, and what becomes of it.
type Case = (&'static str, &'static str, &'static str, &'static [(&'static str, &'static str)]);

const CASES: [(Case, &str, Fate); 27] = [
    (("POST", "/out", "a", &[("transfer-encoding", "chunked")]), SMUGGLED, Reset),
    (("POST", "/out", "a", &[("connection", "x-a"), ("x-a", "1")]), "", Reset),
    (("POST", "/out", "a", &[("content-length", "3")]), "abcdefgh", Reset),
    (("POST", "/out", "a", &[("content-length", "30")]), "abc", Reset),
    (("POST", "/out", "a", &[("content-length", "3"), ("content-length", "3")]), "abc", Refused),
    (("POST", "/out", "a", &[("content-length", "3"), ("content-length", "5")]), "abc", Reset),
    (("POST", "/out", "a", &[("content-length", "3, 3")]), "abc", Reset),
    (("POST", "/out", "a", &[("content-length", "+3")]), "abc", Reset),
    (("POST", "/out", "a", &[("x", "a\r\nx-b: c")]), "", Reset),
    (("POST", "/out", "a", &[("x\r\ny", "a")]), "", Reset),
    (("POST", "/out", "a", &[("x:y", "a")]), "", Reset),
    (("POST", "/out", "a", &[("X-Up", "a")]), "", Reset),
    (("POST", "/out x HTTP/1.1", "a", &[]), "", Reset),
    (("POST", "/out\r\nx: y", "a", &[]), "", Reset),
    (("POST", "http://b/out", "a", &[]), "", Reset),
    (("POST", "out", "a", &[]), "", Reset),
    (("POST", "/out", "a", &[("host", "b")]), "", Refused),
    (("POST", "/out", "a", &[("host", "a"), ("host", "a")]), "", Refused),
    (("GET /in HTTP/1.1", "/out", "a", &[]), "", Reset),
    (("POST", "/out", "u@a", &[]), "", Refused),
    (("POST", "/out", "a", &[("upgrade", "h2c")]), "", Reset),
    (("POST", "/out", "a", &[("te", "chunked")]), "", Reset),
    (
        ("POST", "/out", "a", &[("content_length", "3"), ("transfer_encoding", "chunked")]),
        "abc",
        Served,
    ),
    (("POST", "/out", "a", &[("http2-settings", "AAAA")]), "", Served),
    (("POST", "/out#x", "a", &[]), "", Served),
    (("POST", "/out", "a", &[("expect", "100-continue")]), "abc", Served),
    (("POST", "/out", "a", &[]), "abc", Served),
];

/// A frame of stream 1, or of the connection.
pub fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    frame_of(u32::from(kind != SETTINGS), kind, flags, payload)
}

/// A frame of a stream; zero is the connection.
pub fn frame_of(stream: u32, kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Fields as literals that no table keeps.
pub fn fields(pairs: &[(&str, &str)]) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    let field = |(name, value): &(&str, &str)| [vec![0], text(name), text(value)].concat();
    pairs.iter().flat_map(field).collect()
}

async fn send(proxy: &TlsProxy, case: Case, body: &str) -> io::Result<Fate> {
    let (method, path, authority, more) = case;
    let pseudo =
        [(":method", method), (":scheme", "https"), (":authority", authority), (":path", path)];
    let fields = fields(&[&pseudo[..], more].concat());
    let mut stream = proxy.connect().await?;
    let mut bytes = [PREFACE, &frame(SETTINGS, 0, &[])].concat();
    let end = if body.is_empty() { END_STREAM } else { 0 };
    bytes.extend(frame(HEADERS, END_HEADERS | end, &fields));
    if !body.is_empty() {
        bytes.extend(frame(DATA, END_STREAM, body.as_bytes()));
    }
    stream.write_all(&bytes).await?;
    read_fate(&mut stream).await
}

async fn read_fate(stream: &mut TlsStream<TcpStream>) -> io::Result<Fate> {
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let mut payload = vec![0; length];
        stream.read_exact(&mut payload).await?;
        match head[3] {
            // The status is the first field, from the static table.
            HEADERS if payload[0] == 0x88 => return Ok(Served),
            HEADERS if payload[0] == 0x8c => return Ok(Refused),
            HEADERS => panic!("another status: {payload:?}"),
            RST_STREAM | GOAWAY => return Ok(Reset),
            _ => {}
        }
    }
}

#[test]
fn the_back_end_gets_no_request_of_http2_that_was_not_checked() {
    let runtime = Runtime::new().unwrap();
    for believed in [BelievedLength::ContentLength, BelievedLength::Chunks] {
        let back_end = LaxBackEnd::start(believed);
        let proxy = TlsProxy::start(&lax_catalog(&back_end));
        let checked = |gate: &str| LIMIT - proxy.server.remaining(gate);
        let mut unexpected = Vec::new();
        for (case, body, expected) in CASES {
            let what = format!("{believed:?}: {case:?}");
            let fate = runtime.block_on(async { timeout(SOON, send(&proxy, case, body)).await });
            // A connection that was closed is as good as a reset.
            let fate = fate.unwrap_or_else(|_| panic!("no end: {what}")).unwrap_or(Reset);
            if fate != expected {
                unexpected.push(format!("{fate:?}: {what}"));
            }
            // On the same connection to the back end, which reads what is left before.
            let end = ("GET", "/end", "a", &[][..]);
            let end = runtime.block_on(async { timeout(SOON, send(&proxy, end, "")).await });
            let end = end.unwrap().unwrap();
            assert_eq!(end, Served, "{what}");
            assert_no_desync(&back_end, &checked, &what);
        }
        assert!(unexpected.is_empty(), "{unexpected:#?}");
        assert_eq!(checked("end"), i64::try_from(CASES.len()).unwrap());
    }
}

#[test]
fn a_strict_back_end_refuses_nothing_of_http2() {
    let runtime = Runtime::new().unwrap();
    let back_end = StrictBackEnd::start();
    let proxy = TlsProxy::start(&catalog_to(&back_end.url, "2s"));
    for (case, body, expected) in CASES {
        let what = format!("{case:?}");
        let fate = runtime.block_on(async { timeout(SOON, send(&proxy, case, body)).await });
        let fate = fate.unwrap_or_else(|_| panic!("no end: {what}")).unwrap_or(Reset);
        assert_eq!(fate, expected, "{what}");
        let end = ("GET", "/end", "a", &[][..]);
        let end = runtime.block_on(async { timeout(SOON, send(&proxy, end, "")).await });
        assert_eq!(end.unwrap().unwrap(), Served, "{what}");
        back_end.assert_nothing_refused(&what);
    }
    assert_eq!(back_end.count("/end"), CASES.len());
}

/// A head that never ends must end its connection before it fills the memory.
#[test]
fn a_flood_of_continuations_ends_the_connection() {
    const FRAMES_MAX: usize = 10_000;
    let back_end = LaxBackEnd::start(BelievedLength::Chunks);
    let proxy = TlsProxy::start(&lax_catalog(&back_end));
    let flood = async {
        let mut stream = proxy.connect().await.unwrap();
        let first = fields(&[(":method", "GET"), (":path", "/out"), (":scheme", "https")]);
        let begin = [PREFACE, &frame(SETTINGS, 0, &[]), &frame(HEADERS, END_STREAM, &first)];
        stream.write_all(&begin.concat()).await.unwrap();
        let value = "a".repeat(100);
        let more = frame(CONTINUATION, 0, &fields(&[("x-flood", &value)]));
        for _ in 0..FRAMES_MAX {
            if stream.write_all(&more).await.is_err() {
                return;
            }
        }
        let ended = read_fate(&mut stream).await;
        assert!(ended.is_err() || ended.is_ok_and(|fate| fate == Reset));
    };
    let ended = Runtime::new().unwrap().block_on(async { timeout(SOON, flood).await });
    assert!(ended.is_ok(), "the connection is still open");
    assert_eq!(LIMIT - proxy.server.remaining("outer"), 0);
}
