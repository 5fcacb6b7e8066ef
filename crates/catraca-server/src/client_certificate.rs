//! Reads the certificate of a client, which a listener with client authentication has verified.

use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

use catraca::http_request::ClientCertificate;
use ring::digest;
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

/// Reads a certificate in DER; `None` if it is malformed.
pub fn parse_certificate(der: &[u8]) -> Option<ClientCertificate> {
    let certificate = Certificate::from_der(der).ok()?.tbs_certificate;
    let names: Option<(bool, SubjectAltName)> = certificate.get().ok()?;
    let names = names.map(|(_, SubjectAltName(names))| names).unwrap_or_default();
    Some(ClientCertificate {
        subject: certificate.subject.to_string(),
        fingerprint: fingerprint(der),
        alternative_names: names.iter().filter_map(alternative_name).collect(),
    })
}

fn fingerprint(der: &[u8]) -> String {
    let digest = digest::digest(&digest::SHA256, der);
    digest.as_ref().iter().fold(String::new(), |mut text, byte| {
        // Writing to a text does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The text of a name; other kinds of names have none.
fn alternative_name(name: &GeneralName) -> Option<String> {
    match name {
        GeneralName::Rfc822Name(name) => Some(name.to_string()),
        GeneralName::DnsName(name) => Some(name.to_string()),
        GeneralName::UniformResourceIdentifier(uri) => Some(uri.to_string()),
        GeneralName::IpAddress(bytes) => {
            let v4 = <[u8; 4]>::try_from(bytes.as_bytes()).map(|b| Ipv4Addr::from(b).to_string());
            let v6 =
                || <[u8; 16]>::try_from(bytes.as_bytes()).map(|b| Ipv6Addr::from(b).to_string());
            v4.or_else(|_| v6()).ok()
        }
        _ => None,
    }
}

#[cfg(test)]
#[path = "../../../fuzz/checks/certificate.rs"]
mod certificate_check;

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: &[u8] = include_bytes!("client_certificate/device.der");

    #[test]
    fn the_fields_of_a_certificate_are_read() {
        let certificate = parse_certificate(DEVICE).unwrap();
        assert_eq!(certificate.subject, "C=BR,O=Example,CN=device-7");
        let fingerprint = "238be958382d70ad4f9cbc4c205c1e38ea3350a7cac40deaa025622e70074165";
        assert_eq!(certificate.fingerprint, fingerprint);
        let names = [
            "spiffe://example.org/device/7",
            "device-7.example.org",
            "192.0.2.7",
            "ops@example.org",
        ];
        assert_eq!(certificate.alternative_names, names);
    }

    #[test]
    fn changed_bytes_are_read_without_a_panic() {
        for length in 0..DEVICE.len() {
            assert_eq!(parse_certificate(&DEVICE[..length]), None, "{length} bytes");
        }
        for at in 0..DEVICE.len() {
            for bit in 0..8 {
                let mut changed = DEVICE.to_vec();
                changed[at] ^= 1 << bit;
                if let Some(certificate) = parse_certificate(&changed) {
                    assert_eq!(certificate.fingerprint.len(), 64);
                }
            }
        }
    }

    /// Runs the check of the fuzz target with the inputs in `fuzz/corpus`.
    #[test]
    fn inputs_of_certificate() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/certificate");
        let mut count = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let is_read = certificate_check::check(&std::fs::read(&path).unwrap(), |der| {
                parse_certificate(der)
            });
            assert!(is_read || !path.ends_with("device"), "{}", path.display());
            count += 1;
        }
        assert!(count > 5, "{count}");
    }
}
