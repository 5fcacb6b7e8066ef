//! The server as its users meet it: the real binary on a port of its own, asked over real sockets.
//!
//! Loopback only, bounded in count and time; every process that is started is ended by its id.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod admin;
mod api;
mod auth;
mod authorize;
mod booking;
mod bounds;
mod calls;
mod collector;
mod connections;
mod dict;
mod disk;
mod fields;
mod first;
mod full;
mod kept;
mod keys;
mod locks;
mod lost_keys;
mod matrix;
mod observe;
mod planted;
mod postgres;
mod presets;
mod refused;
mod reload;
#[path = "../../src/http/roles.rs"]
#[allow(dead_code, reason = "the table of the server itself, of which tests need a part")]
mod roles;
mod secret;
mod served;
#[path = "../../../catraca/tests/records/server.rs"]
#[allow(dead_code, reason = "the library's own tests need more of it")]
mod server;
mod settling;
mod shared;
mod slow;
mod stop;
mod talk;
mod tls;
mod traces;
mod unstorable;
mod xml;
