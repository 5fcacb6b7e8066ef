//! `[locks]`: durations of each kind of lock, and how durable a granted lock is.

use super::scalar;
use super::section::Sections;
use crate::located::{
    DefaultValue, FieldSchema, LocatedKey, Node, Report, TableFields, TableSchema, ValueSchema,
    names, schema::words,
};
use crate::lock::terms::{HOLD_MAX, KINDS_MAX, REPLICAS_MAX, SLOT_MAX, TTL_MAX, WAIT_MAX};
use crate::lock::{Durability, KindTerms, LockTerms, VersionPolicy};
use crate::time::Span;

/// The fields of `[locks]`.
pub(super) static LOCKS: TableSchema = TableSchema {
    name: "locks section",
    fields: &[
        FieldSchema::new(
            "durability",
            ValueSchema::Word(|| words(&Durability::WORDS)),
            "`\"memory\"`, or `\"fsync\"`: every grant is on disk before the response is sent",
        )
        .or(DefaultValue::Text("memory")),
        FieldSchema::new(
            "replicas",
            ValueSchema::Integer { least: 0, most: REPLICAS_MAX },
            "with a shared Redis: how many replicas must acknowledge a grant, renewal or \
             confirmation before the response; otherwise the response is 503 and a grant is undone",
        )
        .or(DefaultValue::Integer(0))
        .after_restart(),
        FieldSchema::new("slot_max", ValueSchema::duration_up_to(SLOT_MAX), "the longest slot")
            .or(DefaultValue::Text("24h")),
        FieldSchema::new(
            "wait_max",
            ValueSchema::duration_up_to(WAIT_MAX),
            "the longest time that a caller may wait for a name",
        )
        .or(DefaultValue::Text("30s")),
        FieldSchema::new(
            "kind",
            ValueSchema::Map(&ValueSchema::Table(&LOCK_KIND)),
            "the durations of each kind of lock",
        ),
    ],
};

/// The fields of `[locks.kind.NAME]`.
pub(super) static LOCK_KIND: TableSchema = TableSchema {
    name: "kind of locks",
    fields: &[
        FieldSchema::new(
            "ttl",
            ValueSchema::duration_up_to(TTL_MAX),
            "the TTL of a request without `ttl_ms`",
        )
        .or(DefaultValue::Absent("appointment 10 s, payment 30 s, resource and `default` 5 s")),
        FieldSchema::new(
            "ttl_max",
            ValueSchema::duration_up_to(TTL_MAX),
            "the longest TTL that a request may have",
        )
        .or(DefaultValue::Text("5m")),
        FieldSchema::new(
            "hold_max",
            ValueSchema::duration_up_to(HOLD_MAX),
            "the longest total duration of a lease with renewals",
        )
        .or(DefaultValue::Text("1h")),
        FieldSchema::new(
            "version_policy",
            ValueSchema::Word(|| words(&VersionPolicy::WORDS)),
            "whether the version of a lock may go down: `\"opaque\"`, or `\"monotonic\"`",
        )
        .or(DefaultValue::Text("opaque")),
        FieldSchema::new(
            "failover_grace",
            ValueSchema::Flag,
            "with a shared store: after a [failover](locks.md#several-nodes) or restart of Redis, \
             or a change of PostgreSQL's timeline, nothing of this kind is granted for `ttl_max`",
        )
        .or(DefaultValue::Absent("`true` for payment, else `false`")),
    ],
};

/// Reads `[locks]`.
pub(super) fn read(report: &mut Report, sections: &Sections<'_>) -> LockTerms {
    let mut terms = LockTerms::default();
    let Some((key, node)) = sections.single(report, "locks") else { return terms };
    let Some(fields) = TableFields::read(report, key.location, node, &LOCKS) else {
        return terms;
    };
    if let Some(node) = fields.get("durability") {
        terms.durability = scalar::keyword(report, node, &Durability::WORDS).unwrap_or_default();
    }
    if let Some(node) = fields.get("replicas") {
        let read = scalar::between(report, node, 0, REPLICAS_MAX);
        terms.replicas = read.and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
    }
    if let Some(span) = fields.get("slot_max").and_then(|node| within(report, node, SLOT_MAX)) {
        terms.slot_max = span;
    }
    if let Some(span) = fields.get("wait_max").and_then(|node| within(report, node, WAIT_MAX)) {
        terms.wait_max = span;
    }
    let wanted = "tables such as [locks.kind.payment]";
    let kinds = fields.get("kind").and_then(|node| node.entries(report, wanted));
    for (at, (key, node)) in kinds.unwrap_or_default().into_iter().enumerate() {
        if at == KINDS_MAX {
            let message = "there are too many kinds of locks";
            let fix = format!("keep at most {KINDS_MAX}: a kind without a table is `default`");
            report.error("too-many-kinds", key.location, message, fix);
            break;
        }
        if names::check_key(report, key, "kind") {
            // A table for `default` changes what later kinds start from.
            let base = terms.kind(key.text);
            if let Some(kind) = kind(report, key, node, base) {
                terms.kinds.insert(key.text.into(), kind);
            }
        }
    }
    terms
}

/// Reads one kind of lock; fields that its table leaves out are taken from `base`.
fn kind(
    report: &mut Report,
    key: LocatedKey<'_>,
    node: Node<'_>,
    base: KindTerms,
) -> Option<KindTerms> {
    let fields = TableFields::read(report, key.location, node, &LOCK_KIND)?;
    let mut kind = base;
    let span = |report: &mut Report, name: &str, most: Span, into: &mut Span| {
        if let Some(read) = fields.get(name).and_then(|node| within(report, node, most)) {
            *into = read;
        }
    };
    span(report, "ttl", TTL_MAX, &mut kind.ttl);
    span(report, "ttl_max", TTL_MAX, &mut kind.ttl_max);
    span(report, "hold_max", HOLD_MAX, &mut kind.hold_max);
    if let Some(node) = fields.get("version_policy") {
        let words = VersionPolicy::WORDS;
        kind.version_policy = scalar::keyword(report, node, &words).unwrap_or_default();
    }
    if let Some(node) = fields.get("failover_grace") {
        kind.failover_grace = node.flag(report).unwrap_or_default();
    }
    if kind.ttl > kind.ttl_max {
        let location = fields.key("ttl").or_else(|| fields.key("ttl_max")).unwrap_or(key.location);
        let message = format!("`ttl` of {} is longer than `ttl_max` of {}", kind.ttl, kind.ttl_max);
        report.error("ttl-above-max", location, message, format!("add ttl_max = \"{}\"", kind.ttl));
    }
    Some(kind)
}

/// A duration of at most `most`.
fn within(report: &mut Report, node: Node<'_>, most: Span) -> Option<Span> {
    let span = scalar::duration(report, node)?;
    if span > most {
        let message = format!("{span} is longer than the longest duration allowed here");
        report.error("too-long-lease", node.location, message, format!("write at most \"{most}\""));
        return None;
    }
    Some(span)
}
