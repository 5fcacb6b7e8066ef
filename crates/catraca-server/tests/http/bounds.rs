//! Everything is bounded: heads, bodies, connections; and what is within bounds is answered.

use std::net::TcpStream;

use crate::served::Served;
use crate::talk::{JSON, head};

const CHECK: &str = r#"{"gate":"search","subject":{"user":"ana"}}"#;

#[test]
fn a_body_beyond_the_bound_is_413_before_it_is_sent() {
    let served = Served::demo();
    let mut talk = served.connect();
    talk.raw(&head("POST /v1/check", &[JSON], Some(1 << 30)));
    let answer = talk.answer();
    assert_eq!((answer.status, answer.problem().as_str()), (413, "body-too-large"));
    assert!(talk.is_closed(), "the rest of the body cannot be told from a request");
}

#[test]
fn a_body_without_a_length_is_cut_at_the_bound() {
    let served = Served::demo();
    let mut talk = served.connect();
    let mut request = head("POST /v1/check", &[JSON, ("Transfer-Encoding", "chunked")], None);
    request.extend(format!("{:x}\r\n", 64 << 10).into_bytes());
    talk.raw(&request);
    let chunk = vec![b' '; 64 << 10];
    for _ in 0..17 {
        if talk.try_raw(&chunk).is_err() || talk.try_raw(b"\r\n10000\r\n").is_err() {
            break;
        }
    }
    let answer = talk.answer();
    assert_eq!((answer.status, answer.problem().as_str()), (413, "body-too-large"));
}

#[test]
fn a_body_in_pieces_is_put_together() {
    let served = Served::demo();
    let mut talk = served.connect();
    talk.raw(&head("POST /v1/check", &[JSON, ("Transfer-Encoding", "chunked")], None));
    for piece in CHECK.as_bytes().chunks(7) {
        talk.raw(format!("{:x}\r\n", piece.len()).as_bytes());
        talk.raw(piece);
        talk.raw(b"\r\n");
    }
    talk.raw(b"0\r\n\r\n");
    assert_eq!(talk.answer().json()["allowed"], true);
    let large = format!("{}{CHECK}", " ".repeat((1 << 20) - CHECK.len()));
    assert_eq!(served.json("/v1/check", &large).1["allowed"], true);
}

#[test]
fn a_head_beyond_the_bound_is_431_and_the_others_are_still_served() {
    let served = Served::demo();
    let long = "x".repeat(20 << 10);
    let many: Vec<(String, &str)> = (0..120).map(|n| (format!("x-{n}"), "y")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, value)| (&**name, *value)).collect();
    for headers in [&[("X-Long", long.as_str())][..], &many] {
        let mut talk = served.connect();
        // The server may close before it has heard all of it.
        let _ = talk.try_raw(&head("GET /healthz", headers, None));
        let answer = talk.answer();
        assert_eq!((answer.status, answer.problem().as_str()), (431, "head-too-large"));
    }
    assert_eq!(served.ask("GET /healthz", &[]).status, 200);
}

#[test]
fn what_is_no_http_is_400() {
    let served = Served::demo();
    for noise in ["\u{16}\u{3}\u{1}\r\n\r\n", "GET\r\n\r\n", "PING\r\n*1\r\n$4\r\nPING\r\n\r\n"] {
        let mut talk = served.connect();
        talk.raw(noise.as_bytes());
        let answer = talk.answer();
        assert_eq!((answer.status, answer.problem().as_str()), (400, "bad-head"), "{noise:?}");
        assert!(talk.is_closed());
    }
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let served = Served::demo();
    let mut talk = served.connect();
    let check = [head("POST /v1/check", &[JSON], Some(CHECK.len())), CHECK.into()].concat();
    let other = head("GET /healthz", &[], None);
    let all: Vec<u8> = (0..40).flat_map(|_| [&check[..], &other].concat()).collect();
    talk.raw(&all);
    for left in (60..100).rev() {
        let decision = talk.answer().json();
        let remaining = decision["remaining"].as_i64().unwrap();
        // Ten come back each second, so a slow machine may see some more.
        assert!((left..100).contains(&remaining), "{remaining}");
        assert_eq!(talk.answer().body, "ok\n");
    }
}

#[test]
fn who_has_said_all_is_still_answered() {
    let served = Served::demo();
    let mut talk = served.connect();
    talk.post("/v1/check", CHECK);
    talk.half_close();
    assert_eq!(talk.answer().json()["allowed"], true);
    assert!(talk.is_closed());
    let mut cut = served.connect();
    cut.raw(&head("POST /v1/check", &[JSON], Some(100)));
    cut.raw(b"{");
    cut.half_close();
    // Nobody can say what was meant, so it is refused or closed, and never decided.
    if let Ok(answer) = cut.try_answer() {
        assert_eq!(answer.status, 400, "{answer:?}");
    }
}

#[test]
fn a_thousand_idle_connections_do_not_matter() {
    let served = Served::demo();
    let idle: Vec<TcpStream> =
        (0..1_000).map(|_| TcpStream::connect(&served.address).unwrap()).collect();
    let mut talk = served.connect();
    for _ in 0..20 {
        talk.post("/v1/check", CHECK);
        assert_eq!(talk.answer().status, 200);
    }
    drop(idle);
}
