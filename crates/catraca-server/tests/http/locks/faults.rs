//! What callers saw, judged, while the server is stopped, killed and started again.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use catraca_testkit::generate::Dice;
use catraca_testkit::locks::history::{ALL, Answer, Seen, judge};
use serde_json::{Value, json};

use super::CATALOG;
use crate::served::{Served, file};
use crate::talk::Talk;

/// How long leases last here.
const TTL: i64 = 300_000;

struct World {
    begun: Instant,
    address: Mutex<String>,
    over: AtomicBool,
    seen: Mutex<Vec<Seen>>,
}

impl World {
    fn now(&self) -> i64 {
        i64::try_from(self.begun.elapsed().as_micros()).unwrap()
    }

    fn call(&self, path: &str, body: &Value) -> Option<(u16, Value)> {
        let address = self.address.lock().unwrap().clone();
        let stream = std::net::TcpStream::connect(&address).ok()?;
        drop(stream);
        let mut talk = std::panic::catch_unwind(|| Talk::to(&address)).ok()?;
        talk.try_raw(&crate::talk::head(
            &format!("POST {path}"),
            &[crate::talk::JSON],
            Some(body.to_string().len()),
        ))
        .ok()?;
        talk.try_raw(body.to_string().as_bytes()).ok()?;
        let answer = talk.try_answer().ok()?;
        Some((answer.status, serde_json::from_str(&answer.body).ok()?))
    }

    /// Takes a name, works a little, and gives it back or not.
    fn round(&self, dice: &mut Dice) {
        let name = dice.pick(&["p", "q", "r"]).to_owned();
        let wait = dice.pick(&[0, 0, 50, 200]);
        let body = json!({ "key": name, "ttl_ms": TTL / 1_000, "wait_ms": wait });
        let sent = self.now();
        let told = self.call("/v1/locks/acquire", &body);
        let mut seen =
            Seen { name, range: ALL, sent, answered: Some(self.now()), answer: Answer::Conflict };
        match told {
            Some((200, grant)) => {
                let fence = grant["fence"].as_i64().unwrap();
                // Told from the answer on; what the way took is on the safe side.
                let ttl = grant["ttl_ms"].as_i64().unwrap() * 1_000;
                let (mut release_sent, mut released) = (None, None);
                if dice.chance(70) {
                    release_sent = Some(self.now());
                    let body = json!({ "lease_id": grant["lease_id"] });
                    let ended = self.call("/v1/locks/release", &body);
                    if ended.is_some_and(|(_, ended)| ended["outcome"] == "released") {
                        released = Some(self.now());
                    }
                }
                seen.answer = Answer::Granted { fence, ttl, release_sent, released };
            }
            Some((409, _)) => {}
            Some((503, _)) => return,
            Some((status, other)) => panic!("{status}: {other}"),
            None => {
                seen.answered = None;
                seen.answer = Answer::Unknown { ttl: TTL };
            }
        }
        self.seen.lock().unwrap().push(seen);
    }
}

/// Callers at work while something is done to the server.
fn history(file: &Path, seed: u64, mut act: impl FnMut(Served, usize) -> Served) -> Vec<Seen> {
    let mut served = Served::of(file);
    let world = World {
        begun: Instant::now(),
        address: Mutex::new(served.address.clone()),
        over: AtomicBool::new(false),
        seen: Mutex::default(),
    };
    thread::scope(|scope| {
        for number in 0..8 {
            let world = &world;
            scope.spawn(move || {
                let mut dice = Dice::new(seed + number);
                while !world.over.load(Ordering::SeqCst) {
                    world.round(&mut dice);
                }
            });
        }
        for step in 0..4 {
            thread::park_timeout(Duration::from_millis(700));
            served = act(served, step);
            (*world.address.lock().unwrap()).clone_from(&served.address);
        }
        world.over.store(true, Ordering::SeqCst);
    });
    world.seen.into_inner().unwrap()
}

fn right(seen: &[Seen]) {
    let granted = seen.iter().filter(|one| matches!(one.answer, Answer::Granted { .. })).count();
    assert!(granted > 50, "only {granted} grants of {}", seen.len());
    // A lease may be told of late; conflicts with those that nobody was told of are allowed for.
    let wrong = judge(seen, 2 * TTL);
    assert!(wrong.is_empty(), "{} of {}: {}", wrong.len(), seen.len(), wrong[0]);
    println!("{} calls, {granted} grants", seen.len());
}

/// L20.
/// covers: B-65, B-72
#[test]
fn a_server_that_stood_still_gives_nothing_to_two() {
    let seen = history(&file(CATALOG), 11, |served, _| {
        served.signal("STOP");
        thread::park_timeout(Duration::from_millis(2 * TTL as u64 / 1_000));
        served.signal("CONT");
        served
    });
    right(&seen);
}

/// L21 and the careful start: killed while callers hold leases, over and over.
/// covers: 004-93
#[test]
fn a_server_that_was_killed_gives_nothing_to_two() {
    for (durability, seed) in [("memory", 21), ("fsync", 31)] {
        let file = file(&format!("{CATALOG}[locks]\ndurability = '{durability}'\n"));
        let again = file.clone();
        let seen = history(&file, seed, move |served, _| {
            served.signal("KILL");
            drop(served);
            Served::of(&again)
        });
        right(&seen);
    }
}

/// After a kill nothing is granted until the longest lease has run out, and the answer says when.
#[test]
fn a_start_after_a_kill_is_careful_and_says_for_how_long() {
    let file = file(CATALOG);
    let served = Served::of(&file);
    let grant = super::take(&served, &json!({ "key": "p", "ttl_ms": 4_000 }));
    served.signal("KILL");
    drop(served);
    let killed = Instant::now();
    let served = Served::of(&file);
    let refused = super::post(&served, "/v1/locks/acquire", &json!({ "key": "q" }));
    assert_eq!(super::said(&refused), (503, "locks-starting".to_owned()));
    assert!(
        refused.header("retry-after").is_some_and(|wait| (1..=4).contains(&wait.parse().unwrap()))
    );
    loop {
        let answer = super::post(&served, "/v1/locks/acquire", &json!({ "key": "p" }));
        if answer.status == 200 {
            assert!(killed.elapsed() >= Duration::from_millis(3_900), "{:?}", killed.elapsed());
            assert!(answer.json()["fence"].as_i64() > grant["fence"].as_i64());
            return;
        }
        assert!(killed.elapsed() < Duration::from_secs(20), "{answer:?}");
    }
}
