//! TLS to PostgreSQL: what `sslmode` and `sslrootcert` of a URL ask for, in libpq's words.
//!
//! Must not weaken what was asked: only `prefer` goes on in clear, and only `prefer` and `require`
//! trust whoever answers.

mod trust;

use std::borrow::Cow;
use std::error::Error as _;
use std::path::PathBuf;
use std::{fmt, io};

use percent_encoding::percent_decode_str;
use rustls::CertificateError;
use tokio_postgres::Error;
use tokio_postgres::config::{Config, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

/// The parameters that are read here and not by the driver.
const MODE: &str = "sslmode";
const ROOTS: &str = "sslrootcert";
/// In the place of a file: whom the system trusts.
const SYSTEM: &str = "system";

/// How connections are encrypted.
#[derive(Clone)]
pub(crate) struct Tls {
    pub(super) connector: MakeRustlsConnect,
    asked: Asked,
}

/// What a URL asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Asked {
    mode: Mode,
    roots: Option<Roots>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// In clear.
    Disable,
    /// Encrypted if the server can; whoever it is.
    Prefer,
    /// Encrypted; whoever it is, unless authorities are named.
    Require,
    /// With a certificate of an authority that is trusted, for whatever name.
    VerifyCa,
    /// The same, for the very host.
    VerifyFull,
}

/// Who may vouch for a server.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Roots {
    /// Whom the system trusts.
    System,
    /// The authorities in a file.
    File(PathBuf),
}

const MODES: [(&str, Mode); 5] = [
    ("disable", Mode::Disable),
    ("prefer", Mode::Prefer),
    ("require", Mode::Require),
    ("verify-ca", Mode::VerifyCa),
    ("verify-full", Mode::VerifyFull),
];

impl Tls {
    /// What a URL asks for, and the URL without it, which the driver can read.
    pub(super) fn read(url: &str) -> Result<(Self, String), String> {
        let (rest, given) = split(url);
        let asked = Asked::read(&given)?;
        let connector = MakeRustlsConnect::new(trust::config(&asked)?);
        Ok((Self { connector, asked }, rest))
    }

    /// Tells the driver.
    pub(super) fn apply(&self, config: &mut Config) {
        config.ssl_mode(match self.asked.mode {
            Mode::Disable => SslMode::Disable,
            Mode::Prefer => SslMode::Prefer,
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
        });
    }

    /// Why no encrypted connection was made, and what to do; nothing for any other trouble.
    pub(super) fn explain(&self, error: &Error) -> Option<String> {
        let cause = error.source()?;
        let mode = self.asked.mode;
        if cause.to_string() == "server does not support TLS" {
            return Some(format!(
                "the server speaks no TLS, and {MODE}={mode} asks for it: set `ssl = on` there, or \
                 write {MODE}=disable where the network is your own"
            ));
        }
        let cause = cause.downcast_ref::<io::Error>()?.get_ref()?;
        match cause.downcast_ref::<rustls::Error>()? {
            rustls::Error::InvalidCertificate(wrong) => Some(self.untrusted(wrong)),
            other => Some(format!("TLS with the server failed: {other}")),
        }
    }

    fn untrusted(&self, wrong: &CertificateError) -> String {
        let fix = match wrong {
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                format!(
                    "name the host as the certificate does, or write {MODE}=verify-ca if any of \
                     its names will do"
                )
            }
            CertificateError::UnknownIssuer => {
                format!("name the file of the authority that signed it in {ROOTS}")
            }
            _ => "give the server another one".to_owned(),
        };
        let roots = self.asked.roots.as_ref().unwrap_or(&Roots::System);
        format!("the server's certificate is refused ({wrong}) by {ROOTS}={roots}: {fix}")
    }
}

impl Asked {
    fn read(given: &[(&str, String)]) -> Result<Self, String> {
        let last = |wanted: &str| given.iter().rev().find(|(name, _)| *name == wanted);
        let mode = match last(MODE) {
            None => Mode::Prefer,
            Some((_, word)) => {
                let found = MODES.iter().find(|(known, _)| known == word);
                let words = MODES.map(|(known, _)| known).join(", ");
                found.map(|(_, mode)| *mode).ok_or(format!("{MODE} is one of {words}"))?
            }
        };
        let roots = last(ROOTS).map(|(_, value)| match value.as_str() {
            SYSTEM => Roots::System,
            file => Roots::File(PathBuf::from(file)),
        });
        match &roots {
            Some(_) if matches!(mode, Mode::Disable | Mode::Prefer) => Err(format!(
                "{ROOTS} says whom to trust, and {MODE}={mode} asks nobody who they are: write \
                 {MODE}=verify-full"
            )),
            Some(Roots::File(file)) if !file.is_absolute() => Err(format!(
                "{ROOTS}={}: write the whole path, or `{SYSTEM}` for whom the system trusts",
                file.display()
            )),
            _ => Ok(Self { mode, roots }),
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = MODES.iter().find(|(_, mode)| mode == self);
        f.write_str(found.map_or("prefer", |(word, _)| word))
    }
}

impl fmt::Display for Roots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => f.write_str(SYSTEM),
            Self::File(file) => file.display().fmt(f),
        }
    }
}

/// A URL without what is read here, and that.
fn split(url: &str) -> (String, Vec<(&'static str, String)>) {
    // As the driver reads it: a password may hold a question mark, and the query an @.
    let host = url.find('@').map_or(0, |at| at + 1);
    let Some(query) = url[host..].find('?').map(|at| host + at) else {
        return (url.to_owned(), Vec::new());
    };
    let (mut kept, mut given) = (Vec::new(), Vec::new());
    for pair in url[query + 1..].split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        match [MODE, ROOTS].into_iter().find(|own| *own == name) {
            Some(own) => {
                given.push((own, percent_decode_str(value).decode_utf8_lossy().into_owned()));
            }
            None => kept.push(pair),
        }
    }
    let rest = if kept.is_empty() {
        Cow::Borrowed(&url[..query])
    } else {
        Cow::Owned(format!("{}?{}", &url[..query], kept.join("&")))
    };
    (rest.into_owned(), given)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(url: &str) -> Result<Asked, String> {
        Asked::read(&split(url).1)
    }

    #[test]
    fn what_the_driver_does_not_know_is_taken_out_of_the_url() {
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
        for (query, mode) in [("", Mode::Prefer), ("sslmode=disable", Mode::Disable)] {
            assert_eq!(asked(&format!("postgres://a@h/d?{query}")).unwrap().mode, mode);
        }
        let full = asked("postgres://a@h/d?sslmode=verify-full&sslrootcert=/ca.pem").unwrap();
        assert_eq!(full.mode, Mode::VerifyFull);
        assert_eq!(full.roots.unwrap().to_string(), "/ca.pem");
        for (query, why) in [
            ("sslmode=yes", "one of disable, prefer, require, verify-ca, verify-full"),
            ("sslrootcert=/ca.pem", "write sslmode=verify-full"),
            ("sslmode=disable&sslrootcert=/ca.pem", "asks nobody"),
            ("sslmode=require&sslrootcert=ca.pem", "write the whole path"),
        ] {
            let said = asked(&format!("postgres://a@h/d?{query}")).unwrap_err();
            assert!(said.contains(why), "{query}: {said}");
        }
    }
}
