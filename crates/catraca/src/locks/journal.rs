//! The journal: what locks need of a disk.
//!
//! Must not be waited for while a room is locked.

use std::pin::Pin;

use catraca_core::lock::kept::LockDeed;

/// Will say whether it is on disk, or else why not.
pub type Written = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// Where what must outlive the process is written, in order.
pub trait Journal: Send + Sync {
    /// Writes some deeds, together or not at all.
    fn write(&self, deeds: Vec<LockDeed>) -> Written;
}
