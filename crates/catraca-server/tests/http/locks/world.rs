//! Callers at work: thousands of calls about names and slots, noted as their callers saw them.
//!
//! Must note what was sent before it is sent, and what came back after it came.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use catraca_testkit::generate::Dice;
use catraca_testkit::locks::history::{ALL, Answer, Seen, Slack, judge};
use serde_json::{Value, json};

use crate::served::Served;
use crate::talk::{JSON, Talk, head};

/// How long leases last here, in microseconds.
pub const TTL: i64 = 300_000;
/// Where the slots are, in milliseconds.
const NOON: i64 = 1_900_000_000_000;

/// What callers saw, and by how much the wall clock was stepped meanwhile.
pub struct History {
    seen: Vec<Seen>,
    /// In microseconds, whichever way.
    pub stepped: i64,
}

struct World {
    begun: Instant,
    /// The least and the most that the wall clock was ahead of ours.
    ahead: Mutex<(i64, i64)>,
    address: Mutex<String>,
    over: AtomicBool,
    seen: Mutex<Vec<Seen>>,
}

/// One caller, who keeps a connection as long as it lasts.
struct Caller<'w> {
    world: &'w World,
    talk: Option<Talk>,
}

/// What is asked for, and how to end it.
struct Wish {
    seen: Seen,
    path: &'static str,
    body: Value,
    end: &'static str,
}

impl World {
    fn now(&self) -> i64 {
        self.look_at_clocks();
        self.monotonic()
    }

    fn monotonic(&self) -> i64 {
        i64::try_from(self.begun.elapsed().as_micros()).unwrap()
    }

    /// Only a look that nothing came between tells how the clocks stand to each other.
    fn look_at_clocks(&self) {
        let before = self.monotonic();
        let wall = i64::try_from(UNIX_EPOCH.elapsed().unwrap().as_micros()).unwrap();
        if self.monotonic() - before < 20 {
            let mut ahead = self.ahead.lock().unwrap();
            *ahead = (ahead.0.min(wall - before), ahead.1.max(wall - before));
        }
    }
}

impl Caller<'_> {
    fn call(&mut self, path: &str, body: &Value) -> Option<(u16, Value)> {
        if self.talk.is_none() {
            let address = self.world.address.lock().unwrap().clone();
            std::net::TcpStream::connect(&address).ok()?;
            self.talk = std::panic::catch_unwind(|| Talk::to(&address)).ok();
        }
        let answer = self.talk.as_mut().and_then(|talk| said(talk, path, body));
        if answer.is_none() {
            self.talk = None;
            // Whoever is not there now is there soon.
            thread::park_timeout(Duration::from_millis(5));
        }
        answer
    }

    /// Takes something, works a little, and gives it back or not.
    fn round(&mut self, dice: &mut Dice) {
        let mut wish = if dice.chance(40) { slot(dice) } else { name(dice) };
        wish.seen.sent = self.world.now();
        let told = self.call(wish.path, &wish.body);
        wish.seen.answered = Some(self.world.now());
        match told {
            Some((200, grant)) => wish.seen.answer = self.granted(&grant, wish.end, dice),
            Some((409, _)) => {}
            Some((503, told)) if told["code"] == "lock-store-unavailable" => {
                // It may come when the store is back, and is taken back only after that.
                wish.seen.answer = Answer::Unknown { ttl: TTL + 1_000_000 };
            }
            Some((503, _)) => {
                thread::park_timeout(Duration::from_millis(5));
                return;
            }
            Some((status, other)) => panic!("{status}: {other}"),
            None => {
                wish.seen.answered = None;
                wish.seen.answer = Answer::Unknown { ttl: TTL };
            }
        }
        self.world.seen.lock().unwrap().push(wish.seen);
    }

    fn granted(&mut self, grant: &Value, end: &str, dice: &mut Dice) -> Answer {
        let fence = grant["fence"].as_i64().unwrap();
        // Told from the answer on; what the way took is on the safe side.
        let ttl = grant["ttl_ms"].as_i64().unwrap() * 1_000;
        let (mut release_sent, mut released) = (None, None);
        if dice.chance(85) {
            release_sent = Some(self.world.now());
            let ended = self.call(end, &json!({ "lease_id": grant["lease_id"] }));
            if ended.is_some_and(|(_, ended)| ended["outcome"] == "released") {
                released = Some(self.world.now());
            }
        }
        Answer::Granted { fence, ttl, release_sent, released }
    }
}

fn said(talk: &mut Talk, path: &str, body: &Value) -> Option<(u16, Value)> {
    let body = body.to_string();
    let head = head(&format!("POST {path}"), &[JSON], Some(body.len()));
    talk.try_raw(&[&head, body.as_bytes()].concat()).ok()?;
    let answer = talk.try_answer().ok()?;
    Some((answer.status, serde_json::from_str(&answer.body).ok()?))
}

fn name(dice: &mut Dice) -> Wish {
    let name = dice.pick(&["p", "q", "r", "s", "t"]).to_owned();
    let wait = dice.pick(&[0, 0, 0, 50, 200]);
    let body = json!({ "key": name, "ttl_ms": TTL / 1_000, "wait_ms": wait });
    wish(name, ALL, "/v1/locks/acquire", body, "/v1/locks/release")
}

fn slot(dice: &mut Dice) -> Wish {
    let calendar = dice.pick(&["ana", "rui"]);
    let start = dice.within(0, 40);
    let end = start + dice.within(1, 6);
    let body = json!({
        "calendar": calendar, "ttl_ms": TTL / 1_000,
        "start": NOON + start * 60_000, "end": NOON + end * 60_000,
    });
    wish(format!("calendar {calendar}"), (start, end), "/v1/slots/hold", body, "/v1/slots/cancel")
}

fn wish(
    name: String,
    range: (i64, i64),
    path: &'static str,
    body: Value,
    end: &'static str,
) -> Wish {
    let seen = Seen { name, range, sent: 0, answered: None, answer: Answer::Conflict };
    Wish { seen, path, body, end }
}

/// Callers at work while something is done to the server.
pub fn history(file: &Path, seed: u64, mut act: impl FnMut(Served) -> Served) -> History {
    let mut served = Served::of(file);
    let world = World {
        begun: Instant::now(),
        ahead: Mutex::new((i64::MAX, i64::MIN)),
        address: Mutex::new(served.address.clone()),
        over: AtomicBool::new(false),
        seen: Mutex::default(),
    };
    thread::scope(|scope| {
        for number in 0..8 {
            let world = &world;
            scope.spawn(move || {
                let (mut dice, mut caller) =
                    (Dice::new(seed + number), Caller { world, talk: None });
                while !world.over.load(Ordering::SeqCst) {
                    caller.round(&mut dice);
                }
            });
        }
        for _ in 0..4 {
            thread::park_timeout(Duration::from_millis(900));
            served = act(served);
            (*world.address.lock().unwrap()).clone_from(&served.address);
        }
        thread::park_timeout(Duration::from_millis(900));
        world.over.store(true, Ordering::SeqCst);
    });
    let (least, most) = world.ahead.into_inner().unwrap();
    History { seen: world.seen.into_inner().unwrap(), stepped: most - least }
}

/// Nothing that must not be was seen, and enough was. `early` is what the clock that leases are
/// counted on was stepped by.
pub fn right(History { seen, .. }: &History, early: i64) {
    let granted = seen.iter().filter(|one| matches!(one.answer, Answer::Granted { .. })).count();
    println!("{} calls, {granted} grants", seen.len());
    assert!(seen.len() > 1_000 && granted > 100, "{} calls, {granted} grants", seen.len());
    // A lease may be told of late; conflicts with those that nobody was told of are allowed for.
    let wrong = judge(seen, Slack { early, late: 2 * TTL });
    assert!(wrong.is_empty(), "{} of {}: {}", wrong.len(), seen.len(), wrong[0]);
}
