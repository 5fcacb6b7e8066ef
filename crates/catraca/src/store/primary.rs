//! The primaries of a shared store: the servers that have keys of their own and fail independently.
//!
//! A single server, and a group of servers of which one takes the writes, are one primary. A
//! cluster has several.

use std::pin::Pin;

use super::{StoreError, StoreStatus};

/// Identifies a primary in this process. A replica that takes over the keys of a failed primary
/// has the same id, so that its other incarnation shows that it may lack the last writes. A server
/// that joins the cluster has a new one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PrimaryId(
    /// A number that is never used again.
    pub u64,
);

/// The answer of one primary to a heartbeat.
#[derive(Debug)]
pub struct PrimaryReport {
    /// The primary.
    pub primary: PrimaryId,
    /// Its status, or why there is none.
    pub status: Result<StoreStatus, StoreError>,
}

/// The answers of all primaries.
pub type PrimaryReports<'a> = Pin<Box<dyn Future<Output = Vec<PrimaryReport>> + Send + 'a>>;
