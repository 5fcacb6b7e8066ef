//! Routes, attributes, list entries and kinds of locks.

#![expect(clippy::disallowed_types, reason = "users of the library have the types of std")]

use std::time::{Duration, SystemTime};

use super::table::{Table, keyword, texts};
use crate::catalog::AttributeKind;
use crate::catalog::read::KINDS;
use crate::lock::terms::VersionPolicy;
use crate::time::Time;

/// The gate of HTTP requests that match a method and a path: a `[[route]]` of a catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteBuilder {
    pub(super) table: Table,
}

/// Gates by the value of an attribute: the `gate` of a route that is a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateMapBuilder {
    table: Table,
}

/// The units of a request that parts of it say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartsCostBuilder {
    table: Table,
}

/// How the values of an attribute are normalised and shown: an `[attribute.NAME]` of a catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributeBuilder {
    pub(super) name: String,
    pub(super) table: Table,
}

/// An entry of the allowlist or the blocklist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListEntryBuilder {
    pub(super) table: Table,
}

/// How long the leases of one kind of lock last: a `[locks.kind.NAME]` of a catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockKindBuilder {
    pub(super) name: String,
    pub(super) table: Table,
}

impl RouteBuilder {
    /// Requests that match an optional method and a path, such as `POST /api/orders/**`, pass this
    /// gate.
    pub fn new(pattern: &str, gate: &str) -> Self {
        let mut table = Table::default();
        table.set("match", pattern);
        table.set("gate", gate);
        Self { table }
    }

    /// Requests that match a method and a path pass the gate that a map chooses by a value.
    pub fn with_gate_map(pattern: &str, map: GateMapBuilder) -> Self {
        let mut table = Table::default();
        table.set("match", pattern);
        table.set("gate", map.table);
        Self { table }
    }

    /// Reads an attribute from a part of the request: `header:NAME`, `cookie:NAME`, `query:NAME`,
    /// `path:N`, `body:path.to.field`, `jwt:CLAIM`, `certificate:subject` or `const:TEXT`.
    #[must_use]
    pub fn set(mut self, attribute: &str, source: &str) -> Self {
        self.table.set_entry("set", attribute, source);
        self
    }

    /// The part of the request that is the reference of its check.
    #[must_use]
    pub fn reference(mut self, source: &str) -> Self {
        self.table.set("ref", source);
        self
    }

    /// Every request costs this many units. The costs of several calls are added up, here and in
    /// the methods below.
    #[must_use]
    pub fn cost(mut self, units: i64) -> Self {
        self.table.push("cost", units);
        self
    }

    /// The part of the request that has its cost, such as `body:max_tokens`. Of several parts, such
    /// as `body:a|body:b`, the first that is present counts.
    #[must_use]
    pub fn cost_from(mut self, source: &str) -> Self {
        self.table.push("cost", source);
        self
    }

    /// Like [`Self::cost_from`], with the units of a request without such a part.
    #[must_use]
    pub fn cost_from_or(mut self, source: &str, default: i64) -> Self {
        let mut cost = Table::default();
        cost.set("from", source);
        cost.set("default", default);
        self.table.push("cost", cost);
        self
    }

    /// Like [`Self::cost_from`], with further terms.
    #[must_use]
    pub fn cost_of_parts(mut self, cost: PartsCostBuilder) -> Self {
        self.table.push("cost", cost.table);
        self
    }

    /// A request costs one unit for each such number of bytes of its body.
    #[must_use]
    pub fn cost_by_bytes(mut self, bytes_per_unit: i64) -> Self {
        let mut cost = Table::default();
        cost.set("bytes_per_unit", bytes_per_unit);
        self.table.push("cost", cost);
        self
    }

    /// Only limits and blocks decide: the allowlist and the blocklist are skipped.
    #[must_use]
    pub fn without_lists(mut self) -> Self {
        self.table.set("lists", false);
        self
    }

    /// A request in which one part is `true`, such as `body:stream`, is refused unless another part
    /// is `true` too, such as `body:stream_options.include_usage`.
    #[must_use]
    pub fn require(mut self, when: &str, part: &str) -> Self {
        self.table.set_entry("require", when, part);
        self
    }

    /// A server that a proxy forwards the request to. Can be called several times.
    #[must_use]
    pub fn upstream(mut self, url: &str) -> Self {
        self.table.push("upstream", url);
        self
    }
}

impl PartsCostBuilder {
    /// Units that a part of the request says, or the first of several parts that is present, such
    /// as `body:a|body:b`.
    pub fn from_parts(source: &str) -> Self {
        let mut table = Table::default();
        table.set("from", source);
        Self { table }
    }

    /// The units of a request without such a part.
    #[must_use]
    pub fn or(mut self, units: i64) -> Self {
        self.table.set("default", units);
        self
    }

    /// Of several parts the largest counts, not the first.
    #[must_use]
    pub fn largest(mut self) -> Self {
        self.table.set("largest", true);
        self
    }

    /// Multiplies the units by a part of the request, such as `body:n`, if it is present.
    #[must_use]
    pub fn times(mut self, source: &str) -> Self {
        self.table.set("times", source);
        self
    }
}

impl GateMapBuilder {
    /// Chooses by the value of an attribute that the route sets, or by a name that is derived from
    /// it.
    pub fn by(name: &str) -> Self {
        let mut table = Table::default();
        table.set("by", name);
        table.set("map", Table::default());
        Self { table }
    }

    /// The gate of a value.
    #[must_use]
    pub fn gate(mut self, value: &str, gate: &str) -> Self {
        self.table.set_entry("map", value, gate);
        self
    }

    /// The gate of requests without a value.
    #[must_use]
    pub fn absent(mut self, gate: &str) -> Self {
        self.table.set("absent", gate);
        self
    }

    /// The gate of all other values.
    #[must_use]
    pub fn default_gate(mut self, gate: &str) -> Self {
        self.table.set("default", gate);
        self
    }
}

impl AttributeBuilder {
    /// An attribute of this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), table: Table::default() }
    }

    /// How its values are normalised.
    #[must_use]
    pub fn kind(mut self, kind: AttributeKind) -> Self {
        if kind == AttributeKind::CheckedCpfCnpj {
            return self.kind(AttributeKind::CpfCnpj).check_digits();
        }
        self.table.set("kind", keyword(&KINDS, &kind));
        self
    }

    /// Values whose check digits are wrong are refused; for taxpayer numbers.
    #[must_use]
    pub fn check_digits(mut self) -> Self {
        self.table.set("check_digits", true);
        self
    }

    /// Its values are stored and shown only as pseudonyms.
    #[must_use]
    pub fn private(mut self) -> Self {
        self.table.set("private", true);
        self
    }

    /// The names of facts that may be set for its values at run time.
    #[must_use]
    pub fn facts<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.table.set("facts", texts(names));
        self
    }
}

impl ListEntryBuilder {
    /// An address, or a range of them such as `203.0.113.0/24`.
    pub fn range(range: impl ToString) -> Self {
        let mut table = Table::default();
        table.set("range", range.to_string());
        Self { table }
    }

    /// A value of an attribute.
    pub fn value(attribute: &str, value: &str) -> Self {
        let mut table = Table::default();
        table.set("attribute", attribute);
        table.set("value", value);
        Self { table }
    }

    /// The only namespace in which the entry applies; without it, the entry applies in all.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.table.set("namespace", namespace);
        self
    }

    /// A text for operators.
    #[must_use]
    pub fn reason(mut self, reason: &str) -> Self {
        self.table.set("reason", reason);
        self
    }

    /// When the entry expires.
    #[must_use]
    pub fn until(mut self, until: SystemTime) -> Self {
        self.table.set("until", Time::from(until).to_rfc3339());
        self
    }
}

impl LockKindBuilder {
    /// A kind of this name; `default` is for kinds without a table.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), table: Table::default() }
    }

    /// The TTL of a request that has none.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.table.set("ttl", ttl);
        self
    }

    /// The longest TTL that a request may have.
    #[must_use]
    pub fn ttl_max(mut self, ttl_max: Duration) -> Self {
        self.table.set("ttl_max", ttl_max);
        self
    }

    /// The longest total duration of a lease with renewals.
    #[must_use]
    pub fn hold_max(mut self, hold_max: Duration) -> Self {
        self.table.set("hold_max", hold_max);
        self
    }

    /// Whether the version of a lock may go down.
    #[must_use]
    pub fn version_policy(mut self, policy: VersionPolicy) -> Self {
        self.table.set("version_policy", keyword(&VersionPolicy::WORDS, &policy));
        self
    }

    /// Whether nothing of this kind is granted for a while after a failover of a shared store.
    #[must_use]
    pub fn failover_grace(mut self, grace: bool) -> Self {
        self.table.set("failover_grace", grace);
        self
    }
}
