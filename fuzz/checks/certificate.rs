//! A certificate is read the same each time, or not at all.

use catraca::http_request::ClientCertificate;

/// The input is a certificate in DER. Returns whether it can be read.
pub fn check(data: &[u8], parse: impl Fn(&[u8]) -> Option<ClientCertificate>) -> bool {
    let Some(certificate) = parse(data) else { return false };
    assert_eq!(certificate.fingerprint.len(), 64, "{certificate:?}");
    assert!(certificate.alternative_names.len() <= data.len(), "{certificate:?}");
    let again = parse(data).expect("it was read before");
    assert_eq!(again.subject, certificate.subject);
    assert_eq!(again.fingerprint, certificate.fingerprint);
    assert_eq!(again.alternative_names, certificate.alternative_names);
    true
}
