//! Patience: whoever is too slow is sent away, and nobody else notices.
//!
//! The server's patience is made short; a test waits for the server's own act, never for a time.

use std::io::ErrorKind;
use std::time::Duration;

use crate::served::Served;
use crate::talk::{JSON, Talk, head};

const BIG: &str = r#"{"gate":"a","subject":{"ip":"198.51.100.7"}}"#;

fn served(setting: &str) -> Served {
    let policy = "[policy.a]\nby = ['ip']\nwindow = '10000 per 1s'\n";
    Served::with(&format!("{policy}[server]\n{setting}\n"))
}

#[test]
fn a_head_that_trickles_is_cut_off() {
    let served = served("head_timeout = '200ms'");
    let mut slow = served.connect();
    slow.raw(b"GET /healthz HTTP/1.1\r\n");
    slow.patience(Duration::from_millis(20));
    // A line every now and then does not buy more time.
    let cut = (0..500).any(|place| {
        slow.try_raw(format!("x-{place}: y\r\n").as_bytes()).is_err() || slow.is_closed()
    });
    assert!(cut);
    assert_eq!(served.ask("GET /healthz", &[]).status, 200);
}

#[test]
fn who_says_nothing_is_cut_off_and_who_keeps_asking_is_not() {
    let served = served("head_timeout = '200ms'\nidle_timeout = '300ms'");
    let mut silent = served.connect();
    let mut busy = served.connect();
    let mut idle = served.connect();
    idle.send("GET /healthz", &[], b"");
    assert_eq!(idle.answer().status, 200);
    silent.patience(Duration::from_millis(10));
    idle.patience(Duration::from_millis(10));
    let (mut silent_is_cut, mut idle_is_cut) = (false, false);
    for _ in 0..1_000 {
        busy.post("/v1/check", BIG);
        assert_eq!(busy.answer().status, 200);
        silent_is_cut = silent_is_cut || silent.is_closed();
        idle_is_cut = idle_is_cut || idle.is_closed();
        if silent_is_cut && idle_is_cut {
            return;
        }
    }
    panic!("silent {silent_is_cut}, idle {idle_is_cut}");
}

#[test]
fn a_body_that_does_not_come_is_answered_408() {
    let served = served("body_timeout = '200ms'");
    for path in ["/v1/check", "/v1/settle"] {
        let mut slow = served.connect();
        slow.raw(&head(&format!("POST {path}"), &[JSON], Some(50)));
        slow.raw(b"{");
        let answer = slow.answer();
        assert_eq!((answer.status, answer.problem().as_str()), (408, "body-timeout"));
        assert!(answer.body.contains("200ms"), "{}", answer.body);
        assert!(slow.is_closed());
    }
}

#[test]
fn who_never_reads_answers_is_cut_off() {
    let served = served("answer_timeout = '200ms'\nbody_timeout = '200ms'");
    let mut deaf = served.connect();
    let list = format!("[{}]", vec![BIG; 100].join(","));
    let one = [head("POST /v1/check", &[JSON], Some(list.len())), list.into()].concat();
    // Every answer is some 30 KiB; no system buffers all of them, or even all of the questions.
    let cut = (0..100_000).find_map(|_| deaf.try_raw(&one).err());
    let cut = cut.map(|error| error.kind());
    assert!(matches!(cut, Some(ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)), "{cut:?}");
    let mut other = Talk::to(&served.address);
    other.post("/v1/check", BIG);
    assert_eq!(other.answer().status, 200);
}

/// A listener that has stopped reading, and how to make things happen.
fn deaf(setting: &str) -> (Served, Talk) {
    let policy = "[policy.a]\nby = ['ip']\nwindow = '1 per 1h'\n";
    let served = Served::with(&format!("{policy}[server]\n{setting}\n"));
    let mut listener = served.connect();
    listener.send("GET /v1/events", &[], b"");
    listener.until(": listening");
    (served, listener)
}

/// A hundred denials.
fn happen(talk: &mut Talk) {
    let list = format!("[{}]", vec![BIG; 100].join(","));
    talk.post("/v1/check", &list);
    assert_eq!(talk.answer().status, 200);
}

#[test]
fn a_listener_that_never_reads_is_cut_off() {
    let (served, mut listener) = deaf("answer_timeout = '200ms'");
    let mut talk = served.connect();
    // What a listener says is not read until its turn, which never comes.
    let cut = (0..20_000).any(|_| {
        happen(&mut talk);
        listener.try_raw(b" ").is_err()
    });
    assert!(cut);
    assert_eq!(served.ask("GET /healthz", &[]).status, 200);
}

#[test]
fn a_listener_that_falls_behind_is_told_how_far_and_sent_away() {
    let (served, mut listener) = deaf("answer_timeout = '5m'");
    let mut talk = served.connect();
    // Some 10 MiB: more than any system keeps for whoever does not read.
    (0..700).for_each(|_| happen(&mut talk));
    let heard = listener.until("event: missed");
    assert!(heard.contains("event: denied"), "it heard what was kept for it");
    let missed = listener.until("data: ");
    let missed = missed.split("\"missed\":").nth(1).and_then(|rest| rest.split('}').next());
    assert!(missed.unwrap().parse::<u64>().unwrap() > 0);
    listener.rest();
}
