//! Normal form of attribute values that are written in the catalog.
//!
//! The values of requests are normalised by the same function, so that both compare equal. Must not
//! put a value into an error: it may be personal data.

use crate::catalog::AttributeKind;
use crate::request::VALUE_BYTES_MAX;
use crate::select::normal_form;

/// Why no request can have a value.
pub(super) struct ValueError {
    pub code: &'static str,
    /// Describes the error without showing the value.
    pub message: String,
    pub fix: String,
}

/// The normal form of a value; addresses are reduced to the network by which they are counted.
pub(super) fn normalise(
    kind: AttributeKind,
    ipv6_prefix: u8,
    text: &str,
) -> Result<String, ValueError> {
    let normal = normal_form(kind, text, ipv6_prefix).map_err(|why| kind_error(kind, &why))?;
    match normal.len() {
        0 => Err(empty_error()),
        1..=VALUE_BYTES_MAX => Ok(normal.into_owned()),
        bytes => Err(too_long_error(bytes)),
    }
}

fn kind_error(kind: AttributeKind, why: &str) -> ValueError {
    let (code, message, fix) = match kind {
        AttributeKind::CpfCnpj | AttributeKind::CheckedCpfCnpj => {
            ("bad-cpf-cnpj", why, "write the 11 digits of a CPF or the 14 characters of a CNPJ")
        }
        AttributeKind::PixKey => {
            ("bad-pix-key", why, "write a key as the DICT does, such as +5561912345678")
        }
        AttributeKind::Ip => {
            let message = "the value is not an address";
            ("bad-address", message, "write one such as 198.51.100.7 or 2001:db8::7")
        }
        AttributeKind::Text | AttributeKind::Caseless => {
            ("bad-value", why, "write the value that callers have")
        }
    };
    ValueError { code, message: message.to_owned(), fix: fix.to_owned() }
}

fn empty_error() -> ValueError {
    let message = "the value is empty, which counts as absent".to_owned();
    ValueError { code: "bad-value", message, fix: "write the value that callers have".to_owned() }
}

fn too_long_error(bytes: usize) -> ValueError {
    let message = format!("the value has {bytes} bytes, more than any caller may send");
    ValueError { code: "bad-value", message, fix: format!("write at most {VALUE_BYTES_MAX} bytes") }
}
