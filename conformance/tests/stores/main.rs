//! The Redis and PostgreSQL stores on real servers, which the tests start and stop: one module for
//! each kind of test.
//!
//! `redis-server` is `CATRACA_REDIS_SERVER`, or on the path; the programs of PostgreSQL are in
//! `CATRACA_POSTGRES_BIN`, or on the path, or those of Debian's package.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod lua;
mod outages;
mod postgres;
#[path = "../../../crates/catraca/tests/records/server.rs"]
mod postgres_server;
mod random;
mod redis;
