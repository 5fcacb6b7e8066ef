//! Brazilian taxpayer numbers (CPF and CNPJ): one spelling for each, and the kind of person by
//! shape.
//!
//! The value is personal data: neither errors nor debug output may ever show it. Check digits are
//! not judged, because a wrong number still names one caller to be counted.

use std::fmt;

/// A normalised number and the kind of person it belongs to.
#[derive(Clone, PartialEq, Eq)]
pub struct Id {
    /// Digits and capital letters only: 11 for a natural person, 14 for a legal one.
    pub normal: String,
    /// Whose number it is.
    pub person: Person,
}

/// The kind of person behind a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Person {
    /// *Pessoa física*, a natural person.
    Pf,
    /// *Pessoa jurídica*, a legal person.
    Pj,
}

/// Why a text is neither number; tells its shape and never its content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a CPF (11 digits) or a CNPJ (12 digits or letters, then 2 digits), \
     found {length} characters {content} (dots, dashes, slashes and spaces left out)"
)]
pub struct PersonError {
    /// How many characters are left without punctuation.
    pub length: usize,
    /// What they are made of.
    pub content: Content,
}

/// What a refused text is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Digits alone, or nothing.
    Digits,
    /// Digits and letters.
    Alphanumerics,
    /// Something else too.
    Others,
}

/// Reads a CPF or a CNPJ, with or without its punctuation, letters in either case.
pub fn parse(text: &str) -> Result<Id, PersonError> {
    let kept = text.chars().filter(|c| !matches!(c, '.' | '-' | '/') && !c.is_whitespace());
    let normal: String = kept.map(|c| c.to_ascii_uppercase()).collect();
    match person(normal.as_bytes()) {
        Some(person) => Ok(Id { normal, person }),
        None => Err(PersonError { length: normal.chars().count(), content: content(&normal) }),
    }
}

/// Whose number has this shape, if any.
fn person(normal: &[u8]) -> Option<Person> {
    let digits = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
    match normal.len() {
        11 if digits(normal) => Some(Person::Pf),
        14 if normal.iter().all(u8::is_ascii_alphanumeric) && digits(&normal[12..]) => {
            Some(Person::Pj)
        }
        _ => None,
    }
}

/// What a refused text is made of.
fn content(normal: &str) -> Content {
    if normal.bytes().all(|b| b.is_ascii_digit()) {
        Content::Digits
    } else if normal.bytes().all(|b| b.is_ascii_alphanumeric()) {
        Content::Alphanumerics
    } else {
        Content::Others
    }
}

impl Person {
    /// The name that policies match on.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pf => "PF",
            Self::Pj => "PJ",
        }
    }
}

impl fmt::Display for Person {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Id").field("person", &self.person).finish_non_exhaustive()
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Digits => "of digits alone",
            Self::Alphanumerics => "of digits and letters",
            Self::Others => "with symbols or foreign letters among them",
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
            ("52998224725", "52998224725", Person::Pf),
            ("529.982.247-25", "52998224725", Person::Pf),
            (" 529 982 247 25 ", "52998224725", Person::Pf),
            ("11222333000181", "11222333000181", Person::Pj),
            ("11.222.333/0001-81", "11222333000181", Person::Pj),
            ("12ABC34501DE35", "12ABC34501DE35", Person::Pj),
            ("12.abc.345/01de-35", "12ABC34501DE35", Person::Pj),
        ];
        for (text, normal, person) in table {
            let id = parse(text).unwrap();
            assert_eq!((id.normal.as_str(), id.person), (normal, person), "{text}");
        }
        assert_eq!((Person::Pf.as_str(), Person::Pj.as_str()), ("PF", "PJ"));
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
            assert_eq!(parse(text), Err(PersonError { length, content }), "{text}");
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
