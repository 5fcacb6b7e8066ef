//! Attribute values in the one spelling by which callers are compared.
//!
//! The catalog and every request must normalise alike, or a listed caller would not be found.
//! Must not show what it refuses: a value may be personal data.

use crate::address::Address;
use crate::catalog::Kind;
use crate::person;

/// Why a text is not a value of its attribute's kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ValueError {
    /// The stable name of the mistake.
    pub code: &'static str,
    /// What is wrong, without the value.
    pub message: String,
    /// What to write instead.
    pub fix: &'static str,
}

/// Brings a value of a kind into its one spelling; addresses into the form by which they are counted.
pub fn normalise(kind: Kind, ipv6_prefix: u8, text: &str) -> Result<String, ValueError> {
    let normal = match kind {
        Kind::Text => text.to_owned(),
        Kind::Caseless => text.trim().to_lowercase(),
        Kind::Ip => Address::parse(text).map_err(|_| not_an_address())?.key(ipv6_prefix),
        Kind::CpfCnpj => person::parse(text).map_err(not_a_person)?.normal,
    };
    if normal.is_empty() {
        return Err(empty());
    }
    Ok(normal)
}

fn not_an_address() -> ValueError {
    let message = "the value is not an address".to_owned();
    ValueError { code: "bad-address", message, fix: "write one such as 198.51.100.7 or 2001:db8::7" }
}

fn not_a_person(error: person::PersonError) -> ValueError {
    let fix = "write the 11 digits of a CPF or the 14 characters of a CNPJ";
    ValueError { code: "bad-cpf-cnpj", message: error.to_string(), fix }
}

fn empty() -> ValueError {
    let message = "the value is empty".to_owned();
    ValueError { code: "bad-value", message, fix: "write the value that callers have" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_one_spelling() {
        let normal = |kind, text| normalise(kind, 64, text).unwrap();
        assert_eq!(normal(Kind::Text, " A b"), " A b");
        assert_eq!(normal(Kind::Caseless, " Ação@X.com "), "ação@x.com");
        assert_eq!(normal(Kind::Ip, "::ffff:198.51.100.7"), "198.51.100.7");
        assert_eq!(normal(Kind::Ip, "2001:db8::1"), normal(Kind::Ip, "2001:DB8:0:0:ffff::2"));
        assert_eq!(normal(Kind::CpfCnpj, "12.abc.345/01DE-35"), "12ABC34501DE35");
    }

    #[test]
    fn what_is_refused_is_not_shown() {
        for (kind, text, code) in [
            (Kind::Ip, "198.51.100.300", "bad-address"),
            (Kind::CpfCnpj, "5299822472", "bad-cpf-cnpj"),
            (Kind::Caseless, "  ", "bad-value"),
        ] {
            let error = normalise(kind, 64, text).unwrap_err();
            assert_eq!(error.code, code);
            assert!(!error.to_string().contains(text));
        }
    }
}
