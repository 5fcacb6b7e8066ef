//! The watch compared with what hyper reads from the same bytes.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::http::{Request, Response};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

#[path = "../../../../../fuzz/checks/message_framing.rs"]
mod message_framing;

use crate::http_wire::server_connection::http1_builder;

/// The index of the first ambiguous request, with the bytes cut at every place.
fn first_ambiguous(text: &str) -> Option<u64> {
    let mut results = (1..=text.len()).map(|size| {
        let found = AmbiguousLengths::default();
        let mut watch = FramingWatch::new(found.clone());
        text.as_bytes().chunks(size).for_each(|part| watch.push(part));
        (0..9).find(|index| found.contains(*index))
    });
    let first = results.next().unwrap();
    assert!(results.all(|result| result == first), "{text:?}");
    first
}

/// Runs the check of the fuzz target with the inputs in `fuzz/corpus`.
#[test]
fn inputs_of_message_framing() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/message_framing");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let input = std::fs::read(entry.unwrap().path()).unwrap();
        message_framing::check(&input, |bytes, part| {
            lines_of_watch(bytes, part).1.map(|index| index as u64)
        });
        count += 1;
    }
    assert!(count > 5, "{count}");
}

const PLAIN: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const BOTH: &str = "POST / HTTP/1.1\r\ncontent-length:5\r\nTRANSFER-ENCODING: chunked\r\n\r\n";

#[test]
fn a_length_that_is_stated_twice_is_found_in_any_request() {
    let sized =
        "POST / HTTP/1.1\r\nContent-Length: 32\r\n\r\nContent-Length: 1\r\nX: y\r\n\r\n!!!!!";
    let chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\
                   1b;x=y\r\nContent-Length: 1\r\n\r\n123456\r\n0\r\nT: 1\r\n\r\n";
    let twice = "POST / HTTP/1.1\r\nContent-Length: 5\nContent-Length: 5\n\n";
    assert_eq!(first_ambiguous(&[PLAIN, sized, chunked, PLAIN].concat()), None);
    assert_eq!(first_ambiguous(BOTH), Some(0));
    assert_eq!(first_ambiguous(&[sized, chunked, twice].concat()), Some(2));
    assert_eq!(first_ambiguous(&[chunked, chunked, PLAIN, BOTH].concat()), Some(3));
}

#[test]
fn empty_lines_and_long_numbers_do_not_move_the_index() {
    let spaces = " ".repeat(99);
    let zeros = "0".repeat(99);
    let sized = format!("POST / HTTP/1.1\r\nContent-Length:{spaces}7\r\n\r\n\r\n\r\nGET");
    let chunked = format!(
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{zeros}7\r\n\r\n\r\nGET\r\n0\r\n\r\n"
    );
    let line_feed = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\
                     0\r\n\nGET /inner HTTP/1.1\r\nX: y\r\n\r\n";
    for before in ["\r\n\r\n", "\n", &sized, &chunked, line_feed] {
        let is_request = before.starts_with("POST");
        let text = [before, BOTH].concat();
        assert_eq!(first_ambiguous(&text), Some(u64::from(is_request)), "{before:?}");
    }
}

/// The first lines of the requests that hyper reads.
fn lines_of_hyper(bytes: &[u8]) -> Vec<String> {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&lines);
    let service = service_fn(move |request: Request<Incoming>| {
        let line = format!("{} {} {:?}", request.method(), request.uri(), request.version());
        seen.lock().push(line);
        async move {
            // A body that is not read ends the connection.
            let _ = request.into_body().collect().await;
            Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let (mut client, server) = tokio::io::duplex(1 << 20);
        client.write_all(bytes).await.unwrap();
        client.shutdown().await.unwrap();
        let mut builder = http1_builder();
        let serving = builder.half_close(true).serve_connection(TokioIo::new(server), service);
        let mut answers = Vec::new();
        let _ = tokio::join!(serving, client.read_to_end(&mut answers));
    });
    std::mem::take(&mut *lines.lock())
}

/// The first lines of the requests that the watch finds, and the first ambiguous one.
fn lines_of_watch(bytes: &[u8], part: usize) -> (Vec<String>, Option<usize>) {
    let found = AmbiguousLengths::default();
    let mut watch = FramingWatch::new(found.clone());
    bytes.chunks(part).for_each(|part| watch.push(part));
    let lines = watch.request_lines.iter().map(|line| String::from_utf8_lossy(line));
    let lines: Vec<String> = lines.map(|line| line.trim_end_matches('\r').to_owned()).collect();
    let ambiguous = (0..lines.len()).find(|index| found.contains(*index as u64));
    (lines, ambiguous)
}

/// A request with a body.
#[derive(Clone, Debug)]
struct TestRequest {
    text: String,
    /// Its length is stated twice.
    is_ambiguous: bool,
    /// A line of its trailers ends without a carriage return, which hyper may refuse.
    has_bare_line_feed: bool,
}

fn request() -> impl Strategy<Value = TestRequest> {
    let before = select(&["", "", "", "\r\n", "\n", "\r\n\r\n\n"][..]);
    let other = select(&["", "X: y\r\n", "Content-Lengths: 4\r\n", "Content-Lengt: 4\r\n"][..]);
    let spaces = select(&[0, 1, 30, 300][..]);
    let zeros = select(&[0, 1, 50, 500][..]);
    let body = select(
        &["", "a", "\r\n\r\n", "GET /in HTTP/1.1\r\n\r\n", "0\r\n\r\nGET /in HTTP/1.1\r\n\r\n"][..],
    );
    let extension = select(&["", ";", ";a=b", " ", " \t;a=\"0\""][..]);
    let trailers =
        select(&["", "T: 1\r\n", "\nGET /in HTTP/1.1\r\n", "T: 1\nGET /in HTTP/1.1\r\n"][..]);
    let framing = select(&["", "sized", "chunked", "both", "reversed", "twice"][..]);
    (before, other, spaces, zeros, body, (extension, trailers), framing).prop_map(
        |(before, other, spaces, zeros, body, (extension, trailers), framing)| {
            let size = body.len();
            let length = format!("content-Length:{}{:0>zeros$}{size}\r\n", " ".repeat(spaces), "");
            let coding = "Transfer-encoding: chunked\r\n";
            let part = match body {
                "" => String::new(),
                _ => format!("{:0>zeros$}{size:X}{extension}\r\n{body}\r\n", ""),
            };
            let chunks = format!("{part}{:0>zeros$}0{extension}\r\n{trailers}\r\n", "");
            let (headers, body) = match framing {
                "" => (String::new(), String::new()),
                "sized" => (length, body.to_owned()),
                "chunked" => (coding.to_owned(), chunks),
                "both" => (length + other + coding, chunks),
                "reversed" => (coding.to_owned() + &length, chunks),
                _ => (length.clone() + &length, body.to_owned()),
            };
            let has_trailers = matches!(framing, "chunked" | "both" | "reversed");
            let text = format!("{before}POST /out HTTP/1.1\r\n{other}{headers}\r\n{body}");
            TestRequest {
                has_bare_line_feed: has_trailers && trailers.contains("\nGET"),
                is_ambiguous: matches!(framing, "both" | "reversed" | "twice"),
                text,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 600,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_watch_finds_the_requests_that_hyper_reads(
        requests in vec(request(), 1..6),
        part in 1_usize..300,
    ) {
        let text: String = requests.iter().map(|request| request.text.as_str()).collect();
        let expected = requests.iter().position(|request| request.is_ambiguous);
        let may_end = requests
            .iter()
            .position(|request| request.is_ambiguous || request.has_bare_line_feed);
        let (lines, ambiguous) = lines_of_watch(text.as_bytes(), part);
        // hyper may end the connection after such a request.
        let read = lines_of_hyper(text.as_bytes()).len();
        prop_assert!(read >= may_end.map_or(requests.len(), |index| index + 1), "{}", read);
        prop_assert_eq!(lines.len(), requests.len());
        prop_assert_eq!(ambiguous, expected);
    }

    #[test]
    fn the_watch_follows_hyper_through_changed_bytes(
        requests in vec(request(), 1..5),
        changes in vec((any::<prop::sample::Index>(), select(&b"\r\n :;0a\t"[..]), 0..3), 0..4),
        part in 1_usize..300,
    ) {
        let mut bytes: Vec<u8> = requests.iter().flat_map(|request| request.text.bytes()).collect();
        for (at, byte, kind) in changes {
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => drop(bytes.remove(at)),
            }
        }
        let read = lines_of_hyper(&bytes);
        let (lines, _) = lines_of_watch(&bytes, part);
        // hyper may have stopped at an error, which the watch does not notice.
        prop_assert!(lines.starts_with(&read), "{:?}: {:?} {:?}", bytes, read, lines);
    }
}
