//! Keys of Pix, by their shape: which type of key a text is, as the DICT defines the types.
//!
//! The check digits of numbers are not tested, and no key is looked up. Must not show a key in an
//! error or in debug output: it identifies a person.

use std::fmt;

use crate::cpf_cnpj;

/// The longest e-mail address that is a key.
const EMAIL_BYTES_MAX: usize = 77;
/// The digits of a telephone number with its country (E.164).
const PHONE_DIGITS: std::ops::RangeInclusive<usize> = 3..=15;
/// The lengths of the groups of a random key, which is a UUID.
const EVP_GROUPS: [usize; 5] = [8, 4, 4, 4, 12];

/// A key in normal form.
#[derive(Clone, PartialEq, Eq)]
pub struct PixKey {
    /// Numbers as they are, the letters of a CNPJ in upper case, those of other keys in lower case.
    pub normal: String,
    /// Its type.
    pub key_type: KeyType,
}

/// The types of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyType {
    /// The number of a natural person.
    Cpf,
    /// The number of a legal person.
    Cnpj,
    /// An e-mail address.
    Email,
    /// A telephone number.
    Phone,
    /// A random key.
    Evp,
}

/// A text is not a key; contains its length, but not the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PixKeyError {
    /// The number of characters.
    pub length: usize,
}

impl fmt::Display for PixKeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "expected a Pix key, found {} characters of another form: a CPF has 11 digits, a CNPJ \
             12 digits or letters and 2 digits, both without punctuation; a telephone number is \
             written as +5561912345678; a random key is a UUID",
            self.length
        )
    }
}

impl std::error::Error for PixKeyError {}

impl KeyType {
    /// Every type.
    pub const ALL: [Self; 5] = [Self::Cpf, Self::Cnpj, Self::Email, Self::Phone, Self::Evp];

    /// The value of the derived name `key_type`, as the DICT writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cpf => "CPF",
            Self::Cnpj => "CNPJ",
            Self::Email => "EMAIL",
            Self::Phone => "PHONE",
            Self::Evp => "EVP",
        }
    }
}

impl fmt::Debug for PixKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PixKey").field("key_type", &self.key_type).finish_non_exhaustive()
    }
}

/// Reads a key.
pub fn parse(text: &str) -> Result<PixKey, PixKeyError> {
    let key_type = key_type(text).ok_or_else(|| PixKeyError { length: text.chars().count() })?;
    let normal = match key_type {
        KeyType::Cpf | KeyType::Phone => text.to_owned(),
        KeyType::Cnpj => text.to_ascii_uppercase(),
        KeyType::Email | KeyType::Evp => text.to_ascii_lowercase(),
    };
    Ok(PixKey { normal, key_type })
}

/// The only type whose keys have this shape, if any.
fn key_type(text: &str) -> Option<KeyType> {
    if let Some(person) = cpf_cnpj::person_kind(text.as_bytes()) {
        return Some(match person {
            cpf_cnpj::PersonKind::Pf => KeyType::Cpf,
            cpf_cnpj::PersonKind::Pj => KeyType::Cnpj,
        });
    }
    if let Some(digits) = text.strip_prefix('+') {
        return is_phone(digits).then_some(KeyType::Phone);
    }
    if let Some((local, domain)) = text.split_once('@') {
        let is_email = text.len() <= EMAIL_BYTES_MAX && is_local_part(local) && is_domain(domain);
        return is_email.then_some(KeyType::Email);
    }
    is_evp(text).then_some(KeyType::Evp)
}

fn is_phone(digits: &str) -> bool {
    let is_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    PHONE_DIGITS.contains(&digits.len()) && is_digits && !digits.starts_with('0')
}

fn is_local_part(local: &str) -> bool {
    let is_allowed =
        |byte: u8| byte.is_ascii_alphanumeric() || b".!#$%&'*+/=?^_`{|}~-".contains(&byte);
    !local.is_empty() && local.bytes().all(is_allowed)
}

fn is_domain(domain: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    domain.split('.').all(is_label)
}

fn is_evp(text: &str) -> bool {
    let mut groups = text.split('-');
    let is_group = |length: &usize| {
        groups.next().is_some_and(|group| {
            group.len() == *length && group.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
    };
    EVP_GROUPS.iter().all(is_group) && groups.next().is_none()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// covers: 001-08
    #[test]
    fn every_type_is_known_by_its_shape() {
        for (text, key_type, normal) in [
            ("12345678909", KeyType::Cpf, "12345678909"),
            ("00038166000105", KeyType::Cnpj, "00038166000105"),
            ("12ABC34501DE35", KeyType::Cnpj, "12ABC34501DE35"),
            ("12abc34501de35", KeyType::Cnpj, "12ABC34501DE35"),
            ("fulano_da_silva.recebedor@example.com", KeyType::Email, ""),
            ("Fulano+Pix@Example.COM", KeyType::Email, "fulano+pix@example.com"),
            ("+5561912345678", KeyType::Phone, "+5561912345678"),
            ("+12125550123", KeyType::Phone, "+12125550123"),
            ("123e4567-e12b-12d1-a456-426655440000", KeyType::Evp, ""),
            ("123E4567-E12B-12D1-A456-426655440000", KeyType::Evp, ""),
        ] {
            let key = parse(text).unwrap();
            assert_eq!(key.key_type, key_type, "{text}");
            let lower = text.to_lowercase();
            let normal = if normal.is_empty() { &lower } else { normal };
            assert_eq!(key.normal, normal, "{text}");
        }
        let words: Vec<_> = KeyType::ALL.iter().map(|key_type| key_type.as_str()).collect();
        assert_eq!(words, ["CPF", "CNPJ", "EMAIL", "PHONE", "EVP"]);
    }

    #[test]
    fn other_shapes_are_no_keys() {
        let long = format!("{}@example.com", "x".repeat(EMAIL_BYTES_MAX - 11));
        for text in [
            "",
            "1234567890",
            "123.456.789-09",
            "00.038.166/0001-05",
            "12ABC34501DE3X",
            " 12345678909",
            "5561912345678",
            "+0561912345678",
            "+1",
            "+1234567890123456",
            "+55 61 912345678",
            "a@",
            "@a",
            "a@b@c",
            "a@-b",
            "a@b..c",
            "á@example.com",
            &long,
            "123e4567e12b12d1a456426655440000",
            "123e4567-e12b-12d1-a456-42665544000g",
            "123e4567-e12b-12d1-a456-426655440000-",
        ] {
            assert_eq!(parse(text), Err(PixKeyError { length: text.chars().count() }), "{text}");
        }
        assert!(parse(&long[1..]).is_ok(), "the longest address");
    }

    #[test]
    fn neither_errors_nor_debug_output_show_the_key() {
        let shown = format!("{:?} {}", parse("98765432100"), parse("9876543210").unwrap_err());
        assert!(!shown.contains("9876"), "{shown}");
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic_and_a_key_is_stable(
            text in "\\PC{0,40}",
            near in "[+@0-9a-fA-F.-]{0,40}",
        ) {
            for text in [text, near] {
                if let Ok(key) = parse(&text) {
                    prop_assert!(key.normal.len() <= EMAIL_BYTES_MAX);
                    prop_assert_eq!(parse(&key.normal), Ok(key));
                }
            }
        }
    }
}
