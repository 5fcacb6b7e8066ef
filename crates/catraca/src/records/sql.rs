//! Every statement of the records, once, as PostgreSQL writes it.
//!
//! Times are microseconds. Most statements that write need no answer, so that many of them are one
//! round trip. A statement must contain no rule about limits or blocks: what a record says is
//! stored, unless a newer record was stored before it.

pub(super) mod attempts;
pub(super) mod block_queries;
pub(super) mod lock_tables;
pub(super) mod privacy_rows;
pub(super) mod queries;
pub(super) mod restore;
pub(super) mod retention;
pub(super) mod single_values;
pub(super) mod value;
pub(super) mod write;
