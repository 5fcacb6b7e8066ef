//! Parts of responses: problem bodies, denials, rate-limit headers, and the JSON of a decision.

pub mod accept_header;
pub mod decision_writer;
pub mod denial;
pub mod dict_xml;
pub mod problem;
pub mod ratelimit_headers;
