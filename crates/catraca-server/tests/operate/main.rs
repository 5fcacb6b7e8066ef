//! The command line as operators use it: the real binary, asking a real server over real sockets.
//!
//! Loopback only, bounded in count and time; every process that is started is ended by its id.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod ask;
mod blocks;
mod desk;
mod events;
mod failing;
mod files;
mod keys;
mod lists;
mod locks;
mod looks;
#[path = "../http/served.rs"]
#[allow(dead_code, reason = "shared with the tests of the server, of which these need a part")]
mod served;
mod shell;
mod switches;
#[path = "../http/talk.rs"]
#[allow(dead_code, reason = "shared with the tests of the server, of which these need a part")]
mod talk;
