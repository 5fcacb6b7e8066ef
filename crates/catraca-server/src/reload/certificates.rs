//! The certificates of all listeners, read again from their files.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;

use super::ReloadTargets;
use crate::config::ProcessConfig;
use crate::listener::tls::{Tls, server_config};

/// Certificates that were read, and where they belong.
pub struct NewCertificates(Vec<(Arc<Tls>, Arc<ServerConfig>)>);

impl NewCertificates {
    /// Reads the certificates as they are on disk now. Whether TLS is on was decided at the start.
    pub fn read(
        targets: &ReloadTargets,
        process: &ProcessConfig,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let server = process.server.certificate(folder);
        let proxy = process.proxy.certificate(folder);
        let mut read = Vec::new();
        for (tls, files) in [(&targets.tls, server), (&targets.proxy_tls, proxy)] {
            if let (Some(tls), Some(files)) = (tls, files) {
                read.push((Arc::clone(tls), server_config(&files)?));
            }
        }
        Ok(Self(read))
    }

    /// Uses them for new connections.
    pub fn apply(self) {
        for (tls, certificate) in self.0 {
            tls.swap(certificate);
        }
    }
}
