//! Stopping: what is being answered is answered, and nothing keeps the process.

use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::served::{Served, file};
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

/// Asks again and again until the connection ends; how many were answered. Whatever was sent before
/// the word to stop must be.
fn ask_until_the_end(mut talk: Talk, told: &AtomicBool) -> u64 {
    let mut answered = 0;
    loop {
        let sent = talk.try_raw(&head("POST /v1/check", &[JSON], Some(CHECK.len())));
        let sent = sent.and_then(|()| talk.try_raw(CHECK.as_bytes()));
        let before = !told.load(Ordering::SeqCst);
        match sent.and_then(|()| talk.try_answer()) {
            Ok(answer) => {
                assert_eq!(answer.status, 200);
                answered += 1;
                if answer.header("connection") == Some("close") {
                    return answered;
                }
            }
            Err(error) => {
                assert!(!before, "sent before the stop and not answered: {error}");
                return answered;
            }
        }
    }
}

/// covers: 002-19
#[test]
fn every_request_sent_before_the_stop_is_answered_and_what_it_counted_is_kept() {
    let catalog = "[policy.search]\nby = ['user']\nfixed = '10000000 per 1d'\n\
                   [store]\nsnapshot_interval = '1h'\n";
    let file = file(catalog);
    let mut answered = 0;
    for round in 0..3 {
        let (served, told) = (Served::of(&file), AtomicBool::new(false));
        // Some have asked before and are idle, some have only connected.
        let mut idle: Vec<Talk> = (0..24).map(|_| served.connect()).collect();
        for talk in &mut idle[..12] {
            talk.post("/v1/check", CHECK);
            assert_eq!(talk.answer().status, 200);
            answered += 1;
        }
        let busy: Vec<Talk> = (0..8).map(|_| served.connect()).collect();
        std::thread::scope(|scope| {
            let busy: Vec<_> = busy
                .into_iter()
                .map(|talk| scope.spawn(|| ask_until_the_end(talk, &told)))
                .collect();
            idle.iter_mut().for_each(|talk| talk.post("/v1/check", CHECK));
            told.store(true, Ordering::SeqCst);
            served.signal("TERM");
            for talk in &mut idle {
                assert_eq!(talk.answer().status, 200, "round {round}");
                answered += 1;
            }
            answered += busy.into_iter().map(|thread| thread.join().unwrap()).sum::<u64>();
        });
        let begun = Instant::now();
        let (status, said) = served.ended();
        assert!(status.success() && begun.elapsed() < SOON, "{said}");
    }
    let served = Served::of(&file);
    let left = served.json("/v1/peek", CHECK).1["remaining"].as_u64().unwrap();
    assert_eq!(10_000_000 - left, answered);
}

#[test]
fn probes_hear_of_a_stop_while_callers_are_still_served() {
    let policy = "[policy.search]\nby = ['user']\nwindow = '100 per 1h'\n";
    let served = Served::with(&format!("{policy}[server]\nstop_delay = '1m'\n"));
    assert_eq!(served.ask("GET /readyz", &[]).status, 200);
    served.signal("TERM");
    let patience = Instant::now() + SOON;
    let mut ready = served.ask("GET /readyz", &[]);
    while ready.status != 503 {
        assert!(Instant::now() < patience, "{ready:?}");
        ready = served.ask("GET /readyz", &[]);
    }
    assert_eq!(
        (&ready.json()["ready"], &ready.json()["problems"][0]["what"]),
        (&false.into(), &"stopping".into())
    );
    assert_eq!(served.json("/v1/check", CHECK).0, 200);
    assert!(served.ask("GET /metrics", &[]).body.contains("catraca_draining 1\n"));
    served.signal("TERM");
    let (status, said) = served.ended();
    assert!(status.success() && Instant::now() < patience, "{said}");
}
