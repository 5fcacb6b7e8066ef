//! Names that are derived from the values of an attribute, by their shape. Callers cannot send
//! them, as they cannot send facts.

use super::AttributeKind;
use crate::cpf_cnpj::{self, PersonKind};
use crate::pix_key::{self, KeyType};

/// A name that is derived from the values of attributes of one kind.
#[derive(Clone, Copy, Debug)]
pub struct DerivedName {
    /// The name.
    pub name: &'static str,
    /// The kind of the attributes that it is derived from.
    pub kind: AttributeKind,
    /// What the values of that kind are, for messages.
    pub source: &'static str,
    /// Every value that it can have.
    pub values: &'static [&'static str],
    derive: fn(&str) -> Option<&'static str>,
}

const DERIVED_NAMES: [DerivedName; 2] = [
    DerivedName {
        name: "person",
        kind: AttributeKind::CpfCnpj,
        source: "a taxpayer number",
        values: &[PersonKind::Pf.as_str(), PersonKind::Pj.as_str()],
        derive: |normal| cpf_cnpj::parse(normal).ok().map(|id| id.person.as_str()),
    },
    DerivedName {
        name: "key_type",
        kind: AttributeKind::PixKey,
        source: "a Pix key",
        values: &[
            KeyType::Cpf.as_str(),
            KeyType::Cnpj.as_str(),
            KeyType::Email.as_str(),
            KeyType::Phone.as_str(),
            KeyType::Evp.as_str(),
        ],
        derive: |normal| pix_key::parse(normal).ok().map(|key| key.key_type.as_str()),
    },
];

impl DerivedName {
    /// The value that is derived from a value in normal form.
    pub fn derive(&self, normal: &str) -> Option<&'static str> {
        (self.derive)(normal)
    }
}

impl AttributeKind {
    /// The name that is derived from values of this kind.
    pub fn derived_name(self) -> Option<&'static DerivedName> {
        const ALL: &[DerivedName] = &DERIVED_NAMES;
        let kind = if self == Self::CheckedCpfCnpj { Self::CpfCnpj } else { self };
        ALL.iter().find(|derived| derived.kind == kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_derived_value_is_declared() {
        for (kind, value) in [
            (AttributeKind::CpfCnpj, "52998224725"),
            (AttributeKind::CpfCnpj, "11222333000181"),
            (AttributeKind::PixKey, "+5561912345678"),
        ] {
            let derived = kind.derived_name().unwrap();
            let value = derived.derive(value).unwrap();
            assert!(derived.values.contains(&value), "{value}");
        }
        assert!(AttributeKind::Text.derived_name().is_none());
        assert_eq!(AttributeKind::PixKey.derived_name().unwrap().values.len(), KeyType::ALL.len());
    }
}
