//! Locks and slots as callers meet them: the black-box tests of the guide, over real sockets.
//!
//! Times are short and generous: what must not happen early is measured from before the question,
//! what must happen by then from after the answer.

mod faults;
mod leases;
mod operators;
mod pace;
mod shared;
mod slots;
mod stopped;
mod waiting;
mod world;

use std::fs;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use catraca_testkit::redis::RedisServer;
use serde_json::{Value, json};

use crate::served::{Served, file};
use crate::server::{self, PASSWORD, Server};
use crate::talk::{Answer, JSON};

/// Kinds with short lives, so that nobody has to wait for long.
pub const CATALOG: &str = "[locks.kind.quick]\nttl = '400ms'\nttl_max = '10s'\n";

/// Where a server keeps its locks, ended with the test; its own process if it is none of these.
#[derive(Default)]
pub struct Keeper {
    redis: Option<RedisServer>,
    _postgres: Option<Arc<Server>>,
}

impl Keeper {
    /// Whether what it has confirmed survives its own crash.
    pub fn is_durable(&self) -> bool {
        self.redis.is_none()
    }
}

/// A server, and whatever it keeps its locks in.
pub struct Site {
    served: Served,
    _keeper: Keeper,
}

impl Deref for Site {
    type Target = Served;

    fn deref(&self) -> &Served {
        &self.served
    }
}

/// A server of this catalog that keeps locks in its process; where `CATRACA_LOCKS_STORE` is `redis`
/// or `postgres`, in a server of that kind. What callers see must not depend on it.
pub fn site(catalog: &str) -> Site {
    let (file, keeper) = place(catalog);
    Site { served: Served::of(&file), _keeper: keeper }
}

/// The catalog of such a server, in a file.
pub fn place(catalog: &str) -> (PathBuf, Keeper) {
    let (mut keeper, mut store) = (Keeper::default(), String::new());
    match std::env::var("CATRACA_LOCKS_STORE").as_deref() {
        Ok("redis") => {
            keeper.redis = RedisServer::start();
            store = keeper.redis.as_ref().map_or(store, |redis| shared(&redis.url(), "5s"));
        }
        Ok("postgres") => {
            let server = server::shared();
            // Each call is a commit of its own, and tests share their machine.
            store = shared(&database(&server), "10s");
            keeper = Keeper { redis: None, _postgres: Some(server) };
        }
        _ => {}
    }
    (secret(&format!("{catalog}{store}")), keeper)
}

/// A new database of a server; its URL.
pub fn database(server: &Server) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("locks_{}", NEXT.fetch_add(1, Ordering::Relaxed));
    server.psql("postgres", &format!("CREATE DATABASE {name}"));
    format!("postgres://catraca:{PASSWORD}@127.0.0.1:{}/{name}", server.port)
}

/// The section of a store that nodes share.
pub fn shared(url: &str, deadline: &str) -> String {
    format!("[store]\nurl = {url:?}\ndeadline = {deadline:?}\n")
}

/// A catalog with the secret that all nodes have beside it.
pub fn secret(catalog: &str) -> PathBuf {
    let path = file(catalog);
    fs::write(path.with_file_name("catraca.secret"), "07".repeat(32)).unwrap();
    path
}

/// One POST.
pub fn post(served: &Served, path: &str, body: &Value) -> Answer {
    served.post(path, &body.to_string())
}

/// A DELETE with a body.
pub fn delete(served: &Served, path: &str, body: &Value) -> Answer {
    let mut talk = served.connect();
    talk.send(&format!("DELETE {path}"), &[JSON], body.to_string().as_bytes());
    talk.answer()
}

/// Takes a name, which must be granted.
pub fn take(served: &Served, body: &Value) -> Value {
    let answer = post(served, "/v1/locks/acquire", body);
    assert_eq!(answer.status, 200, "{body}: {answer:?}");
    answer.json()
}

/// Gives a lease back; how it ended.
pub fn give(served: &Served, lease: &Value) -> String {
    let answer = post(served, "/v1/locks/release", &json!({ "lease_id": lease["lease_id"] }));
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["outcome"].as_str().unwrap().to_owned()
}

/// Status and code, or what else the answer says.
pub fn said(answer: &Answer) -> (u16, String) {
    let json = answer.json();
    let word = json["code"].as_str().or_else(|| json["outcome"].as_str());
    (answer.status, word.unwrap_or_default().to_owned())
}
