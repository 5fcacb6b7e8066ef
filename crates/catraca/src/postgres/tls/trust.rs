//! Whom to trust: the authorities of a file, the system's, or whoever answers.
//!
//! Must not accept a handshake that was not made with the key of the certificate that was shown,
//! whoever it belongs to.

use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use super::{Asked, Mode, ROOTS, Roots, SYSTEM};

/// How to speak TLS with a server.
pub(super) fn config(asked: &Asked) -> Result<ClientConfig, String> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions().map_err(|e| e.to_string())?;
    let trusted = match (asked.mode, &asked.roots) {
        (Mode::Disable | Mode::Prefer, _) | (Mode::Require, None) => None,
        (_, None | Some(Roots::System)) => Some(of_system()?),
        (_, Some(Roots::File(file))) => Some(of_file(file)?),
    };
    let Some(trusted) = trusted else {
        let trust = Arc::new(Lenient { provider, chain: None });
        return Ok(builder
            .dangerous()
            .with_custom_certificate_verifier(trust)
            .with_no_client_auth());
    };
    if asked.mode == Mode::VerifyFull {
        return Ok(builder.with_root_certificates(trusted).with_no_client_auth());
    }
    let known = Arc::clone(&provider);
    let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(trusted), known).build();
    let chain = Some(chain.map_err(|error| error.to_string())?);
    let trust = Arc::new(Lenient { provider, chain });
    Ok(builder.dangerous().with_custom_certificate_verifier(trust).with_no_client_auth())
}

fn of_file(file: &Path) -> Result<RootCertStore, String> {
    let wrong = |why: &str| format!("{ROOTS}={}: {why}", file.display());
    match file.metadata() {
        Ok(found) if !found.is_file() => return Err(wrong("it is not a regular file")),
        Err(error) => return Err(wrong(&format!("it cannot be read ({error})"))),
        Ok(_) => {}
    }
    let found =
        CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = found.map_err(|error| wrong(&format!("it is damaged ({error})")))?;
    if found.is_empty() {
        return Err(wrong("it holds no `BEGIN CERTIFICATE`; write a file in PEM"));
    }
    let mut roots = RootCertStore::empty();
    for one in found {
        roots
            .add(one)
            .map_err(|error| wrong(&format!("one of its certificates is none ({error})")))?;
    }
    Ok(roots)
}

fn of_system() -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    // A system may keep some that nobody can read; one that is needed and left out is missed later.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(format!("{ROOTS}={SYSTEM}: this system trusts nobody; name a file"));
    }
    Ok(roots)
}

/// Asks less of a server than its name: a chain to somebody who is trusted, or nothing.
#[derive(Debug)]
struct Lenient {
    provider: Arc<CryptoProvider>,
    chain: Option<Arc<WebPkiServerVerifier>>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        // The name is looked at last, so whoever has only another one has passed all the rest.
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
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
