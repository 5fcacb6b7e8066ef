//! The part of the configuration that a reload replaces: API keys and settings.
//!
//! Both come from one catalog and are swapped as one value, so that no request sees the keys of one
//! catalog and the proxies of another. Settings that are read once at the start are in
//! `reload/restart.rs`.

use anyhow::Result;
use catraca::Catalog;

use super::Settings;
use crate::auth::Guard;

/// The keys and settings of the current catalog.
pub struct ReloadableConfig {
    /// Authenticates requests.
    pub guard: Guard,
    /// Connections, addresses and headers.
    pub settings: Settings,
}

impl ReloadableConfig {
    /// Reads them from a catalog.
    pub fn read(catalog: &Catalog) -> Result<Self> {
        let settings = Settings::read(catalog)?;
        let guard = Guard::read(catalog)?;
        Ok(Self { guard, settings })
    }
}
