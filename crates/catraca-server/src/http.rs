//! The HTTP front end: JSON in, decisions out, over one engine.
//!
//! `wire` holds the shapes of requests, `calls` turns them into engine calls, `listen` is the I/O.
//! The check route is served
//! before the general router, because it is the one that everybody calls. Must not decide anything.

mod authorize;
mod body;
mod calls;
mod check;
mod fields;
mod listen;
mod problem;
mod router;
mod wire;

use std::sync::Arc;

use catraca::Engine;
use catraca::core::address::Range;

pub use listen::bind;

/// What every request is answered with.
#[derive(Clone)]
pub struct Front {
    /// Decides.
    pub engine: Arc<Engine>,
    /// How answers and addresses are treated.
    pub settings: Arc<Settings>,
}

/// The front end's own settings, from `[server]` and `[network]`.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Whether `X-RateLimit-*` headers are sent too.
    pub x_ratelimit: bool,
    /// The proxies whose forwarding headers are believed.
    pub trusted_proxies: Vec<Range>,
}
