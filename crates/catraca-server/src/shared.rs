//! The stores that nodes may share, behind one type.
//!
//! Must not hold a rule: every call is handed on.

use catraca::core::batch::{Batch, Reply};
use catraca::store::{Pulse, SharedStore, StoreError, When};

use crate::cmd::serve::Sharing;

/// A store on some server.
#[derive(Debug)]
pub enum Anywhere {}

/// An engine that decides with other nodes.
pub type SharedEngine = catraca::SharedEngine<Anywhere>;

impl Anywhere {
    /// Connects, or says why it cannot be.
    pub async fn connect(sharing: &Sharing) -> anyhow::Result<Self> {
        let _ = sharing;
        anyhow::bail!("this program keeps counters in memory: write [store] url = \"memory:\"")
    }
}

impl SharedStore for Anywhere {
    async fn apply(&self, batch: &Batch, when: When) -> Result<Reply, StoreError> {
        let _ = (batch, when);
        match *self {}
    }

    async fn pulse(&self) -> Result<Pulse, StoreError> {
        match *self {}
    }

    async fn stir(&self) -> Result<(), StoreError> {
        match *self {}
    }

    async fn claim(&self, _records: &str) -> Result<String, StoreError> {
        match *self {}
    }
}
