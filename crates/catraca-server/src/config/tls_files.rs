//! The files of `[server] tls_cert` and `tls_key`; the listener reads them.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

/// The files of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate chain.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl TlsFiles {
    /// The files of `[server]`, relative to the catalog's folder: both, or none.
    pub fn from_settings(
        cert: Option<&str>,
        key: Option<&str>,
        folder: &Path,
    ) -> Result<Option<Self>> {
        match (cert, key) {
            (None, None) => Ok(None),
            (Some(cert), Some(key)) => {
                Ok(Some(Self { cert: folder.join(cert), key: folder.join(key) }))
            }
            (Some(_), None) => bail!("[server] tls_cert needs tls_key beside it: the private key"),
            (None, Some(_)) => bail!("[server] tls_key needs tls_cert beside it: the certificate"),
        }
    }
}
