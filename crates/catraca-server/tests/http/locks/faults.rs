//! What callers saw, judged, while the server or a caller is stopped, killed and started again.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::world::{TTL, history, right};
use super::{CATALOG, take};
use crate::served::{Served, file};

/// L20.
/// covers: B-65, B-72
#[test]
fn a_server_that_stood_still_gives_nothing_to_two() {
    let history = history(&file(CATALOG), 11, |served| {
        served.signal("STOP");
        thread::park_timeout(Duration::from_millis(2 * TTL as u64 / 1_000));
        served.signal("CONT");
        served
    });
    right(&history, 0);
}

/// L21 and the careful start: killed while callers hold leases, over and over.
/// covers: 004-93, X-33
#[test]
fn a_server_that_was_killed_gives_nothing_to_two() {
    for (durability, seed) in [("memory", 21), ("fsync", 31)] {
        let file = file(&format!("{CATALOG}[locks]\ndurability = '{durability}'\n"));
        let again = file.clone();
        let history = history(&file, seed, move |served| {
            served.signal("KILL");
            drop(served);
            Served::of(&again)
        });
        right(&history, 0);
    }
}

/// After a kill nothing is granted until the longest lease has run out, and the answer says when.
#[test]
fn a_start_after_a_kill_is_careful_and_says_for_how_long() {
    let file = file(CATALOG);
    let served = Served::of(&file);
    let grant = take(&served, &json!({ "key": "p", "ttl_ms": 4_000 }));
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

/// Acquires, says so, and writes what it came to write as soon as it is let.
const PAUSED: &str = r#"
import json, sys, urllib.request
body = json.dumps({"key": "p", "kind": "quick"}).encode()
head = {"Content-Type": "application/json"}
lease = json.load(urllib.request.urlopen(urllib.request.Request(sys.argv[1], body, head)))
print("holds", lease["fence"], flush=True)
sys.stdin.readline()
print("writes", lease["fence"], flush=True)
"#;

/// A caller in a process of its own, ended with the test.
struct Paused(Child);

impl Paused {
    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.0.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the guide asks of a resource: it refuses a number below one that it has seen.
#[derive(Default)]
struct Resource(i64);

impl Resource {
    fn write(&mut self, fence: i64) -> bool {
        let fresh = fence >= self.0;
        self.0 = self.0.max(fence);
        fresh
    }
}

/// L19. It sleeps past its lease and goes on as if nothing had happened; its number gives it away.
#[test]
fn a_caller_that_stood_still_is_stopped_by_its_number() {
    let served = Served::with(CATALOG);
    let url = format!("http://{}/v1/locks/acquire", served.address);
    let mut child = Command::new("python3");
    child.args(["-c", PAUSED, &url]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut paused = Paused(child.spawn().unwrap());
    let mut said = BufReader::new(paused.0.stdout.take().unwrap()).lines();
    let mut fence = |word: &str| -> i64 {
        let line = said.next().unwrap().unwrap();
        line.strip_prefix(word).unwrap().trim().parse().unwrap()
    };
    let mut resource = Resource::default();
    let old = fence("holds");
    paused.signal("STOP");
    let begun = Instant::now();
    let asked = json!({ "key": "p", "kind": "quick", "wait_ms": 20_000 });
    let new = take(&served, &asked)["fence"].as_i64().unwrap();
    assert!(new > old && resource.write(new));
    thread::park_timeout(Duration::from_millis(800).saturating_sub(begun.elapsed()));
    drop(paused.0.stdin.take());
    paused.signal("CONT");
    let late = fence("writes");
    assert_eq!(late, old);
    assert!(!resource.write(late), "the resource took what came too late");
}
