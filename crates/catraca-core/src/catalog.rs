//! The catalog: the validated, immutable configuration of policies, gates, lists, facts and routes.
//!
//! Only `catalog::read` builds it. Must not hold counters or secrets.

mod attribute_names;
pub mod build;
mod codes;
mod derived_name;
pub mod diagnostic;
mod gate_attributes;
mod http_route;
mod name_map;
mod policy_groups;
pub mod read;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::address::AddressRange;
use crate::condition::ConditionCost;
use crate::facts::Facts;
use crate::json_path::JsonPath;
use crate::lists::{AccessListEntry, Lists};
use crate::lock::LockTerms;
use crate::policy::{KeySpec, Name, Policy, PolicyId};
use crate::select::CHAIN_MAX;

pub use attribute_names::UnknownAttribute;
pub use codes::CODES;
pub use derived_name::DerivedName;
pub use gate_attributes::{GateAttribute, gate_attributes};
pub use http_route::{
    AttributeSource, CertificateField, GateMap, PartsCost, RequiredPart, Route, RouteCost,
    RouteCostTerm, RouteGate,
};
pub use name_map::NameMap;
pub use policy_groups::UnknownGroup;

/// All configuration that decisions depend on.
#[derive(Clone, Debug)]
pub struct Catalog {
    /// A hash of the text it was read from, and of the variables that decisions depend on.
    pub revision: Name,
    /// All policies, in file order.
    pub policies: Vec<Policy>,
    /// Gates by name. Every policy is also a gate of its own name.
    pub gates: NameMap<Gate>,
    /// The names of the gates that the catalog declares, in file order.
    pub gate_names: Vec<Name>,
    /// The policy that decides for undeclared gates.
    pub default: Option<PolicyId>,
    /// Whether a check of an undeclared gate is refused in spite of `default`, which then decides
    /// only for requests without a route.
    pub denies_unlisted: bool,
    /// The built-in and declared attributes, by name.
    pub attributes: BTreeMap<Name, Attribute>,
    /// The kinds of `attributes`, which every check looks up.
    attribute_kinds: NameMap<AttributeKind>,
    /// Facts about values of attributes.
    pub facts: Facts,
    /// The allowlist and the blocklist, indexed for lookups.
    pub lists: Lists,
    /// The entries of the allowlist, for display.
    pub allowlist: Vec<AccessListEntry>,
    /// The entries of the blocklist, for display.
    pub blocklist: Vec<AccessListEntry>,
    /// Routes of HTTP requests to gates; the first match wins.
    pub routes: Vec<Route>,
    /// How addresses and paths of requests are read.
    pub network: Network,
    /// The language of times in messages.
    pub language: Language,
    /// The durations of locks, and their durability.
    pub locks: LockTerms,
    /// How much of an outcome the ban rules can read.
    pub settle: SettleTerms,
    /// The fields of outcome bodies that have a cost, of all policies, each once.
    pub cost_paths: Arc<[JsonPath]>,
    /// The cost of evaluating all ban rules of a gate, of the gate where it is highest.
    pub rule_cost: ConditionCost,
    /// The attribute by whose values keys are distributed over the servers of a store, if
    /// `[store] shard_by` is set.
    pub shard_by: Option<Name>,
}

/// An ordered set of policies that are decided together, in one all-or-nothing step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    /// The gate's name.
    pub name: Name,
    /// Its policies, in order.
    pub policies: Vec<PolicyId>,
}

/// The configuration of one attribute.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Attribute {
    /// How its values are normalised.
    pub kind: AttributeKind,
    /// Whether values are replaced by pseudonyms before they are stored or shown.
    pub private: bool,
}

/// How the values of an attribute are normalised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum AttributeKind {
    /// Not changed.
    #[default]
    Text,
    /// Trimmed and converted to lower case.
    Caseless,
    /// An IP address; IPv6 is reduced to its network.
    Ip,
    /// A Brazilian taxpayer number (CPF or CNPJ); `person` is derived from it.
    CpfCnpj,
    /// The same, and a number with wrong check digits is refused.
    CheckedCpfCnpj,
    /// A key of Pix; `key_type` is derived from it.
    PixKey,
}

/// How addresses and paths of requests are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// The prefix length by which IPv6 callers are counted.
    pub ipv6_prefix: u8,
    /// The proxies whose forwarding headers are trusted.
    pub trusted_proxies: Vec<AddressRange>,
    /// Whether routes distinguish `/login` from `/LOGIN`.
    pub path_case: PathCase,
    /// The meaning of `%2f` in a path.
    pub encoded_slash: EncodedSlash,
}

/// Whether routes distinguish upper case from lower case. Must be set as the upstream does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum PathCase {
    /// `"sensitive"`
    #[default]
    Sensitive,
    /// `"insensitive"`
    Insensitive,
}

/// The meaning of an encoded slash in a path. Must be set as the upstream reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EncodedSlash {
    /// `"reject"`: the path is ambiguous, and the request is refused.
    #[default]
    Reject,
    /// `"separator"`: the same as `/`.
    Separator,
    /// `"literal"`: a character of its segment.
    Literal,
}

/// The language of times in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Language {
    /// `en`
    #[default]
    English,
    /// `pt`
    Portuguese,
}

/// How much of an outcome the ban rules can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettleTerms {
    /// The largest body that rules read, in bytes; a larger one is null to them.
    pub body_bytes_max: usize,
}

impl Default for Network {
    fn default() -> Self {
        Self {
            ipv6_prefix: 64,
            trusted_proxies: Vec::new(),
            path_case: PathCase::default(),
            encoded_slash: EncodedSlash::default(),
        }
    }
}

impl Default for SettleTerms {
    fn default() -> Self {
        Self { body_bytes_max: 64 * 1024 }
    }
}

impl Catalog {
    /// Reads a catalog from one text, without included files and variables. Sections that configure
    /// a process are not checked.
    pub fn parse(text: &str) -> Result<Self, diagnostic::Diagnostics> {
        let mut none = |name: &str| Err(format!("`{name}` cannot be included in a text"));
        read::read("catalog", text, &mut none, &|_| None).map(|reading| reading.catalog)
    }

    /// A builder, for a program that has its policies in code.
    pub fn builder() -> build::CatalogBuilder {
        build::CatalogBuilder::default()
    }

    /// The policy with this index.
    pub fn policy(&self, id: PolicyId) -> &Policy {
        &self.policies[usize::from(id.0)]
    }

    /// A policy, and those that replace it by `otherwise` when it does not apply.
    pub(crate) fn fallback_chain(&self, first: PolicyId) -> impl Iterator<Item = &Policy> {
        let next = |policy: &&Policy| policy.otherwise.map(|next| self.policy(next));
        std::iter::successors(Some(self.policy(first)), next).take(CHAIN_MAX + 1)
    }

    /// The policies that may decide for a gate, those of `otherwise` included. For an unknown gate
    /// the default policy.
    pub fn policies_of_gate(&self, gate: &str) -> impl Iterator<Item = &Policy> {
        let default = self.default.as_slice();
        let policies = self.gates.get(gate).map_or(default, |gate| &gate.policies[..]);
        policies.iter().flat_map(|id| self.fallback_chain(*id))
    }

    /// A policy by name.
    pub fn find(&self, name: &str) -> Option<(PolicyId, &Policy)> {
        let at = self.policies.iter().position(|policy| &*policy.name == name)?;
        Some((PolicyId(at as u16), &self.policies[at]))
    }

    /// The gate or policy that was probably meant by an unknown name.
    pub fn nearest_gate(&self, name: &str) -> Option<&str> {
        let policies = self.policies.iter().map(|policy| &*policy.name);
        let known: Vec<&str> = self.gate_names.iter().map(|name| &**name).chain(policies).collect();
        read::nearest(name, &known)
    }

    /// Whether an attribute's values are replaced by pseudonyms before they are stored or shown.
    pub fn is_private(&self, attribute: &str) -> bool {
        self.attributes.get(attribute).is_some_and(|attribute| attribute.private)
    }

    /// Whether callers send an attribute of this name: a policy counts by it, or it is declared. A
    /// fact of that name must not be added, because requests that send a fact are refused.
    pub fn is_caller_attribute(&self, name: &str) -> bool {
        let is_key_part = |key: &KeySpec| match key {
            KeySpec::By(parts) => parts.iter().flatten().any(|own| **own == *name),
            KeySpec::Each(names) => names.iter().any(|own| **own == *name),
        };
        let is_caller_name = name == "ip"
            || self.attributes.contains_key(name)
            || self.policies.iter().any(|policy| is_key_part(&policy.key_spec));
        // A declared attribute that is a fact of the catalog is not sent by callers.
        is_caller_name && self.facts.source(name).is_none()
    }

    /// How an attribute's values are normalised.
    #[inline]
    pub fn attribute_kind(&self, attribute: &str) -> AttributeKind {
        self.attribute_kinds.get(attribute).copied().unwrap_or(AttributeKind::Text)
    }
}
