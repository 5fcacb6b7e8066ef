//! TLS with `tls_cert` and `tls_key` of `[server]` or `[proxy]`, both PEM files.
//!
//! A reload may replace the certificate; open connections keep the one of their handshake. A key
//! that does not belong to its certificate is refused, and errors name the key's file, never its
//! contents.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

use crate::config::{ClientAuthFiles, TlsFiles};
use crate::regular_file;

/// The current certificate.
pub struct Tls(ArcSwap<ServerConfig>);

impl Tls {
    /// Loads the certificate of these files.
    pub fn read(files: &TlsFiles) -> Result<Self> {
        Ok(Self(ArcSwap::new(server_config(files)?)))
    }

    /// Replaces the certificate for new connections.
    pub fn swap(&self, config: Arc<ServerConfig>) {
        self.0.store(config);
    }

    fn config(&self) -> Arc<ServerConfig> {
        self.0.load_full()
    }
}

/// The current certificate, with the protocols of one listener.
pub struct ListenerTls {
    tls: Arc<Tls>,
    alpn: &'static [&'static [u8]],
    /// The certificate of the last acceptor, and that acceptor: made again only after a reload.
    last: Mutex<Option<(Arc<ServerConfig>, TlsAcceptor)>>,
}

impl ListenerTls {
    /// Offers these protocols by ALPN.
    pub fn new(tls: Arc<Tls>, alpn: &'static [&'static [u8]]) -> Self {
        Self { tls, alpn, last: Mutex::default() }
    }

    /// An acceptor with the current certificate.
    pub fn acceptor(&self) -> TlsAcceptor {
        let current = self.tls.config();
        let mut last = self.last.lock();
        if let Some((config, acceptor)) = &*last
            && Arc::ptr_eq(config, &current)
        {
            return acceptor.clone();
        }
        let mut config = ServerConfig::clone(&current);
        config.alpn_protocols = self.alpn.iter().map(|protocol| protocol.to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        *last = Some((current, acceptor.clone()));
        acceptor
    }
}

/// Reads both files and checks that they belong together.
pub fn server_config(files: &TlsFiles) -> Result<Arc<ServerConfig>> {
    let TlsFiles { section, cert, key, client_auth } = files;
    let chain = chain(cert).with_context(|| format!("[{section}] tls_cert = {cert:?}"))?;
    // A pipe would block, and a reload could not read it again.
    let regular = regular_file::ensure(key).map_err(pem::Error::Io);
    let private_key =
        regular.and_then(|()| PrivateKeyDer::from_pem_file(key)).map_err(|error| {
            let fix = "write a file in PEM that has a `BEGIN PRIVATE KEY`";
            let error = describe_pem_error(&error);
            anyhow::anyhow!("[{section}] tls_key = {key:?}: {error}: {fix}")
        })?;
    let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?;
    let builder = match client_auth {
        None => builder.with_no_client_auth(),
        Some(files) => {
            let verifier = client_verifier(files);
            let context = || format!("[{section}] client_ca = {:?}", files.ca);
            builder.with_client_cert_verifier(verifier.with_context(context)?)
        }
    };
    let config = builder.with_single_cert(chain, private_key).with_context(|| {
        format!("[{section}] tls_key = {key:?} cannot be used with tls_cert = {cert:?}")
    })?;
    Ok(Arc::new(config))
}

/// Verifies the certificates of clients.
fn client_verifier(files: &ClientAuthFiles) -> Result<Arc<dyn ClientCertVerifier>> {
    let mut roots = RootCertStore::empty();
    for certificate in chain(&files.ca)? {
        roots.add(certificate).context("a certificate of it cannot be used")?;
    }
    let provider = Arc::new(default_provider());
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let builder = match files.is_required {
        true => builder,
        false => builder.allow_unauthenticated(),
    };
    Ok(builder.build()?)
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
