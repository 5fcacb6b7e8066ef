//! TLS by two settings: `[server] tls_cert` and `tls_key`, both files in PEM.
//!
//! The certificate in force can be swapped while running; connections that stand keep theirs. Must
//! not serve a key that does not belong to its certificate, nor say anything of a key but its name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::regular;

/// What is spoken inside.
const HTTP: &[u8] = b"http/1.1";

/// The two files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The certificate, and those that vouch for it.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// The certificate in force.
pub struct Tls(ArcSwap<ServerConfig>);

impl Tls {
    /// The certificate in these files.
    pub fn read(files: &Files) -> Result<Self> {
        Ok(Self(ArcSwap::new(files.config()?)))
    }

    /// Puts another certificate in force.
    pub fn swap(&self, config: Arc<ServerConfig>) {
        self.0.store(config);
    }

    /// Takes connections with the certificate in force.
    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.0.load_full())
    }
}

impl Files {
    /// The files of `[server]`, relative to the catalog's folder; both or none.
    pub fn named(cert: Option<&str>, key: Option<&str>, folder: &Path) -> Result<Option<Self>> {
        match (cert, key) {
            (None, None) => Ok(None),
            (Some(cert), Some(key)) => {
                Ok(Some(Self { cert: folder.join(cert), key: folder.join(key) }))
            }
            (Some(_), None) => bail!("[server] tls_cert needs tls_key beside it: the private key"),
            (None, Some(_)) => bail!("[server] tls_key needs tls_cert beside it: the certificate"),
        }
    }

    /// What a listener needs of two files.
    pub fn config(&self) -> Result<Arc<ServerConfig>> {
        let Self { cert, key } = self;
        let chain = chain(cert).with_context(|| format!("[server] tls_cert = {cert:?}"))?;
        let secret = regular::ensure(key).map_err(pem::Error::Io);
        let secret = secret.and_then(|()| PrivateKeyDer::from_pem_file(key)).map_err(|error| {
            let fix = "write a file in PEM that has a `BEGIN PRIVATE KEY`";
            anyhow::anyhow!("[server] tls_key = {key:?}: {}: {fix}", of_pem(&error))
        })?;
        let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth();
        let mut config = builder.with_single_cert(chain, secret).with_context(|| {
            format!("[server] tls_key = {key:?} cannot be used with tls_cert = {cert:?}")
        })?;
        config.alpn_protocols = vec![HTTP.to_vec()];
        Ok(Arc::new(config))
    }
}

fn chain(file: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let fix = "write a file in PEM that has a `BEGIN CERTIFICATE`";
    let read = regular::ensure(file).map_err(pem::Error::Io);
    let read = read.and_then(|()| CertificateDer::pem_file_iter(file)?.collect());
    let chain: Vec<_> = read.map_err(|error| anyhow::anyhow!("{}: {fix}", of_pem(&error)))?;
    ensure!(!chain.is_empty(), "it holds no certificate: {fix}");
    Ok(chain)
}

/// What is wrong with a file, in our words where we have some.
fn of_pem(error: &pem::Error) -> String {
    match error {
        pem::Error::Io(error) => format!("it cannot be read ({error})"),
        pem::Error::NoItemsFound => "it holds none".to_owned(),
        other => format!("it is damaged ({other})"),
    }
}
