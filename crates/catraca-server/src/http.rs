//! The HTTP front end: from accepted sockets to engine calls and JSON responses.
//!
//! `connection` serves one connection with hyper; `dispatch` authenticates each request (`auth`)
//! and sends it to the check or to the `router`, which calls `endpoints`. `bodies` holds what is
//! sent and received, `openapi` describes it. No rule of rate limiting is here: the engine decides.

pub mod auth;
pub mod bodies;
pub mod connection;
pub mod dispatch;
pub mod endpoints;
mod http_metrics;
pub mod openapi;
pub mod router;

pub use http_metrics::{HistogramSnapshot, HttpMetrics, LatencyHistogram};
