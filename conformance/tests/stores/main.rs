//! The stores and the records on real servers of Redis and PostgreSQL, which the tests start and
//! stop: one module for each kind of test.
//!
//! `redis-server` is `CATRACA_REDIS_SERVER`, or on the path; the programs of PostgreSQL are in
//! `CATRACA_POSTGRES_BIN`, or on the path, or those of Debian's package.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod lua;
mod node_messages;
mod outages;
mod postgres;
mod random;
mod records;
mod redis;
