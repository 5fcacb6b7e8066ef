//! What Redis is told and what it answers: the one script, a batch as its arguments, its reply.
//!
//! The layout of both is written where the script reads it, in the heads of its files. Must not
//! connect, wait or decide: bytes out, bytes in.

mod call;
mod keys;
mod pack;
mod reader;
mod reply;
mod script;

pub use call::Call;
pub use keys::{Keys, Kind};
pub use reply::read;
pub use script::SCRIPT;
