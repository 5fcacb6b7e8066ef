//! Builds a catalog in code, with everything that a file can contain.
//!
//! The builder writes the catalog as TOML and hands it to `catalog::read`, so both have the same
//! rules, and an error has the same code and text. Must not check anything itself.

mod consequence;
mod error;
mod policy;
mod sections;
mod shared_fields;
mod table;
mod text;

use std::time::Duration;

use super::read::{ENCODED_SLASHES, LANGUAGES, PATH_CASES, UNLISTED};
use super::{Catalog, EncodedSlash, Language, PathCase};
use crate::lock::Durability;
use table::{Table, keyword, texts};
use text::CatalogText;

pub use consequence::{BanBuilder, BlockLength, Escalation, WatchBuilder};
pub use error::{BuildError, BuildMistake};
pub use policy::PolicyBuilder;
pub use sections::{
    AttributeBuilder, GateMapBuilder, ListEntryBuilder, LockKindBuilder, PartsCostBuilder,
    RouteBuilder,
};
pub use shared_fields::TierBuilder;

/// Builds a [`Catalog`] in code. A field that is set twice has its last value.
///
/// ```
/// use std::time::Duration;
///
/// use catraca_core::catalog::Catalog;
/// use catraca_core::catalog::build::PolicyBuilder;
///
/// let minute = Duration::from_secs(60);
/// let catalog = Catalog::builder()
///     .policy(PolicyBuilder::new("login").by(["ip"]).window(10, 15 * minute).block(30 * minute))
///     .policy(PolicyBuilder::new("api").by(["tenant"]).bucket(100, 10, minute))
///     .gate("both", ["login", "api"])
///     .build()?;
/// assert_eq!(catalog.policies.len(), 2);
///
/// let wrong = Catalog::builder().policy(PolicyBuilder::new("login").by(["ip"]).window(0, minute));
/// assert!(wrong.build().is_ok(), "a limit of zero denies all requests");
/// let wrong = Catalog::builder().policy(PolicyBuilder::new("login").window(1, minute));
/// let error = wrong.build().unwrap_err();
/// assert_eq!((&*error.mistakes[0].section, error.mistakes[0].code), ("policy `login`", "no-key"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct CatalogBuilder {
    root: Table,
    network: Table,
    settle: Table,
    store: Table,
    locks: Table,
    lock_kinds: Vec<LockKindBuilder>,
    attributes: Vec<AttributeBuilder>,
    facts: Vec<(String, String, Table)>,
    policies: Vec<PolicyBuilder>,
    gates: Vec<(String, Table)>,
    routes: Vec<RouteBuilder>,
    allowlist: Vec<ListEntryBuilder>,
    blocklist: Vec<ListEntryBuilder>,
}

impl CatalogBuilder {
    /// Adds a policy.
    #[must_use]
    pub fn policy(mut self, policy: PolicyBuilder) -> Self {
        self.policies.push(policy);
        self
    }

    /// Adds a gate: policies that are passed together, in this order.
    #[must_use]
    pub fn gate<T: Into<String>>(
        mut self,
        name: impl Into<String>,
        policies: impl IntoIterator<Item = T>,
    ) -> Self {
        let mut table = Table::default();
        table.set("policies", texts(policies));
        self.gates.push((name.into(), table));
        self
    }

    /// Adds a route; the first that matches a request applies.
    #[must_use]
    pub fn route(mut self, route: RouteBuilder) -> Self {
        self.routes.push(route);
        self
    }

    /// Adds an attribute.
    #[must_use]
    pub fn attribute(mut self, attribute: AttributeBuilder) -> Self {
        self.attributes.push(attribute);
        self
    }

    /// Adds a fact about a value of an attribute, such as the plan of a token.
    #[must_use]
    pub fn fact(mut self, attribute: &str, of: &str, name: &str, value: &str) -> Self {
        let found = self.facts.iter().position(|(own, at, _)| own == attribute && at == of);
        let at = found.unwrap_or_else(|| {
            self.facts.push((attribute.to_owned(), of.to_owned(), Table::default()));
            self.facts.len() - 1
        });
        self.facts[at].2.set(name, value);
        self
    }

    /// Adds callers that always pass.
    #[must_use]
    pub fn allow(mut self, entry: ListEntryBuilder) -> Self {
        self.allowlist.push(entry);
        self
    }

    /// Adds callers that never pass.
    #[must_use]
    pub fn deny(mut self, entry: ListEntryBuilder) -> Self {
        self.blocklist.push(entry);
        self
    }

    /// The policy for gates that the catalog does not declare.
    #[must_use]
    pub fn default_policy(mut self, policy: &str) -> Self {
        self.root.set("default", policy);
        self
    }

    /// Refuses checks of gates that the catalog does not declare, in spite of a default policy.
    #[must_use]
    pub fn refuse_undeclared_gates(mut self) -> Self {
        self.root.set("unlisted", keyword(&UNLISTED, &true));
        self
    }

    /// The language of durations in messages.
    #[must_use]
    pub fn language(mut self, language: Language) -> Self {
        self.root.set("language", keyword(&LANGUAGES, &language));
        self
    }

    /// The prefix by which IPv6 callers are counted.
    #[must_use]
    pub fn ipv6_prefix(mut self, bits: u8) -> Self {
        self.network.set("ipv6_prefix", i64::from(bits));
        self
    }

    /// The addresses and ranges whose forwarding headers are trusted.
    #[must_use]
    pub fn trusted_proxies<T: ToString>(mut self, ranges: impl IntoIterator<Item = T>) -> Self {
        let ranges = ranges.into_iter().map(|range| range.to_string());
        self.network.set("trusted_proxies", texts(ranges));
        self
    }

    /// Whether routes distinguish `/login` from `/LOGIN`.
    #[must_use]
    pub fn path_case(mut self, case: PathCase) -> Self {
        self.network.set("path_case", keyword(&PATH_CASES, &case));
        self
    }

    /// The meaning of `%2f` in a path.
    #[must_use]
    pub fn encoded_slash(mut self, meaning: EncodedSlash) -> Self {
        self.network.set("encoded_slash", keyword(&ENCODED_SLASHES, &meaning));
        self
    }

    /// The largest body that ban rules read, in bytes.
    #[must_use]
    pub fn body_bytes_max(mut self, bytes: i64) -> Self {
        self.settle.set("body_bytes_max", bytes);
        self
    }

    /// The attribute by whose values keys are distributed over the servers of a shared store.
    #[must_use]
    pub fn shard_by(mut self, attribute: &str) -> Self {
        self.store.set("shard_by", attribute);
        self
    }

    /// Whether a grant of a lock is on disk before its response.
    #[must_use]
    pub fn lock_durability(mut self, durability: Durability) -> Self {
        self.locks.set("durability", keyword(&Durability::WORDS, &durability));
        self
    }

    /// How many replicas of a shared Redis must acknowledge a grant of a lock.
    #[must_use]
    pub fn lock_replicas(mut self, replicas: i64) -> Self {
        self.locks.set("replicas", replicas);
        self
    }

    /// The longest slot.
    #[must_use]
    pub fn slot_max(mut self, longest: Duration) -> Self {
        self.locks.set("slot_max", longest);
        self
    }

    /// The longest time that a caller may wait for a lock.
    #[must_use]
    pub fn lock_wait_max(mut self, longest: Duration) -> Self {
        self.locks.set("wait_max", longest);
        self
    }

    /// Adds a kind of lock.
    #[must_use]
    pub fn lock_kind(mut self, kind: LockKindBuilder) -> Self {
        self.lock_kinds.push(kind);
        self
    }

    /// Validates everything and builds the catalog.
    pub fn build(&self) -> Result<Catalog, BuildError> {
        let text = self.text();
        Catalog::parse(&text.text).map_err(|diagnostics| BuildError::new(&diagnostics, &text))
    }

    /// The catalog as a TOML file, for a server or for `catraca lint`. [`Catalog::parse`] reads it
    /// to a catalog with the same revision as [`Self::build`].
    pub fn to_toml(&self) -> String {
        self.text().text
    }

    fn text(&self) -> CatalogText {
        let mut text = CatalogText::default();
        text.root(&self.root);
        let sections = [
            ("network", &self.network),
            ("settle", &self.settle),
            ("store", &self.store),
            ("locks", &self.locks),
        ];
        for (name, table) in sections.into_iter().filter(|(_, table)| !table.fields.is_empty()) {
            text.table(&[name], name, table);
        }
        for kind in &self.lock_kinds {
            let owner = format!("lock kind `{}`", kind.name);
            text.table(&["locks", "kind", &kind.name], &owner, &kind.table);
        }
        for attribute in &self.attributes {
            let owner = format!("attribute `{}`", attribute.name);
            text.table(&["attribute", &attribute.name], &owner, &attribute.table);
        }
        for (attribute, value, facts) in &self.facts {
            let owner = format!("facts of `{attribute}`");
            text.table(&["facts", attribute, value], &owner, facts);
        }
        for policy in &self.policies {
            text.table(
                &["policy", &policy.name],
                &format!("policy `{}`", policy.name),
                &policy.table,
            );
        }
        for (name, gate) in &self.gates {
            text.table(&["gate", name], &format!("gate `{name}`"), gate);
        }
        let items = |at: usize, what: &str| format!("{what} {}", at + 1);
        for (at, route) in self.routes.iter().enumerate() {
            text.item("route", &items(at, "route"), &route.table);
        }
        for (at, entry) in self.allowlist.iter().enumerate() {
            text.item("allowlist", &items(at, "allowlist entry"), &entry.table);
        }
        for (at, entry) in self.blocklist.iter().enumerate() {
            text.item("blocklist", &items(at, "blocklist entry"), &entry.table);
        }
        text
    }
}
