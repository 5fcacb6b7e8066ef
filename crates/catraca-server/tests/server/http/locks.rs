//! Locks and slots over HTTP: the black-box tests of the guide.
//!
//! Leases are short and tolerances wide: what must not happen too early is measured from before the
//! request, what must have happened by a time from after the response.

mod faults;
mod latency;
mod leases;
mod operators;
mod restarts;
mod shared;
mod slots;
mod waiting;
mod workload;

use std::fs;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use catraca_testkit::redis::RedisServer;
use serde_json::{Value, json};

use crate::raw_connection::{HttpResponse, JSON};
use crate::test_server::{TestServer, catalog_file};
use catraca_testkit::postgres::{self, PASSWORD, PostgresServer};

/// A kind with short leases, so that tests do not wait for long.
pub const CATALOG: &str = "[locks.kind.quick]\nttl = '400ms'\nttl_max = '10s'\n";

/// The external store of the locks, stopped with the test; without one, locks are in the server's
/// process.
#[derive(Default)]
pub struct LockStore {
    redis: Option<RedisServer>,
    _postgres: Option<Arc<PostgresServer>>,
}

impl LockStore {
    /// Whether confirmed leases survive a crash of the store: the test's Redis does not persist.
    pub fn is_durable(&self) -> bool {
        self.redis.is_none()
    }
}

/// A server and the store of its locks.
pub struct LockServer {
    server: TestServer,
    _store: LockStore,
}

impl Deref for LockServer {
    type Target = TestServer;

    fn deref(&self) -> &TestServer {
        &self.server
    }
}

/// A server with this catalog. Its locks are in its process, or in Redis or PostgreSQL if
/// `CATRACA_LOCKS_STORE` is `redis` or `postgres`: the responses must not depend on that.
pub fn lock_server(catalog: &str) -> LockServer {
    let (file, lock_store) = catalog_with_lock_store(catalog);
    LockServer { server: TestServer::from_file(&file), _store: lock_store }
}

/// The catalog file of such a server, and its store.
pub fn catalog_with_lock_store(catalog: &str) -> (PathBuf, LockStore) {
    let mut lock_store = LockStore::default();
    let mut store = String::new();
    match std::env::var("CATRACA_LOCKS_STORE").as_deref() {
        Ok("redis") => {
            lock_store.redis = RedisServer::start();
            store =
                lock_store.redis.as_ref().map_or(store, |redis| store_section(&redis.url(), "5s"));
        }
        Ok("postgres") => {
            let postgres = postgres::shared_server();
            // Each call is one commit, and other tests use the machine at the same time, so the
            // deadline is long.
            store = store_section(&create_database(&postgres), "10s");
            lock_store = LockStore { redis: None, _postgres: Some(postgres) };
        }
        _ => {}
    }
    (catalog_with_secret(&format!("{catalog}{store}")), lock_store)
}

/// Creates a database; returns its URL.
pub fn create_database(postgres: &PostgresServer) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("locks_{}", NEXT.fetch_add(1, Ordering::Relaxed));
    postgres.psql("postgres", &format!("CREATE DATABASE {name}"));
    format!("postgres://catraca:{PASSWORD}@127.0.0.1:{}/{name}", postgres.port)
}

/// The `[store]` section of a shared store.
pub fn store_section(url: &str, deadline: &str) -> String {
    format!("[store]\nurl = {url:?}\ndeadline = {deadline:?}\n")
}

/// A catalog file beside the secret that all nodes of a test have.
pub fn catalog_with_secret(catalog: &str) -> PathBuf {
    let path = catalog_file(catalog);
    fs::write(path.with_file_name("catraca.secret"), "07".repeat(32)).unwrap();
    path
}

/// Sends one POST of JSON.
pub fn post(server: &TestServer, path: &str, body: &Value) -> HttpResponse {
    server.post(path, &body.to_string())
}

/// Sends one DELETE with a JSON body.
pub fn delete(server: &TestServer, path: &str, body: &Value) -> HttpResponse {
    let mut connection = server.connect();
    connection.send(&format!("DELETE {path}"), &[JSON], body.to_string().as_bytes());
    connection.read_response()
}

/// Acquires a lock, which must be granted; returns the lease.
pub fn acquire(server: &TestServer, body: &Value) -> Value {
    let answer = post(server, "/v1/locks/acquire", body);
    assert_eq!(answer.status, 200, "{body}: {answer:?}");
    answer.json()
}

/// Releases a lease; returns the outcome.
pub fn release(server: &TestServer, lease: &Value) -> String {
    let answer = post(server, "/v1/locks/release", &json!({ "lease_id": lease["lease_id"] }));
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["outcome"].as_str().unwrap().to_owned()
}

/// The status of a response, and its problem code or outcome.
pub fn status_and_code(answer: &HttpResponse) -> (u16, String) {
    let json = answer.json();
    let word = json["code"].as_str().or_else(|| json["outcome"].as_str());
    (answer.status, word.unwrap_or_default().to_owned())
}
