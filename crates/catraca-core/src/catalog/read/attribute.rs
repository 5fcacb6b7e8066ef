//! `[attribute.…]` and `[facts.…]`: what is known of attributes and of their values.
//!
//! A name has one source: a caller, a fact, or a derivation. Must not let a caller's word become a
//! fact, nor `ip`, `session` and `token` be less than they are.

use std::collections::{BTreeMap, BTreeSet};

use super::names;
use super::node::{Fields, Key, Node};
use super::report::{Place, Report};
use super::scalar;
use super::section::Sections;
use super::value::normalise;
use crate::catalog::{Attribute, Kind};
use crate::facts::Facts;
use crate::policy::Name;

/// What a taxpayer number derives.
const PERSON: &str = "person";

/// Everything known of attributes, for the readers that follow.
pub(super) struct Known {
    pub attributes: BTreeMap<Name, Attribute>,
    pub facts: Facts,
    /// The attribute that derives `person`.
    person: Option<Name>,
    ipv6_prefix: u8,
}

/// Reads both sections.
pub(super) fn read(report: &mut Report, sections: &Sections<'_>, ipv6_prefix: u8) -> Known {
    let attributes = built_in();
    let mut known = Known { attributes, facts: Facts::default(), person: None, ipv6_prefix };
    for (key, node) in sections.named(report, "attribute") {
        known.declare(report, key, node);
    }
    let mut stated = BTreeSet::new();
    for (_, section) in sections.all("facts") {
        let wanted = "tables such as [facts.tenant.\"t1\"]";
        for (attribute, node) in section.entries(report, wanted).unwrap_or_default() {
            names::check(report, attribute, "attribute");
            known.state_all(report, attribute, node, &mut stated);
        }
    }
    known
}

/// What holds without being declared.
fn built_in() -> BTreeMap<Name, Attribute> {
    let private = Attribute { kind: Kind::Text, private: true };
    let address = Attribute { kind: Kind::Ip, private: false };
    [("ip", address), ("session", private.clone()), ("token", private)]
        .map(|(name, attribute)| (name.into(), attribute))
        .into()
}

impl Known {
    /// A value in the one spelling by which callers have it; reports one that none can have.
    pub fn normal(&self, report: &mut Report, name: &str, at: (Place, &str)) -> Option<String> {
        if let Some(source) = self.facts.source(name) {
            return self.fact_value(report, (name, source), at);
        }
        let attribute = self.attributes.get(name).cloned().unwrap_or_default();
        match normalise(attribute.kind, self.ipv6_prefix, at.1) {
            Ok(normal) => Some(normal),
            Err(error) if attribute.private || attribute.kind == Kind::CpfCnpj => {
                report.private_error(error.code, at.0, error.message, error.fix);
                None
            }
            Err(error) => {
                report.error(error.code, at.0, error.message, error.fix);
                None
            }
        }
    }

    /// The values of facts are ours, so they are compared as they are written.
    fn fact_value(
        &self,
        report: &mut Report,
        (name, source): (&str, &Name),
        (place, text): (Place, &str),
    ) -> Option<String> {
        if name == PERSON && self.person.as_ref() == Some(source) && !matches!(text, "PF" | "PJ") {
            let message = format!("`{text}` is never derived from a taxpayer number");
            report.error("bad-value", place, message, "write \"PF\" or \"PJ\"");
            return None;
        }
        Some(text.to_owned())
    }

    fn declare(&mut self, report: &mut Report, key: Key<'_>, node: Node<'_>) {
        let fields = ["kind", "private", "facts"];
        let Some(fields) = Fields::read(report, (key.place, node), "attribute", &fields) else {
            return;
        };
        let mut attribute = self.attributes.get(key.text).cloned().unwrap_or_default();
        if let Some(node) = fields.get("kind") {
            self.kind(report, key, node, &mut attribute);
        }
        if let Some(node) = fields.get("private") {
            private(report, key, node, &mut attribute);
        }
        if let Some(node) = fields.get("facts") {
            self.declare_facts(report, key, node);
        }
        self.attributes.insert(key.text.into(), attribute);
    }

    fn kind(&mut self, report: &mut Report, key: Key<'_>, node: Node<'_>, of: &mut Attribute) {
        let Some(kind) = scalar::word(report, node, &KINDS) else { return };
        if key.text == "ip" && kind != Kind::Ip {
            let message = "`ip` is always an address";
            return report.error(
                "wrong-kind",
                node.place,
                message,
                "write kind = \"ip\", or nothing",
            );
        }
        of.kind = kind;
        if kind == Kind::CpfCnpj {
            self.claim(report, (key.text, PERSON), node.place);
            self.person.get_or_insert_with(|| key.text.into());
        }
    }

    fn declare_facts(&mut self, report: &mut Report, key: Key<'_>, node: Node<'_>) {
        let texts = node.texts(report, "a list of names such as [\"category\"]");
        for (item, name) in texts.unwrap_or_default() {
            if names::check_at(report, item.place, name, "fact") {
                self.fact(report, (key.text, name), item.place);
            }
        }
    }

    /// All facts about the values of one attribute.
    fn state_all(
        &mut self,
        report: &mut Report,
        attribute: Key<'_>,
        node: Node<'_>,
        stated: &mut BTreeSet<(String, String)>,
    ) {
        let wanted = format!("tables such as [facts.{}.\"value\"]", attribute.text);
        for (value, facts) in node.entries(report, &wanted).unwrap_or_default() {
            let at = (value.place, value.text);
            let Some(normal) = self.normal(report, attribute.text, at) else { continue };
            if !stated.insert((attribute.text.to_owned(), normal.clone())) {
                let message = format!("facts about this `{}` are stated twice", attribute.text);
                let fix = "join both tables";
                report.private_error("duplicate-name", value.place, message, fix);
                continue;
            }
            self.state(report, (attribute.text, &normal), facts);
        }
    }

    /// The facts about one value.
    fn state(&mut self, report: &mut Report, about: (&str, &str), node: Node<'_>) {
        let wanted = "a table of facts such as { category = \"A\" }";
        for (name, value) in node.entries(report, wanted).unwrap_or_default() {
            let text = value.text(report, "a text such as \"A\"");
            let fine = names::check(report, name, "fact")
                && self.fact(report, (about.0, name.text), name.place);
            if let Some(text) = text.filter(|_| fine) {
                // The source was claimed just now, so nobody else owns the name.
                let _ = self.facts.state(about, name.text, text);
            }
        }
    }

    /// Takes a name as a fact about an attribute, unless it is more than that.
    fn fact(&mut self, report: &mut Report, (attribute, name): (&str, &str), at: Place) -> bool {
        let taken = match name {
            "ip" => Some("`ip` is always the caller's address"),
            PERSON if self.person.is_some() => Some("`person` is derived from a taxpayer number"),
            _ => None,
        };
        if let Some(message) = taken {
            report.error("two-sources", at, message, "give the fact another name");
            return false;
        }
        self.claim(report, (attribute, name), at)
    }

    /// Makes an attribute the one source of a name.
    fn claim(&mut self, report: &mut Report, (attribute, name): (&str, &str), at: Place) -> bool {
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

fn private(report: &mut Report, key: Key<'_>, node: Node<'_>, of: &mut Attribute) {
    let Some(private) = node.flag(report) else { return };
    if !private && matches!(key.text, "session" | "token") {
        let message = format!("`{}` lets whoever sees it act as the caller", key.text);
        return report.error("always-private", node.place, message, "remove private = false");
    }
    of.private = private;
}

const KINDS: [(&str, Kind); 4] = [
    ("text", Kind::Text),
    ("caseless", Kind::Caseless),
    ("ip", Kind::Ip),
    ("cpf_cnpj", Kind::CpfCnpj),
];
