//! What a reload changes at once: who may call, and how addresses and headers are read.
//!
//! The two come from one catalog and are swapped as one, so that no request meets the keys of one
//! catalog and the proxies of another. Must not be asked for what the listener was started with.

use anyhow::Result;
use catraca::Catalog;

use super::{Guard, Settings};

/// What the front end takes from the catalog in force.
pub struct Live {
    /// Lets requests in.
    pub guard: Guard,
    /// How addresses and headers are read.
    pub settings: Settings,
}

impl Live {
    /// What a catalog says.
    pub fn read(catalog: &Catalog) -> Result<Self> {
        let settings = Settings::read(catalog)?;
        let guard = Guard::read(catalog, settings.hosts.clone())?;
        Ok(Self { guard, settings })
    }
}
