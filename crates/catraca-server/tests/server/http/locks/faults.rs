//! Histories of lock calls, checked while the server or a caller is stopped, killed and restarted.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::workload::{TTL, assert_valid, record_history};
use super::{CATALOG, acquire};
use crate::test_server::{TestServer, catalog_file};

/// L20.
/// covers: B-65, B-72
#[test]
fn a_server_that_stood_still_gives_nothing_to_two() {
    let history = record_history(&catalog_file(CATALOG), 11, |server| {
        server.signal("STOP");
        thread::park_timeout(Duration::from_millis(2 * TTL as u64 / 1_000));
        server.signal("CONT");
        server
    });
    assert_valid(&history, 0);
}

/// L21 and the wait after an unclean start: the server is killed repeatedly while callers hold
/// leases.
/// covers: X-33
#[test]
fn a_server_that_was_killed_gives_nothing_to_two() {
    for (durability, seed) in [("memory", 21), ("fsync", 31)] {
        let file = catalog_file(&format!("{CATALOG}[locks]\ndurability = '{durability}'\n"));
        let again = file.clone();
        let history = record_history(&file, seed, move |server| {
            server.signal("KILL");
            drop(server);
            TestServer::from_file(&again)
        });
        assert_valid(&history, 0);
    }
}

/// After a kill nothing is granted until the longest possible lease has expired, and the response
/// says when that is.
#[test]
fn a_start_after_a_kill_is_careful_and_says_for_how_long() {
    let file = catalog_file(CATALOG);
    let server = TestServer::from_file(&file);
    let grant = acquire(&server, &json!({ "key": "p", "ttl_ms": 4_000 }));
    server.signal("KILL");
    drop(server);
    let killed = Instant::now();
    let server = TestServer::from_file(&file);
    let refused = super::post(&server, "/v1/locks/acquire", &json!({ "key": "q" }));
    assert_eq!(super::status_and_code(&refused), (503, "locks-starting".to_owned()));
    assert!(
        refused.header("retry-after").is_some_and(|wait| (1..=4).contains(&wait.parse().unwrap()))
    );
    loop {
        let answer = super::post(&server, "/v1/locks/acquire", &json!({ "key": "p" }));
        if answer.status == 200 {
            assert!(killed.elapsed() >= Duration::from_millis(3_900), "{:?}", killed.elapsed());
            assert!(answer.json()["fence"].as_i64() > grant["fence"].as_i64());
            return;
        }
        assert!(killed.elapsed() < Duration::from_secs(20), "{answer:?}");
    }
}

/// Acquires a lock and prints its fence; prints it again, as a write, when its input ends.
const PAUSED: &str = r#"
import json, sys, urllib.request
body = json.dumps({"key": "p", "kind": "quick"}).encode()
head = {"Content-Type": "application/json"}
lease = json.load(urllib.request.urlopen(urllib.request.Request(sys.argv[1], body, head)))
print("holds", lease["fence"], flush=True)
sys.stdin.readline()
print("writes", lease["fence"], flush=True)
"#;

/// A caller in another process, killed with the test.
struct PausedCaller(Child);

impl PausedCaller {
    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.0.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }
}

impl Drop for PausedCaller {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A resource as the guide requires it: it refuses a fence below one that it has accepted.
#[derive(Default)]
struct Resource(i64);

impl Resource {
    fn write(&mut self, fence: i64) -> bool {
        let fresh = fence >= self.0;
        self.0 = self.0.max(fence);
        fresh
    }
}

/// L19. The caller is paused past the end of its lease and then writes; its fence is too low.
#[test]
fn a_caller_that_stood_still_is_stopped_by_its_number() {
    let server = TestServer::with_catalog(CATALOG);
    let url = format!("http://{}/v1/locks/acquire", server.address);
    let mut child = Command::new("python3");
    child.args(["-c", PAUSED, &url]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut paused = PausedCaller(child.spawn().unwrap());
    let mut lines = BufReader::new(paused.0.stdout.take().unwrap()).lines();
    let mut fence = |word: &str| -> i64 {
        let line = lines.next().unwrap().unwrap();
        line.strip_prefix(word).unwrap().trim().parse().unwrap()
    };
    let mut resource = Resource::default();
    let old = fence("holds");
    paused.signal("STOP");
    let begun = Instant::now();
    let body = json!({ "key": "p", "kind": "quick", "wait_ms": 20_000 });
    let new = acquire(&server, &body)["fence"].as_i64().unwrap();
    assert!(new > old && resource.write(new));
    thread::park_timeout(Duration::from_millis(800).saturating_sub(begun.elapsed()));
    drop(paused.0.stdin.take());
    paused.signal("CONT");
    let late = fence("writes");
    assert_eq!(late, old);
    assert!(!resource.write(late), "the resource accepted a write with an old fence");
}
