//! Reading of requests: the body within its limits, and JSON into typed values.

pub mod body;
pub mod wire;
