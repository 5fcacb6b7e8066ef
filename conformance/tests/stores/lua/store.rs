//! The store contract on the script alone, with one connection per concurrent caller and without
//! retries.

use std::sync::Mutex;

use catraca::redis::SCRIPT;
use catraca::store::{Store, StoreError, When};
use catraca_core::batch::{Batch, Reply};
use catraca_testkit::contract::{admitted_at_once, run_all};
use catraca_testkit::resp::RespClient;

use super::trace;
use catraca_testkit::redis::RedisServer as Server;

/// A server that has loaded the script.
struct Remote {
    server: Server,
    sha: Vec<u8>,
    idle: Mutex<Vec<RespClient>>,
}

impl Remote {
    fn start() -> Option<Self> {
        let server = Server::start()?;
        let sha = trace::load(&mut server.connect(), SCRIPT).expect("the script loads");
        Some(Self { server, sha, idle: Mutex::default() })
    }
}

impl Store for Remote {
    fn apply(&self, batch: &Batch, when: When) -> Result<Reply, StoreError> {
        let idle = self.idle.lock().expect("not poisoned").pop();
        let mut client = idle.unwrap_or_else(|| self.server.connect());
        let now = match when {
            When::Store => None,
            When::At(now) => Some(now),
        };
        let reply = trace::apply(&mut client, &self.sha, batch, now);
        self.idle.lock().expect("not poisoned").push(client);
        reply.map_err(StoreError::unavailable)
    }
}

/// covers: 002-21, 002-22, 002-25, X-02, B-36, B-38
#[test]
fn the_script_keeps_the_contract() {
    if Server::start().is_none() {
        return;
    }
    let cases = run_all(|| Box::new(Remote::start().expect("it started before")));
    let failed: Vec<_> = cases.iter().filter(|case| case.result.is_err()).collect();
    println!("{} cases", cases.len());
    assert!(failed.is_empty(), "{} of {} cases: {failed:#?}", failed.len(), cases.len());
}

/// covers: 002-35, B-33, B-34
#[test]
fn sixty_four_connections_get_exactly_ten_a_hundred_times() {
    let Some(remote) = Remote::start() else { return };
    assert_eq!(admitted_at_once(&remote, 64, 100, 10).unwrap(), [10; 100]);
}
