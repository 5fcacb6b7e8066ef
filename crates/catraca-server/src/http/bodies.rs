//! Bodies and headers of HTTP requests and responses, with their conversion to and from the types
//! of the engine, the records and the locks.

pub mod accept_header;
pub mod decision_writer;
pub mod lock_requests;
pub mod lock_responses;
pub mod record_bodies;
pub mod request_body;
pub mod schema_values;
pub mod wire;

pub use crate::http_wire::{cors, denial, dict_xml, error_codes, problem};
