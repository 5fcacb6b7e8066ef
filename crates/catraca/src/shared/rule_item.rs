//! A list entry, a fact, a mode or an epoch, as nodes without shared records share it through the
//! store: under a digest, and encrypted.

use catraca_core::address::AddressRange;
use catraca_core::digest::{Digester, Domain};
use catraca_core::lists::{AccessListEntry, ListTarget};
use catraca_core::policy::Mode;
use catraca_core::time::Time;
use serde_json::{Value, json};

use crate::records::{
    AttributeValue, ListName, PolicyReset, RecordKind, RestoredFact, RestoredItem,
};

/// The digest under which the store has a rule.
pub(super) type RuleName = Vec<u8>;

/// One rule that an operator made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RuleItem {
    List(ListName, AccessListEntry),
    Fact(RestoredFact),
    Mode(String, Mode),
    Reset(PolicyReset),
}

impl RuleItem {
    /// The rule of an item of the records; nothing for blocks and debts.
    pub fn from_restored(item: RestoredItem) -> Option<Self> {
        match item {
            RestoredItem::List(list, entry) => Some(Self::List(list, entry)),
            RestoredItem::Fact(fact) => Some(Self::Fact(fact)),
            RestoredItem::Mode(policy, mode, _) => Some(Self::Mode(policy, mode)),
            RestoredItem::ResetPolicy(reset) => Some(Self::Reset(reset)),
            _ => None,
        }
    }

    pub fn to_restored(&self) -> RestoredItem {
        match self.clone() {
            Self::List(list, entry) => RestoredItem::List(list, entry),
            Self::Fact(fact) => RestoredItem::Fact(fact),
            // Of two modes the stamp in the store decides.
            Self::Mode(policy, mode) => RestoredItem::Mode(policy, mode, Time::ZERO),
            Self::Reset(reset) => RestoredItem::ResetPolicy(reset),
        }
    }

    /// The record that adds the rule to the records of a node.
    pub fn to_record(&self) -> RecordKind {
        match self.clone() {
            Self::List(list, entry) => RecordKind::List(list, entry),
            Self::Fact(RestoredFact { namespace, about, name, fact }) => {
                RecordKind::SetFacts { namespace, about, facts: vec![(name, fact)] }
            }
            Self::Mode(policy, mode) => RecordKind::Mode(policy, Some(mode)),
            Self::Reset(reset) => RecordKind::ResetPolicy(reset),
        }
    }

    /// The record that removes it; an epoch is never removed. All facts about a value are removed
    /// together: the others must be added again.
    pub fn to_removal(&self) -> Option<RecordKind> {
        match self.clone() {
            Self::List(list, entry) => Some(RecordKind::Unlist(list, entry)),
            Self::Fact(RestoredFact { namespace, about, .. }) => {
                Some(RecordKind::ForgetFacts { namespace, about })
            }
            Self::Mode(policy, _) => Some(RecordKind::Mode(policy, None)),
            Self::Reset(_) => None,
        }
    }

    /// Whether it is a fact about this value, in this namespace alone or in all.
    pub fn is_fact_about(&self, namespace: &Option<String>, about: &AttributeValue) -> bool {
        matches!(self, Self::Fact(fact) if fact.namespace == *namespace && fact.about == *about)
    }

    pub fn name(&self, digester: &Digester) -> RuleName {
        let parts: [&str; 5] = match self {
            Self::List(list, entry) => {
                let namespace = entry.namespace.as_deref().unwrap_or_default();
                match &entry.target {
                    ListTarget::Range(range) => {
                        return name_of(
                            digester,
                            &["list", list.as_str(), namespace, "", &range.to_string()],
                        );
                    }
                    ListTarget::Value { attribute, value } => {
                        ["list", list.as_str(), namespace, attribute, value]
                    }
                }
            }
            Self::Fact(RestoredFact { namespace, about, name, .. }) => {
                let namespace = namespace.as_deref().unwrap_or_default();
                ["fact", namespace, &about.attribute, &about.value, name]
            }
            Self::Mode(policy, _) => ["mode", policy, "", "", ""],
            Self::Reset(reset) => ["reset", &reset.policy, "", "", ""],
        };
        name_of(digester, &parts)
    }

    pub fn to_json(&self) -> Value {
        match self {
            Self::List(list, entry) => {
                let mut body = json!({
                    "list": list.as_str(),
                    "namespace": entry.namespace,
                    "reason": entry.reason,
                    "until": entry.until.map(Time::micros),
                });
                match &entry.target {
                    ListTarget::Range(range) => body["range"] = json!(range.to_string()),
                    ListTarget::Value { attribute, value } => {
                        body["attribute"] = json!(attribute);
                        body["value"] = json!(value);
                    }
                }
                body
            }
            Self::Fact(RestoredFact { namespace, about, name, fact }) => json!({
                "namespace": namespace,
                "attribute": about.attribute,
                "value": about.value,
                "name": name,
                "fact": fact,
            }),
            Self::Mode(policy, mode) => json!({ "policy": policy, "mode": mode.as_str() }),
            Self::Reset(reset) => json!({ "policy": reset.policy, "epoch": reset.epoch.micros() }),
        }
    }

    /// Decodes a rule; `None` if another version wrote it.
    pub fn from_json(body: &Value) -> Option<Self> {
        let text = |name: &str| body[name].as_str().map(str::to_owned);
        if let Some(list) = body["list"].as_str() {
            let lists = [ListName::Allow, ListName::Block];
            let list = lists.into_iter().find(|name| name.as_str() == list)?;
            let target = match body["range"].as_str() {
                Some(range) => ListTarget::Range(AddressRange::parse(range).ok()?),
                None => ListTarget::Value { attribute: text("attribute")?, value: text("value")? },
            };
            let until = body["until"].as_i64().map(Time::from_micros);
            let namespace = text("namespace");
            let entry = AccessListEntry { namespace, target, reason: text("reason"), until };
            return Some(Self::List(list, entry));
        }
        if let Some(fact) = text("fact") {
            let about = AttributeValue { attribute: text("attribute")?, value: text("value")? };
            let namespace = text("namespace");
            return Some(Self::Fact(RestoredFact { namespace, about, name: text("name")?, fact }));
        }
        let policy = text("policy")?;
        if let Some(epoch) = body["epoch"].as_i64() {
            return Some(Self::Reset(PolicyReset { policy, epoch: Time::from_micros(epoch) }));
        }
        let word = body["mode"].as_str()?;
        let modes = [Mode::Enforce, Mode::Shadow, Mode::Off];
        Some(Self::Mode(policy, modes.into_iter().find(|mode| mode.as_str() == word)?))
    }
}

fn name_of(digester: &Digester, parts: &[&str]) -> RuleName {
    let mut hasher = digester.start(Domain::Rule);
    for part in parts {
        hasher.part(part.as_bytes());
    }
    hasher.finish().to_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use catraca_core::digest::Secret;

    use super::*;

    #[test]
    fn rules_are_read_as_they_were_written_and_have_names_of_their_own() {
        let digester = Digester::new(&Secret::from_bytes([7; 32]));
        let entry = |target| AccessListEntry {
            namespace: Some("shop".to_owned()),
            target,
            reason: Some("scan".to_owned()),
            until: Some(Time::from_micros(9)),
        };
        let value = |value: &str| AttributeValue {
            attribute: "customer".to_owned(),
            value: value.to_owned(),
        };
        let range = ListTarget::Range(AddressRange::parse("192.0.2.0/24").unwrap());
        let about = value("ana");
        let target =
            ListTarget::Value { attribute: "customer".to_owned(), value: "ana".to_owned() };
        let fact = RestoredFact {
            namespace: None,
            about,
            name: "plan".to_owned(),
            fact: "gold".to_owned(),
        };
        let epoch = Time::from_micros(5);
        let rules = [
            RuleItem::List(ListName::Block, entry(range)),
            RuleItem::List(ListName::Allow, entry(target)),
            RuleItem::Fact(fact),
            RuleItem::Mode("login".to_owned(), Mode::Off),
            RuleItem::Reset(PolicyReset { policy: "login".to_owned(), epoch }),
        ];
        let mut names: Vec<RuleName> = rules.iter().map(|rule| rule.name(&digester)).collect();
        for rule in &rules {
            assert_eq!(RuleItem::from_json(&rule.to_json()).as_ref(), Some(rule));
        }
        names.sort();
        names.dedup();
        assert_eq!(names.len(), rules.len());
        assert_eq!(RuleItem::from_json(&json!({"policy": "x", "mode": "loud"})), None);
    }
}
