//! Brazilian taxpayer numbers (CPF and CNPJ): their normal form, and the kind of person.
//!
//! The number is personal data: neither errors nor debug output may show it. Reading a number does
//! not verify its check digits, because an invalid number still identifies one caller to count;
//! attributes with `check_digits` ask for that too.

use std::fmt;

/// A normalised taxpayer number, and the kind of person that it belongs to.
#[derive(Clone, PartialEq, Eq)]
pub struct TaxpayerId {
    /// Digits and capital letters only: 11 for a natural person, 14 for a legal one.
    pub normal: String,
    /// The kind of person.
    pub person: PersonKind,
}

/// The kind of person that a number belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PersonKind {
    /// *Pessoa física*, a natural person.
    Pf,
    /// *Pessoa jurídica*, a legal person.
    Pj,
}

/// Why a text is neither a CPF nor a CNPJ; describes its form, but does not contain the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaxpayerIdError {
    /// The number of characters without punctuation.
    pub length: usize,
    /// The kinds of these characters.
    pub content: Content,
}

impl fmt::Display for TaxpayerIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { length, content } = self;
        write!(
            f,
            "expected a CPF (11 digits) or a CNPJ (12 digits or letters, then 2 digits), found \
             {length} characters {content} (dots, dashes, slashes and spaces left out)"
        )
    }
}

impl std::error::Error for TaxpayerIdError {}

/// The kinds of characters in an invalid text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Digits alone, or nothing.
    Digits,
    /// Digits and letters.
    Alphanumerics,
    /// Other characters too.
    Others,
}

impl TaxpayerId {
    /// Whether the last two digits are those that the other characters require.
    pub fn has_valid_check_digits(&self) -> bool {
        let normal = self.normal.as_bytes();
        // Numbers of one repeated digit have valid check digits, and are never issued.
        let is_repeated = normal.iter().all(|byte| *byte == normal[0]);
        let largest_weight = match self.person {
            PersonKind::Pf => 11,
            PersonKind::Pj => 9,
        };
        let is_valid = |length: usize| {
            let digit = check_digit(&normal[..length], largest_weight);
            u32::from(normal[length] - b'0') == digit
        };
        !is_repeated && is_valid(normal.len() - 2) && is_valid(normal.len() - 1)
    }
}

/// The check digit of these characters. Weights grow from 2 at the right, and start at 2 again
/// after the largest. A letter counts as its distance from the digit zero in ASCII.
fn check_digit(characters: &[u8], largest_weight: u32) -> u32 {
    let weights = (2..=largest_weight).cycle();
    let products = characters.iter().rev().zip(weights);
    let sum: u32 = products.map(|(byte, weight)| u32::from(byte - b'0') * weight).sum();
    match sum % 11 {
        0 | 1 => 0,
        rest => 11 - rest,
    }
}

/// Reads a CPF or a CNPJ, with or without its punctuation, letters in either case.
pub fn parse(text: &str) -> Result<TaxpayerId, TaxpayerIdError> {
    let significant = text.chars().filter(|c| !matches!(c, '.' | '-' | '/') && !c.is_whitespace());
    let normal: String = significant.map(|c| c.to_ascii_uppercase()).collect();
    match person_kind(normal.as_bytes()) {
        Some(person) => Ok(TaxpayerId { normal, person }),
        None => Err(TaxpayerIdError { length: normal.chars().count(), content: content(&normal) }),
    }
}

/// The kind of person whose numbers have this form, if any.
pub(crate) fn person_kind(normal: &[u8]) -> Option<PersonKind> {
    let digits = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
    match normal.len() {
        11 if digits(normal) => Some(PersonKind::Pf),
        14 if normal.iter().all(u8::is_ascii_alphanumeric) && digits(&normal[12..]) => {
            Some(PersonKind::Pj)
        }
        _ => None,
    }
}

/// The kinds of characters in an invalid text.
fn content(normal: &str) -> Content {
    if normal.bytes().all(|b| b.is_ascii_digit()) {
        Content::Digits
    } else if normal.bytes().all(|b| b.is_ascii_alphanumeric()) {
        Content::Alphanumerics
    } else {
        Content::Others
    }
}

impl PersonKind {
    /// The value of the derived name `person`, as tiers match it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pf => "PF",
            Self::Pj => "PJ",
        }
    }
}

impl fmt::Display for PersonKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for TaxpayerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Id").field("person", &self.person).finish_non_exhaustive()
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Digits => "of digits alone",
            Self::Alphanumerics => "of digits and letters",
            Self::Others => "with symbols or letters other than A to Z",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// covers: X-16, B-28
    #[test]
    fn every_spelling_of_one_person_is_one_number() {
        let table = [
            ("52998224725", "52998224725", PersonKind::Pf),
            ("529.982.247-25", "52998224725", PersonKind::Pf),
            (" 529 982 247 25 ", "52998224725", PersonKind::Pf),
            ("11222333000181", "11222333000181", PersonKind::Pj),
            ("11.222.333/0001-81", "11222333000181", PersonKind::Pj),
            ("12ABC34501DE35", "12ABC34501DE35", PersonKind::Pj),
            ("12.abc.345/01de-35", "12ABC34501DE35", PersonKind::Pj),
        ];
        for (text, normal, person) in table {
            let id = parse(text).unwrap();
            assert_eq!((id.normal.as_str(), id.person), (normal, person), "{text}");
        }
        assert_eq!((PersonKind::Pf.as_str(), PersonKind::Pj.as_str()), ("PF", "PJ"));
    }

    /// covers: B-28
    #[test]
    fn any_other_shape_is_refused_by_shape() {
        let table = [
            ("", 0, Content::Digits),
            ("5299822472", 10, Content::Digits),
            ("529982247255", 12, Content::Digits),
            ("5299822472A", 11, Content::Alphanumerics),
            ("12ABC34501DE3X", 14, Content::Alphanumerics),
            ("112223330001812", 15, Content::Digits),
            ("529_982_247_25", 14, Content::Others),
            ("5299822472５", 11, Content::Others),
            ("12ÁBC34501DE35", 14, Content::Others),
        ];
        for (text, length, content) in table {
            assert_eq!(parse(text), Err(TaxpayerIdError { length, content }), "{text}");
        }
    }

    #[test]
    fn check_digits_are_those_of_both_algorithms() {
        for valid in ["52998224725", "11144477735", "11222333000181", "12ABC34501DE35"] {
            assert!(parse(valid).unwrap().has_valid_check_digits(), "{valid}");
        }
        for invalid in [
            "52998224724",
            "52998224715",
            "25998224725",
            "11111111111",
            "11222333000180",
            "11222333000191",
            "12ABC34501DF35",
            "00000000000000",
        ] {
            assert!(!parse(invalid).unwrap().has_valid_check_digits(), "{invalid}");
        }
    }

    #[test]
    fn neither_errors_nor_debug_output_show_the_value() {
        let refused = parse("529.982.247-2").unwrap_err();
        assert!(refused.to_string().contains("found 10 characters of digits alone"));
        let shown = format!("{refused} {refused:?} {:?}", parse("52998224725").unwrap());
        assert!(!shown.contains("529") && !shown.contains("982"), "{shown}");
    }
}
