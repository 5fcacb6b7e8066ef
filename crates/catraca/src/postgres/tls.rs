//! TLS to PostgreSQL: the URL parameters `sslmode` and `sslrootcert`, with libpq's meaning.
//!
//! Only `prefer` falls back to an unencrypted connection, and only `prefer` and `require` accept
//! any server.

mod verifier;

use std::borrow::Cow;
use std::error::Error as _;
use std::path::PathBuf;
use std::{fmt, io};

use percent_encoding::percent_decode_str;
use rustls::CertificateError;
use tokio_postgres::Error;
use tokio_postgres::config::{Config, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

/// The URL parameters that are parsed here, because the driver does not know all their values.
const MODE: &str = "sslmode";
const ROOTS: &str = "sslrootcert";
/// The value of `sslrootcert` that means the certificate authorities of the system.
const SYSTEM: &str = "system";

/// The TLS settings of a URL, and the connector that implements them.
#[derive(Clone)]
pub(crate) struct Tls {
    pub(super) connector: MakeRustlsConnect,
    settings: TlsSettings,
}

/// The TLS parameters of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TlsSettings {
    mode: TlsMode,
    roots: Option<TrustedRoots>,
}

/// The values of `sslmode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TlsMode {
    /// Not encrypted.
    Disable,
    /// Encrypted if the server supports it; any server is accepted.
    Prefer,
    /// Encrypted; any server is accepted, unless `sslrootcert` is given.
    Require,
    /// The certificate must be signed by a trusted authority, for any host name.
    VerifyCa,
    /// As `VerifyCa`, and the certificate must be for the host of the URL.
    VerifyFull,
}

/// The certificate authorities that are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
enum TrustedRoots {
    /// Those of the system.
    System,
    /// Those in a file.
    File(PathBuf),
}

const MODES: [(&str, TlsMode); 5] = [
    ("disable", TlsMode::Disable),
    ("prefer", TlsMode::Prefer),
    ("require", TlsMode::Require),
    ("verify-ca", TlsMode::VerifyCa),
    ("verify-full", TlsMode::VerifyFull),
];

impl Tls {
    /// The TLS settings of a URL, and the URL without them, which the driver can parse.
    pub(super) fn read(url: &str) -> Result<(Self, String), String> {
        let (rest, parameters) = split(url);
        let settings = TlsSettings::parse(&parameters)?;
        let connector = MakeRustlsConnect::new(verifier::client_config(&settings)?);
        Ok((Self { connector, settings }, rest))
    }

    /// Sets the driver's mode.
    pub(super) fn apply(&self, config: &mut Config) {
        config.ssl_mode(match self.settings.mode {
            TlsMode::Disable => SslMode::Disable,
            TlsMode::Prefer => SslMode::Prefer,
            TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => SslMode::Require,
        });
    }

    /// Why TLS failed, and the remedy; nothing if the error has another cause.
    pub(super) fn explain(&self, error: &Error) -> Option<String> {
        let cause = error.source()?;
        let mode = self.settings.mode;
        if cause.to_string() == "server does not support TLS" {
            return Some(format!(
                "the server speaks no TLS, and {MODE}={mode} asks for it: set `ssl = on` there, or \
                 write {MODE}=disable if you trust the network"
            ));
        }
        let cause = cause.downcast_ref::<io::Error>()?.get_ref()?;
        match cause.downcast_ref::<rustls::Error>()? {
            rustls::Error::InvalidCertificate(error) => Some(self.explain_certificate(error)),
            other => Some(format!("TLS with the server failed: {other}")),
        }
    }

    fn explain_certificate(&self, error: &CertificateError) -> String {
        let remedy = match error {
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                format!(
                    "use the host name of the certificate, or write {MODE}=verify-ca to accept \
                     any host name"
                )
            }
            CertificateError::UnknownIssuer => {
                format!("write the file of the authority that signed it in {ROOTS}")
            }
            _ => "replace the certificate of the server".to_owned(),
        };
        let roots = self.settings.roots.as_ref().unwrap_or(&TrustedRoots::System);
        format!("the server's certificate is refused ({error}) by {ROOTS}={roots}: {remedy}")
    }
}

impl TlsSettings {
    fn parse(parameters: &[(&str, String)]) -> Result<Self, String> {
        // Of a repeated parameter the last one counts.
        let last = |wanted: &str| parameters.iter().rev().find(|(name, _)| *name == wanted);
        let mode = match last(MODE) {
            None => TlsMode::Prefer,
            Some((_, word)) => {
                let found = MODES.iter().find(|(name, _)| name == word);
                let names = MODES.map(|(name, _)| name).join(", ");
                found.map(|(_, mode)| *mode).ok_or(format!("{MODE} is one of {names}"))?
            }
        };
        let roots = last(ROOTS).map(|(_, value)| match value.as_str() {
            SYSTEM => TrustedRoots::System,
            file => TrustedRoots::File(PathBuf::from(file)),
        });
        match &roots {
            Some(_) if matches!(mode, TlsMode::Disable | TlsMode::Prefer) => Err(format!(
                "{ROOTS} has no effect with {MODE}={mode}, which does not check certificates: \
                 write {MODE}=verify-full"
            )),
            Some(TrustedRoots::File(file)) if !file.is_absolute() => Err(format!(
                "{ROOTS}={}: write the whole path, or `{SYSTEM}` for the authorities of the system",
                file.display()
            )),
            _ => Ok(Self { mode, roots }),
        }
    }
}

impl fmt::Display for TlsMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = MODES.iter().find(|(_, mode)| mode == self);
        f.write_str(found.map_or("prefer", |(word, _)| word))
    }
}

impl fmt::Display for TrustedRoots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => f.write_str(SYSTEM),
            Self::File(file) => file.display().fmt(f),
        }
    }
}

/// Splits a URL into the URL without the TLS parameters, and these parameters.
fn split(url: &str) -> (String, Vec<(&'static str, String)>) {
    // As the driver does it: a password may contain a question mark, and the query an @.
    let host = url.find('@').map_or(0, |at| at + 1);
    let Some(query) = url[host..].find('?').map(|at| host + at) else {
        return (url.to_owned(), Vec::new());
    };
    let mut others = Vec::new();
    let mut parameters = Vec::new();
    for pair in url[query + 1..].split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        match [MODE, ROOTS].into_iter().find(|own| *own == name) {
            Some(own) => {
                parameters.push((own, percent_decode_str(value).decode_utf8_lossy().into_owned()));
            }
            None => others.push(pair),
        }
    }
    let rest = if others.is_empty() {
        Cow::Borrowed(&url[..query])
    } else {
        Cow::Owned(format!("{}?{}", &url[..query], others.join("&")))
    };
    (rest.into_owned(), parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(url: &str) -> Result<TlsSettings, String> {
        TlsSettings::parse(&split(url).1)
    }

    #[test]
    fn tls_parameters_are_removed_from_the_url() {
        for (url, rest, given) in [
            ("postgres://a:p?w@h/d", "postgres://a:p?w@h/d", 0),
            ("postgres://a@h/d?sslmode=require", "postgres://a@h/d", 1),
            ("postgres://a@h/d?sslmode=require&x=@", "postgres://a@h/d?x=@", 1),
            (
                "postgres://a@h/d?port=1&sslrootcert=/x%20y&sslmode=verify-ca&host=z",
                "postgres://a@h/d?port=1&host=z",
                2,
            ),
        ] {
            let (found, taken) = split(url);
            assert_eq!((found.as_str(), taken.len()), (rest, given));
        }
        assert_eq!(split("postgres://a@h/d?sslrootcert=/x%20y").1[0].1, "/x y");
    }

    #[test]
    fn modes_are_libpqs_and_mistakes_are_named() {
        for (query, mode) in [("", TlsMode::Prefer), ("sslmode=disable", TlsMode::Disable)] {
            assert_eq!(settings(&format!("postgres://a@h/d?{query}")).unwrap().mode, mode);
        }
        let full = settings("postgres://a@h/d?sslmode=verify-full&sslrootcert=/ca.pem").unwrap();
        assert_eq!(full.mode, TlsMode::VerifyFull);
        assert_eq!(full.roots.unwrap().to_string(), "/ca.pem");
        for (query, why) in [
            ("sslmode=yes", "one of disable, prefer, require, verify-ca, verify-full"),
            ("sslrootcert=/ca.pem", "write sslmode=verify-full"),
            ("sslmode=disable&sslrootcert=/ca.pem", "does not check certificates"),
            ("sslmode=require&sslrootcert=ca.pem", "write the whole path"),
        ] {
            let error = settings(&format!("postgres://a@h/d?{query}")).unwrap_err();
            assert!(error.contains(why), "{query}: {error}");
        }
    }
}
