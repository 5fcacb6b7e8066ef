//! TLS with `[server] tls_cert` and `tls_key`, both PEM files.
//!
//! A reload may replace the certificate; open connections keep the one of their handshake. A key
//! that does not belong to its certificate is refused, and errors name the key's file, never its
//! contents.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::regular_file;

/// The protocol offered by ALPN.
const HTTP_1_1: &[u8] = b"http/1.1";

/// The files of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate chain.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// The current certificate.
pub struct Tls(ArcSwap<ServerConfig>);

impl Tls {
    /// Loads the certificate of these files.
    pub fn read(files: &TlsFiles) -> Result<Self> {
        Ok(Self(ArcSwap::new(files.config()?)))
    }

    /// Replaces the certificate for new connections.
    pub fn swap(&self, config: Arc<ServerConfig>) {
        self.0.store(config);
    }

    /// An acceptor with the current certificate.
    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.0.load_full())
    }
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

    /// Reads both files and checks that they belong together.
    pub fn config(&self) -> Result<Arc<ServerConfig>> {
        let Self { cert, key } = self;
        let chain = chain(cert).with_context(|| format!("[server] tls_cert = {cert:?}"))?;
        // A pipe would block, and a reload could not read it again.
        let regular = regular_file::ensure(key).map_err(pem::Error::Io);
        let private_key =
            regular.and_then(|()| PrivateKeyDer::from_pem_file(key)).map_err(|error| {
                let fix = "write a file in PEM that has a `BEGIN PRIVATE KEY`";
                anyhow::anyhow!("[server] tls_key = {key:?}: {}: {fix}", describe_pem_error(&error))
            })?;
        let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth();
        let mut config = builder.with_single_cert(chain, private_key).with_context(|| {
            format!("[server] tls_key = {key:?} cannot be used with tls_cert = {cert:?}")
        })?;
        config.alpn_protocols = vec![HTTP_1_1.to_vec()];
        Ok(Arc::new(config))
    }
}

/// The certificates of a PEM file, the server's own first.
fn chain(file: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let fix = "write a file in PEM that has a `BEGIN CERTIFICATE`";
    let regular = regular_file::ensure(file).map_err(pem::Error::Io);
    let parsed = regular.and_then(|()| CertificateDer::pem_file_iter(file)?.collect());
    let chain: Vec<_> =
        parsed.map_err(|error| anyhow::anyhow!("{}: {fix}", describe_pem_error(&error)))?;
    ensure!(!chain.is_empty(), "it contains no certificate: {fix}");
    Ok(chain)
}

/// An error of a PEM file as a clause about the file.
fn describe_pem_error(error: &pem::Error) -> String {
    match error {
        pem::Error::Io(error) => format!("it cannot be read ({error})"),
        pem::Error::NoItemsFound => "it contains none".to_owned(),
        other => format!("it is not valid PEM ({other})"),
    }
}
