//! A fresh directory that is gone when its owner is.
//!
//! Must not be created inside the checkout.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};

static SERIAL: AtomicU32 = AtomicU32::new(0);

/// A temporary directory, removed on drop.
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Creates the directory; `purpose` is part of its name.
    pub fn new(purpose: &str) -> Result<Self> {
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let name = format!("catraca-{purpose}-{}-{serial}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Self { path })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    /// A directory that cannot be removed is untidy, not wrong.
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}
