//! `[attribute.…]` and `[facts.…]`: the kinds of attributes, and facts about their values.
//!
//! A name has one source: callers send it, or it is a fact, or it is derived from another
//! attribute. Must not accept a fact under a name that callers send, or a caller could choose its
//! own tier.

use std::collections::{BTreeMap, BTreeSet};

use super::scalar;
use super::schema;
use super::section::Sections;
use super::value::normalise;
use crate::catalog::{Attribute, AttributeKind, DerivedName};
use crate::facts::{Facts, HASH_PREFIX, is_hashed_value};
use crate::located::{
    DefaultValue, FieldSchema, LocatedKey, Node, Report, SourceLocation, TableFields, TableSchema,
    ValueSchema, names, schema::words,
};
use crate::policy::Name;

/// The fields of `[attribute.NAME]`.
pub(super) static ATTRIBUTE: TableSchema = TableSchema {
    name: "attribute",
    fields: &[
        FieldSchema::new(
            "kind",
            ValueSchema::Word(|| words(&KINDS)),
            "how values are normalised: `text` not at all, `caseless` trimmed and in lower case, \
             `ip` an address, `cpf_cnpj` a Brazilian taxpayer number, which also derives `person` \
             = `PF` or `PJ`, `pix_key` a key of Pix, which also derives `key_type` = `CPF`, \
             `CNPJ`, `EMAIL`, `PHONE` or `EVP`",
        )
        .or(DefaultValue::Text("text")),
        FieldSchema::new(
            "check_digits",
            ValueSchema::Flag,
            "`true`: a `cpf_cnpj` whose check digits are wrong is refused",
        )
        .or(DefaultValue::Flag(false)),
        FieldSchema::new("private", ValueSchema::Flag, "stored and shown only as a pseudonym")
            .or(DefaultValue::Flag(false)),
        FieldSchema::new(
            "facts",
            schema::NAMES,
            "the names of facts that may be set for this attribute at run time",
        )
        .or(DefaultValue::Absent("the names in the catalog")),
    ],
};

/// All attributes and facts of the catalog, which the readers of later sections look up.
pub struct AttributeTable {
    pub(super) by_name: BTreeMap<Name, Attribute>,
    pub(super) facts: Facts,
    /// The attribute that each derived name comes from.
    derived: BTreeMap<&'static str, Name>,
    ipv6_prefix: u8,
}

/// Reads both sections.
pub(super) fn read(
    report: &mut Report,
    sections: &Sections<'_>,
    ipv6_prefix: u8,
) -> AttributeTable {
    let by_name = built_in();
    let derived = BTreeMap::new();
    let mut table = AttributeTable { by_name, facts: Facts::default(), derived, ipv6_prefix };
    for (key, node) in sections.named_tables(report, "attribute") {
        table.declare(report, key, node);
    }
    let mut stated = BTreeSet::new();
    for (_, section) in sections.all("facts") {
        let wanted = "tables such as [facts.tenant.\"t1\"]";
        for (attribute, node) in section.entries(report, wanted).unwrap_or_default() {
            names::check_key(report, attribute, "attribute");
            table.read_facts(report, attribute, node, &mut stated);
        }
    }
    table
}

/// The attributes that exist without a declaration.
fn built_in() -> BTreeMap<Name, Attribute> {
    let private = Attribute { kind: AttributeKind::Text, private: true };
    let address = Attribute { kind: AttributeKind::Ip, private: false };
    [("ip", address), ("session", private.clone()), ("token", private)]
        .map(|(name, attribute)| (name.into(), attribute))
        .into()
}

impl AttributeTable {
    /// The attribute that a fact or a derived name comes from, if the name is one.
    pub fn source(&self, name: &str) -> Option<&Name> {
        self.facts.source(name)
    }

    /// A value in normal form, as requests are normalised; reports a value that no request can
    /// have, and a hash, which only a caller that sends the hash itself would match.
    pub fn normalise_value(
        &self,
        report: &mut Report,
        name: &str,
        location: SourceLocation,
        text: &str,
    ) -> Option<String> {
        if let Some(source) = self.facts.source(name) {
            return self.fact_value(report, name, source, location, text);
        }
        if text.starts_with(HASH_PREFIX) {
            return report_hash(report, name, location);
        }
        let attribute = self.by_name.get(name).cloned().unwrap_or_default();
        match normalise(attribute.kind, self.ipv6_prefix, text) {
            Ok(normal) => Some(normal),
            // Values of such a kind identify persons.
            Err(error) if attribute.private || attribute.kind.derived_name().is_some() => {
                report.private_error(error.code, location, error.message, error.fix);
                None
            }
            Err(error) => {
                report.error(error.code, location, error.message, error.fix);
                None
            }
        }
    }

    /// The attribute that a name is derived from, if one is.
    pub(super) fn derived_name(&self, name: &str) -> Option<(&'static DerivedName, &Name)> {
        let (_, attribute) = self.derived.get_key_value(name)?;
        let kind = KINDS.iter().map(|(_, kind)| kind);
        let mut derived = kind.filter_map(|kind| kind.derived_name());
        Some((derived.find(|derived| derived.name == name)?, attribute))
    }

    /// The value of a fact, not normalised: facts are written by the operator, not by callers.
    fn fact_value(
        &self,
        report: &mut Report,
        name: &str,
        source: &Name,
        location: SourceLocation,
        text: &str,
    ) -> Option<String> {
        let derived = self.derived_name(name).filter(|(_, own)| *own == source);
        if let Some((derived, _)) = derived.filter(|(of, _)| !of.values.contains(&text)) {
            let message = format!("`{text}` is never derived from {}", derived.source);
            let fix = format!("write one of: {}", derived.values.join(", "));
            report.error("bad-value", location, message, fix);
            return None;
        }
        Some(text.to_owned())
    }

    fn declare(&mut self, report: &mut Report, key: LocatedKey<'_>, node: Node<'_>) {
        let Some(fields) = TableFields::read(report, key.location, node, &ATTRIBUTE) else {
            return;
        };
        let mut attribute = self.by_name.get(key.text).cloned().unwrap_or_default();
        if let Some(node) = fields.get("kind") {
            self.kind(report, key, node, &mut attribute);
        }
        if let Some(node) = fields.get("check_digits") {
            check_digits(report, node, &mut attribute);
        }
        if let Some(node) = fields.get("private") {
            private(report, key, node, &mut attribute);
        }
        if let Some(node) = fields.get("facts") {
            self.declare_facts(report, key, node);
        }
        self.by_name.insert(key.text.into(), attribute);
    }

    fn kind(
        &mut self,
        report: &mut Report,
        key: LocatedKey<'_>,
        node: Node<'_>,
        of: &mut Attribute,
    ) {
        let Some(kind) = scalar::keyword(report, node, &KINDS) else { return };
        if key.text == "ip" && kind != AttributeKind::Ip {
            let message = "`ip` is always an address";
            return report.error(
                "wrong-kind",
                node.location,
                message,
                "write kind = \"ip\", or nothing",
            );
        }
        of.kind = kind;
        if let Some(derived) = kind.derived_name() {
            self.claim_name(report, key.text, derived.name, node.location);
            self.derived.entry(derived.name).or_insert_with(|| key.text.into());
        }
    }

    fn declare_facts(&mut self, report: &mut Report, key: LocatedKey<'_>, node: Node<'_>) {
        let texts = node.texts(report, "a list of names such as [\"category\"]");
        for (item, name) in texts.unwrap_or_default() {
            if names::check_name(report, item.location, name, "fact") {
                self.declare_fact(report, key.text, name, item.location);
            }
        }
    }

    /// Reads all facts about the values of one attribute. `stated` contains the attributes and
    /// values whose facts were read before.
    fn read_facts(
        &mut self,
        report: &mut Report,
        attribute: LocatedKey<'_>,
        node: Node<'_>,
        stated: &mut BTreeSet<(String, String)>,
    ) {
        let wanted = format!("tables such as [facts.{}.\"value\"]", attribute.text);
        for (value, facts) in node.entries(report, &wanted).unwrap_or_default() {
            let Some(normal) = self.described_value(report, attribute.text, value) else {
                continue;
            };
            if !stated.insert((attribute.text.to_owned(), normal.clone())) {
                let message = format!("facts about this `{}` are stated twice", attribute.text);
                let fix = "join both tables";
                report.private_error("duplicate-name", value.location, message, fix);
                continue;
            }
            self.read_facts_about(report, (attribute.text, &normal), facts);
        }
    }

    /// The value that facts are about, in normal form, or its hash as it is written.
    fn described_value(
        &self,
        report: &mut Report,
        attribute: &str,
        value: LocatedKey<'_>,
    ) -> Option<String> {
        if !value.text.starts_with(HASH_PREFIX) {
            return self.normalise_value(report, attribute, value.location, value.text);
        }
        if is_hashed_value(value.text) {
            return Some(value.text.to_owned());
        }
        let message = "the hash of a value has 64 hexadecimal digits in lower case";
        let fix = format!("write what `catraca hash {attribute}` prints");
        report.private_error("bad-value", value.location, message, fix);
        None
    }

    /// Reads the facts about one value.
    fn read_facts_about(&mut self, report: &mut Report, about: (&str, &str), node: Node<'_>) {
        let wanted = "a table of facts such as { category = \"A\" }";
        for (name, value) in node.entries(report, wanted).unwrap_or_default() {
            let text = value.text(report, "a text such as \"A\"");
            let is_valid = names::check_key(report, name, "fact")
                && self.declare_fact(report, about.0, name.text, name.location);
            if let Some(text) = text.filter(|_| is_valid) {
                // This cannot fail: `declare_fact` made the attribute the source of the name.
                let _ = self.facts.insert_fact(about, name.text, text);
            }
        }
    }

    /// Declares a name as a fact about an attribute, unless the name is reserved or has another
    /// source.
    fn declare_fact(
        &mut self,
        report: &mut Report,
        attribute: &str,
        name: &str,
        at: SourceLocation,
    ) -> bool {
        let derived = self.derived_name(name).map(|(derived, _)| derived);
        let reserved = match name {
            "ip" => Some("`ip` is always the caller's address".to_owned()),
            _ => derived.map(|derived| format!("`{name}` is derived from {}", derived.source)),
        };
        if let Some(message) = reserved {
            report.error("two-sources", at, message, "give the fact another name");
            return false;
        }
        self.claim_name(report, attribute, name, at)
    }

    /// Makes an attribute the only source of a name.
    fn claim_name(
        &mut self,
        report: &mut Report,
        attribute: &str,
        name: &str,
        at: SourceLocation,
    ) -> bool {
        match self.facts.declare(attribute, name) {
            Ok(()) => true,
            Err(other) => {
                let message = format!("`{name}` comes from `{other}` and from `{attribute}`");
                let fix = "a name has one source: take it from one of them only";
                report.error("two-sources", at, message, fix);
                false
            }
        }
    }
}

fn report_hash<T>(report: &mut Report, attribute: &str, location: SourceLocation) -> Option<T> {
    let message = "only facts may name a value by its hash";
    let fix = format!("write [facts.{attribute}.\"{HASH_PREFIX}…\"] and match the fact");
    report.private_error("bad-value", location, message, fix);
    None
}

fn check_digits(report: &mut Report, node: Node<'_>, of: &mut Attribute) {
    let Some(wanted) = node.flag(report) else { return };
    match of.kind {
        AttributeKind::CpfCnpj if wanted => of.kind = AttributeKind::CheckedCpfCnpj,
        _ if !wanted => {}
        _ => {
            let message = "only a `cpf_cnpj` has check digits";
            let fix = "write kind = \"cpf_cnpj\" too, or remove check_digits";
            report.error("wrong-kind", node.location, message, fix);
        }
    }
}

fn private(report: &mut Report, key: LocatedKey<'_>, node: Node<'_>, of: &mut Attribute) {
    let Some(private) = node.flag(report) else { return };
    if !private && matches!(key.text, "session" | "token") {
        let message = format!("`{}` is a credential: its values must stay private", key.text);
        return report.error("always-private", node.location, message, "remove private = false");
    }
    of.private = private;
}

pub(in crate::catalog) const KINDS: [(&str, AttributeKind); 5] = [
    ("text", AttributeKind::Text),
    ("caseless", AttributeKind::Caseless),
    ("ip", AttributeKind::Ip),
    ("cpf_cnpj", AttributeKind::CpfCnpj),
    ("pix_key", AttributeKind::PixKey),
];
