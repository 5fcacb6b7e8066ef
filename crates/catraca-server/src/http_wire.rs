//! HTTP/1.1 as the front ends `http` and `proxy` share it: a connection that hyper serves, errors
//! as problem+json, and the bodies of denials. It has no endpoint and no route.

pub mod cors;
pub mod denial;
pub mod dict_states;
pub mod dict_xml;
pub mod error_codes;
pub mod framing;
mod hyper_errors;
pub mod overload;
pub mod problem;
pub mod quiet_waker;
pub mod server_connection;
mod watched_stream;
