//! The catalog: the immutable, validated set of policies, gates, lists, facts and routes, with a
//! revision.
//!
//! `catalog::read` builds it from text; nothing else may. Must not hold state or secrets.

pub mod diagnostic;
pub mod read;

use std::collections::{BTreeMap, HashMap};

use crate::address::Range;
use crate::condition::Cost;
use crate::facts::Facts;
use crate::lists::{Entry, Lists};
use crate::lock::LockTerms;
use crate::policy::{Name, Policy, PolicyId, Who};

/// Everything that decides, in one immutable value.
#[derive(Clone, Debug)]
pub struct Catalog {
    /// A fingerprint of the text it was read from.
    pub revision: Name,
    /// All policies, in file order.
    pub policies: Vec<Policy>,
    /// Gates by name, single policies included.
    pub gates: HashMap<Name, Gate>,
    /// The names of the gates that the catalog declares, in file order.
    pub gate_names: Vec<Name>,
    /// The policy for gates that nobody declared.
    pub default: Option<PolicyId>,
    /// What is known of attributes, by name.
    pub attributes: BTreeMap<Name, Attribute>,
    /// What is known of their values.
    pub facts: Facts,
    /// Who always passes, and who never does.
    pub lists: Lists,
    /// The entries behind `lists`, for display.
    pub allowlist: Vec<Entry>,
    /// The entries behind `lists`, for display.
    pub blocklist: Vec<Entry>,
    /// Which gate an HTTP request passes, first match first.
    pub routes: Vec<Route>,
    /// How addresses are read.
    pub network: Network,
    /// The language of times in messages.
    pub language: Language,
    /// How long locks last, and how safely they are kept.
    pub locks: LockTerms,
    /// What ban rules see of outcomes.
    pub settle: SettleTerms,
    /// The cost of the ban rules of a gate, for the costliest one.
    pub rule_cost: Cost,
    /// The sections of the process, kept as read for the shells that own them.
    pub settings: Settings,
}

/// An ordered set of policies passed in one all-or-nothing decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    /// The gate's name.
    pub name: Name,
    /// Its policies, in order.
    pub policies: Vec<PolicyId>,
}

/// What is known of one attribute.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Attribute {
    /// How its values are normalised.
    pub kind: Kind,
    /// Whether values are pseudonymised wherever they are kept or shown.
    pub private: bool,
}

/// How the values of an attribute are normalised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Kind {
    /// Taken as it is.
    #[default]
    Text,
    /// Trimmed and in lower case.
    Caseless,
    /// A network address.
    Ip,
    /// A Brazilian taxpayer number; derives `person`.
    CpfCnpj,
}

/// An HTTP-shaped request's way to a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The method, or any.
    pub method: Option<String>,
    /// The path's segments: literals, `*` for one segment, `**` for the rest.
    pub path: Vec<String>,
    /// The gate.
    pub gate: Name,
    /// Attributes taken from the request.
    pub set: Vec<(Name, Pick)>,
    /// Where a proxy sends it.
    pub upstream: Option<String>,
}

/// Where an attribute of a routed request comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pick {
    /// A request header.
    Header(String),
    /// A query parameter.
    Query(String),
    /// A path segment, counted from one.
    Segment(usize),
    /// A fixed text.
    Literal(String),
}

/// How addresses and paths are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// The prefix by which IPv6 callers are counted.
    pub ipv6_prefix: u8,
    /// The proxies whose forwarding headers are believed.
    pub trusted_proxies: Vec<Range>,
    /// Whether routes distinguish `/login` from `/LOGIN`.
    pub path_case: PathCase,
    /// What `%2f` in a path means.
    pub encoded_slash: EncodedSlash,
}

/// Whether routes distinguish upper case from lower case; as the upstream does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum PathCase {
    /// `"sensitive"`
    #[default]
    Sensitive,
    /// `"insensitive"`
    Insensitive,
}

/// What an encoded slash in a path means; as the upstream reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EncodedSlash {
    /// `"reject"`: the path is ambiguous.
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

/// What ban rules see of outcomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettleTerms {
    /// The largest body that rules read, in bytes.
    pub body_bytes_max: usize,
}

/// The sections that belong to the process and not to decisions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// `[server]`, `[store]`, `[records]`, `[auth]`, `[rls]`, `[resp]`, as read.
    pub sections: BTreeMap<String, toml::Table>,
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
    /// Reads a catalog from one text that includes no files and for which no variable is set.
    pub fn parse(text: &str) -> Result<Self, diagnostic::Diagnostics> {
        let mut none = |name: &str| Err(format!("`{name}` cannot be included in a text"));
        read::read("catalog", text, &mut none, &|_| None).map(|reading| reading.catalog)
    }

    /// The policy at a place of this catalog.
    pub fn policy(&self, id: PolicyId) -> &Policy {
        &self.policies[usize::from(id.0)]
    }

    /// A policy by name.
    pub fn find(&self, name: &str) -> Option<(PolicyId, &Policy)> {
        let at = self.policies.iter().position(|policy| &*policy.name == name)?;
        Some((PolicyId(at as u16), &self.policies[at]))
    }

    /// The gate or policy that was probably meant by a name that nobody declared.
    pub fn nearest_gate(&self, name: &str) -> Option<&str> {
        let policies = self.policies.iter().map(|policy| &*policy.name);
        let known: Vec<&str> = self.gate_names.iter().map(|name| &**name).chain(policies).collect();
        read::nearest(name, &known)
    }

    /// The attribute by whose values `[store]` spreads keys over servers, if it names one.
    pub fn shard_by(&self) -> Option<&str> {
        self.settings.sections.get("store")?.get("shard_by")?.as_str()
    }

    /// Whether an attribute's values are pseudonymised wherever they are kept or shown.
    pub fn is_private(&self, attribute: &str) -> bool {
        self.attributes.get(attribute).is_some_and(|known| known.private)
    }

    /// Whether callers send an attribute of this name for a policy to count by, or one that is
    /// described: a fact of that name would shut all of them out.
    pub fn is_sent(&self, name: &str) -> bool {
        let counted = |who: &Who| match who {
            Who::By(parts) => parts.iter().flatten().any(|own| **own == *name),
            Who::Each(names) => names.iter().any(|own| **own == *name),
        };
        let of_callers = name == "ip"
            || self.attributes.contains_key(name)
            || self.policies.iter().any(|policy| counted(&policy.who));
        of_callers && self.facts.source(name).is_none()
    }

    /// How an attribute's values are normalised.
    pub fn kind(&self, attribute: &str) -> Kind {
        self.attributes.get(attribute).map_or(Kind::Text, |known| known.kind)
    }
}
