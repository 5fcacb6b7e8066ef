//! The HTTP front end: JSON in, decisions out, over one engine.
//!
//! `auth` lets requests in by the table of `roles`, which `api` describes and `docs` shows. `wire`
//! holds the shapes of requests; `check`, `calls`, `settle`, `authorize` and the operators' `desk`
//! turn them into engine calls; `listen` is the I/O with `crowd` and `visit` to bound it. The check
//! is served before the general router, because it is the one that everybody calls. Must not decide
//! anything.

mod accept;
mod admission;
mod api;
mod auth;
mod authorize;
mod body;
mod calls;
mod check;
mod connection_table;
mod crowd;
mod curt;
mod debug;
mod decide;
mod denial;
mod desk;
mod docs;
mod feed;
mod fields;
mod listen;
mod live;
mod locks;
mod operator;
mod problem;
mod quick;
mod ready;
mod respond;
mod roles;
mod router;
mod settings;
mod settle;
mod shed;
mod shown;
mod stream;
mod tally;
mod tls;
mod visit;
mod wire;
mod words;
mod xml;

use std::sync::Arc;

use arc_swap::ArcSwap;
use catraca::Engine;
use catraca::engine::Resumed;
use catraca::records::Records;
use tokio::sync::Semaphore;

use crate::locks::Keeper;
use crate::observe::Observer;
use crate::observe::traces::Traces;
use crate::reload::Reloader;
use crate::shared::SharedEngine;

pub use api::text as openapi;
pub use auth::{Guard, hash, plain_name};
pub use connection_table::LIMITS;
pub use feed::Feed;
pub use listen::{Listening, bind};
pub use live::Live;
pub use settings::Settings;
pub use settle::offloaded_max;
pub use tally::{Clocked, Times};
pub use tls::Tls;

/// What every request is answered with.
#[derive(Clone)]
pub struct Front {
    /// Decides.
    pub engine: Arc<Engine>,
    /// Decides with other nodes instead, by the same rules.
    pub shared: Option<Arc<SharedEngine>>,
    /// Leases and slots, unless the store keeps none.
    pub locks: Arc<Keeper>,
    /// Remembers, unless nothing is kept.
    pub records: Option<Arc<Records>>,
    /// Tells whoever listens.
    pub feed: Arc<Feed>,
    /// Lets requests in, and reads their addresses.
    pub live: Arc<ArcSwap<Live>>,
    /// Puts other catalogs in force.
    pub reloader: Arc<Reloader>,
    /// The certificate in force, if connections are encrypted.
    pub tls: Option<Arc<Tls>>,
    /// Sends spans to a collector, if there is one.
    pub traces: Option<Arc<Traces>>,
    /// Counts and logs what happens.
    pub observer: Arc<Observer>,
    /// What the records brought back at the start.
    pub resumed: Resumed,
    /// Turns of settles that run off the async workers.
    pub offloaded: Arc<Semaphore>,
}

impl Front {
    /// Blocks of the records that do not count for want of room, until the last has ended.
    pub fn blocks_left_out(&self) -> u64 {
        let over = self.engine.now() >= self.resumed.left_out_until;
        if over { 0 } else { self.resumed.blocks_left_out }
    }
}
