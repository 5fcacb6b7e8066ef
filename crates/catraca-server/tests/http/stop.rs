//! Stopping: what is being answered is answered, and nothing keeps the process.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::served::Served;
use crate::talk::{JSON, Talk, head};

const CHECK: &str = r#"{"gate":"search","subject":{"user":"ana"}}"#;
/// Less than the server would wait for an answer in flight.
const SOON: Duration = Duration::from_secs(8);

/// A request whose head was taken: the server has asked for the body.
fn in_flight(served: &Served) -> Talk {
    let mut talk = served.connect();
    let headers = [JSON, ("Expect", "100-continue")];
    talk.raw(&head("POST /v1/check", &headers, Some(CHECK.len())));
    assert_eq!(talk.answer().status, 100);
    talk
}

/// Waits until the door is shut.
fn await_shut(address: &str) {
    let patience = Instant::now() + SOON;
    while TcpStream::connect(address).is_ok() {
        assert!(Instant::now() < patience, "it still listens");
    }
}

/// covers: 002-19
#[test]
fn an_answer_in_flight_is_finished_after_either_signal() {
    for signal in ["TERM", "INT"] {
        let served = Served::demo();
        let mut talk = in_flight(&served);
        served.signal(signal);
        await_shut(&served.address);
        talk.raw(CHECK.as_bytes());
        let answer = talk.answer();
        assert_eq!((answer.status, &answer.json()["allowed"]), (200, &true.into()));
        assert_eq!(answer.header("connection"), Some("close"));
        assert!(talk.is_closed());
        let (status, said) = served.ended();
        assert!(status.success(), "{status}");
        assert!(said.contains("stopped: 1 answers, 0 refused, 0 failed, 0 shed; 50%"), "{said}");
    }
}

#[test]
fn connections_that_ask_nothing_do_not_keep_the_process() {
    let served = Served::demo();
    let silent = served.connect();
    let mut idle = served.connect();
    idle.send("GET /healthz", &[], b"");
    assert_eq!(idle.answer().status, 200);
    let begun = Instant::now();
    served.signal("TERM");
    let (status, said) = served.ended();
    assert!(status.success(), "{said}");
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    drop((silent, idle));
}

#[test]
fn a_second_signal_does_not_wait() {
    let served = Served::demo();
    let talk = in_flight(&served);
    let begun = Instant::now();
    served.signal("TERM");
    await_shut(&served.address);
    served.signal("TERM");
    let (status, said) = served.ended();
    assert!(status.success() && said.contains("stopped: 0 answers"), "{said}");
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    drop(talk);
}
