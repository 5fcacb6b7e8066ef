//! The HTTP front end: from accepted connections to calls of the application and JSON responses.
//!
//! `connection` serves one connection with hyper; `dispatch` authenticates each request (`auth`)
//! and sends it to the check or to the `router`, which calls `endpoints`. `bodies` holds what is
//! sent and received, `openapi` describes it. The application decides.

mod auth;
mod bodies;
mod connection;
mod dispatch;
mod endpoints;
mod front_end;
pub mod openapi;
mod router;

pub use front_end::HttpFrontEnd;
