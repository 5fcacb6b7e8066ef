//! TLS to the server: the trusted certificates and the handshake. Verification cannot be turned
//! off.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::builder::ClientBuildError;

/// Makes TLS connections to one host.
pub struct ServerTls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl ServerTls {
    /// Trusts the certificates of the PEM file, or the system's.
    pub fn new(host: &str, ca: Option<&Path>) -> Result<Self, ClientBuildError> {
        let failed = |why: String| ClientBuildError::Certificates { why };
        let roots = match ca {
            Some(file) => roots_from_file(file).map_err(failed)?,
            None => roots_from_system().map_err(failed)?,
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| failed(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|_| failed(format!("{host:?} is no name for a certificate")))?;
        Ok(Self { config: Arc::new(config), name })
    }

    /// The same, with the protocols that the client can speak, the preferred one first. The server
    /// chooses one of them in the handshake (ALPN).
    #[must_use]
    pub fn offering(&self, protocols: &[&[u8]]) -> Self {
        let mut config = ClientConfig::clone(&self.config);
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        Self { config: Arc::new(config), name: self.name.clone() }
    }

    /// Runs the TLS handshake on a connection.
    pub async fn handshake(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let connector = TlsConnector::from(Arc::clone(&self.config));
        connector.connect(self.name.clone(), stream).await
    }
}

fn roots_from_file(file: &Path) -> Result<RootCertStore, String> {
    let path = file.display();
    let certificates = CertificateDer::pem_file_iter(file);
    let certificates = certificates.and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = certificates.map_err(|error| format!("cannot read {path}: {error}"))?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        let added = roots.add(certificate);
        added.map_err(|error| format!("{path} contains an invalid certificate: {error}"))?;
    }
    match roots.is_empty() {
        true => Err(format!("{path} contains no certificate; it must be PEM")),
        false => Ok(roots),
    }
}

fn roots_from_system() -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    // Certificates that cannot be parsed are skipped: if one of them is needed, the handshake fails
    // with its own error.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    match roots.is_empty() {
        true => Err("this system has no trusted certificates; give a PEM file".to_owned()),
        false => Ok(roots),
    }
}
