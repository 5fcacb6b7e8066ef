//! https: whom to trust, and the handshake.
//!
//! Must not offer a way around the check: whoever has a certificate of their own names it.

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

/// Speaks https with one host.
pub struct Secure {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl Secure {
    /// Trusts the certificates of a file, or else the system's.
    pub fn new(host: &str, ca: Option<&Path>) -> Result<Self> {
        let roots = match ca {
            Some(file) => of_file(file)?,
            None => of_system()?,
        };
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from(host.to_owned());
        let name =
            name.with_context(|| format!("{host:?} is no name that a certificate can have"))?;
        Ok(Self { connector: TlsConnector::from(Arc::new(config)), name })
    }

    /// The handshake over a connection.
    pub async fn over(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.connector.connect(self.name.clone(), stream).await
    }
}

fn of_file(file: &Path) -> Result<RootCertStore> {
    let shown = file.display();
    let found = CertificateDer::pem_file_iter(file);
    let found = found.and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = found.with_context(|| format!("cannot read the certificates {shown} (--ca)"))?;
    ensure!(!found.is_empty(), "{shown} (--ca) holds no certificate; it must be PEM");
    let mut roots = RootCertStore::empty();
    for one in found {
        roots
            .add(one)
            .with_context(|| format!("{shown} (--ca) holds a certificate that is none"))?;
    }
    Ok(roots)
}

fn of_system() -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    // A system may keep some that nobody can read; one that is needed and left out is missed later.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    ensure!(
        !roots.is_empty(),
        "this system has no certificates to trust; name some with --ca FILE"
    );
    Ok(roots)
}
