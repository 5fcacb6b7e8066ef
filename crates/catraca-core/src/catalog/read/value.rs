//! Attribute values in the one spelling by which callers are compared.
//!
//! Requests are normalised by the same function, or a listed caller would not be found.
//! Must not show what it refuses: a value may be personal data.

use crate::catalog::Kind;
use crate::request::VALUE_BYTES_MAX;
use crate::select::form;

/// Why no caller can have a value.
pub(super) struct Refused {
    pub code: &'static str,
    /// What is wrong, without the value.
    pub message: String,
    pub fix: String,
}

/// Brings a value of a kind into its one spelling: addresses into the one they are counted by.
pub(super) fn normalise(kind: Kind, ipv6_prefix: u8, text: &str) -> Result<String, Refused> {
    let normal = form(kind, text, ipv6_prefix).map_err(|why| unlike(kind, &why))?;
    match normal.len() {
        0 => Err(empty()),
        1..=VALUE_BYTES_MAX => Ok(normal.into_owned()),
        bytes => Err(too_long(bytes)),
    }
}

fn unlike(kind: Kind, why: &str) -> Refused {
    let (code, message, fix) = match kind {
        Kind::CpfCnpj => {
            ("bad-cpf-cnpj", why, "write the 11 digits of a CPF or the 14 characters of a CNPJ")
        }
        Kind::Ip => {
            let message = "the value is not an address";
            ("bad-address", message, "write one such as 198.51.100.7 or 2001:db8::7")
        }
        Kind::Text | Kind::Caseless => ("bad-value", why, "write the value that callers have"),
    };
    Refused { code, message: message.to_owned(), fix: fix.to_owned() }
}

fn empty() -> Refused {
    let message = "the value is empty, which counts as absent".to_owned();
    Refused { code: "bad-value", message, fix: "write the value that callers have".to_owned() }
}

fn too_long(bytes: usize) -> Refused {
    let message = format!("the value has {bytes} bytes, more than any caller may send");
    Refused { code: "bad-value", message, fix: format!("write at most {VALUE_BYTES_MAX} bytes") }
}
