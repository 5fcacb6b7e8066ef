//! The listener: accepts connections within their limits, encrypts them, and drains them when the
//! server stops.

mod admission;
pub mod connection;
pub mod connections;
pub mod listen;
pub mod stream;
pub mod table;
pub mod tls;
