//! TLS for the client: the trusted certificates and the handshake.
//!
//! Certificate verification cannot be turned off; a private certificate is trusted with `--ca`.

use std::io;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Makes TLS connections to one host.
pub struct TlsClient {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl TlsClient {
    /// Trusts the certificates of the file, or the system's.
    pub fn new(host: &str, ca: Option<&Path>) -> Result<Self> {
        let roots = match ca {
            Some(file) => roots_from_file(file)?,
            None => roots_from_system()?,
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from(host.to_owned());
        let name =
            name.with_context(|| format!("{host:?} is not a valid name for a certificate"))?;
        Ok(Self { connector: TlsConnector::from(Arc::new(config)), name })
    }

    /// Runs the TLS handshake on a connection.
    pub async fn handshake(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.connector.connect(self.name.clone(), stream).await
    }
}

fn roots_from_file(file: &Path) -> Result<RootCertStore> {
    let path = file.display();
    let certificates = CertificateDer::pem_file_iter(file);
    let certificates = certificates.and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates =
        certificates.with_context(|| format!("cannot read the certificates {path} (--ca)"))?;
    ensure!(!certificates.is_empty(), "{path} (--ca) contains no certificate; it must be PEM");
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots
            .add(certificate)
            .with_context(|| format!("{path} (--ca) contains an invalid certificate"))?;
    }
    Ok(roots)
}

fn roots_from_system() -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    // Certificates that cannot be parsed are skipped: if one of them is needed, the handshake
    // fails with its own error.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    ensure!(
        !roots.is_empty(),
        "this system has no trusted certificates; give a PEM file with --ca FILE"
    );
    Ok(roots)
}
