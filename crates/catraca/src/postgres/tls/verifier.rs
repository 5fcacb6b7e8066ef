//! The rustls configuration for a TLS mode: authorities of a file, of the system, or any server.
//!
//! In every mode the server must prove that it has the key of its certificate.

use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use super::{ROOTS, SYSTEM, TlsMode, TlsSettings, TrustedRoots};

/// The TLS client configuration for these settings.
pub(super) fn client_config(settings: &TlsSettings) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions().map_err(|e| e.to_string())?;
    // libpq: `require` checks certificates only if `sslrootcert` is given.
    let trusted = match (settings.mode, &settings.roots) {
        (TlsMode::Disable | TlsMode::Prefer, _) | (TlsMode::Require, None) => None,
        (_, None | Some(TrustedRoots::System)) => Some(system_roots()?),
        (_, Some(TrustedRoots::File(file))) => Some(roots_from_file(file)?),
    };
    let Some(trusted) = trusted else {
        let trust = Arc::new(RelaxedVerifier { provider, chain: None });
        return Ok(builder
            .dangerous()
            .with_custom_certificate_verifier(trust)
            .with_no_client_auth());
    };
    if settings.mode == TlsMode::VerifyFull {
        return Ok(builder.with_root_certificates(trusted).with_no_client_auth());
    }
    let roots = Arc::new(trusted);
    let chain = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider)).build();
    let chain = Some(chain.map_err(|error| error.to_string())?);
    let trust = Arc::new(RelaxedVerifier { provider, chain });
    Ok(builder.dangerous().with_custom_certificate_verifier(trust).with_no_client_auth())
}

fn roots_from_file(file: &Path) -> Result<RootCertStore, String> {
    let invalid = |why: &str| format!("{ROOTS}={}: {why}", file.display());
    match file.metadata() {
        Ok(found) if !found.is_file() => return Err(invalid("it is not a regular file")),
        Err(error) => return Err(invalid(&format!("it cannot be read ({error})"))),
        Ok(_) => {}
    }
    let found =
        CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = found.map_err(|error| invalid(&format!("it is damaged ({error})")))?;
    if found.is_empty() {
        return Err(invalid("it contains no `BEGIN CERTIFICATE`; write a file in PEM"));
    }
    let mut roots = RootCertStore::empty();
    for one in found {
        roots
            .add(one)
            .map_err(|error| invalid(&format!("one of its certificates is invalid ({error})")))?;
    }
    Ok(roots)
}

fn system_roots() -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    // Certificates that cannot be parsed are left out. If one of them was needed, the handshake
    // fails with "unknown issuer".
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(format!(
            "{ROOTS}={SYSTEM}: this system has no certificate authorities; name a file"
        ));
    }
    Ok(roots)
}

/// Verifies less than the host name: only the chain to a trusted authority, or nothing.
#[derive(Debug)]
struct RelaxedVerifier {
    provider: Arc<CryptoProvider>,
    /// Checks the chain; without it any certificate is accepted.
    chain: Option<Arc<WebPkiServerVerifier>>,
}

impl ServerCertVerifier for RelaxedVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        // rustls checks the name last: a certificate that fails only there has a valid chain.
        match chain.verify_server_cert(end_entity, intermediates, name, ocsp, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
