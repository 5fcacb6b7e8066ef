//! The HTTP front end: from accepted connections to calls of the application and JSON responses.
//!
//! `connection` serves one connection with hyper. `dispatch` serves each of its requests: it finds
//! the endpoint in the `table`, admits the caller (`auth`), reads the body and runs the handler in
//! `endpoints`, which calls the application. `bodies` holds what is sent and received; `openapi`
//! describes the table.

mod auth;
mod bodies;
mod connection;
mod dispatch;
pub mod endpoint;
mod endpoints;
mod front_end;
pub mod openapi;
mod request;
pub mod table;

pub use front_end::HttpFrontEnd;
