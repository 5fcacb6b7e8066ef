//! Listeners: accept connections within their limits, encrypt them, hand them to a front end, and
//! drain them when the server stops.
//!
//! A `FrontEnd` is a protocol. All listeners of a server share one `Connections`, so that limits,
//! timeouts, metrics and the drain hold for all protocols together. No type of a protocol belongs
//! here.

mod accept;
mod admission;
mod clock;
mod connection;
mod connection_metrics;
mod connections;
mod drain;
mod front_end;
mod refusal;
mod stream;
mod table;
pub mod tls;

pub use accept::{Listener, ListenerContext};
pub use connection::{Connection, Phase};
pub use connections::Connections;
pub use drain::Listeners;
pub use front_end::FrontEnd;
pub use stream::ConnectionStream;
pub use table::{CONNECTION_LIMITS, ConnectionLimit};
