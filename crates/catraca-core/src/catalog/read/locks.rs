//! `[locks]`: durations of each kind of lock, and how durable a granted lock is.

use super::names;
use super::node::{LocatedKey, Node, TableFields};
use super::report::Report;
use super::scalar;
use super::section::Sections;
use crate::catalog::ProcessSettings;
use crate::lock::terms::{HOLD_MAX, KINDS_MAX, REPLICAS_MAX, SLOT_MAX, TTL_MAX, WAIT_MAX};
use crate::lock::{Durability, KindTerms, LockTerms, VersionPolicy};
use crate::time::Span;

/// Reads `[locks]`.
pub(super) fn read(
    report: &mut Report,
    sections: &Sections<'_>,
    settings: &ProcessSettings,
) -> LockTerms {
    let mut terms = LockTerms::default();
    let in_redis = is_in_redis(settings);
    let Some((key, node)) = sections.single(report, "locks") else { return terms };
    let known = ["durability", "replicas", "slot_max", "wait_max", "kind"];
    let Some(fields) = TableFields::read(report, key.location, node, "locks section", &known)
    else {
        return terms;
    };
    if let Some(node) = fields.get("durability") {
        terms.durability = scalar::keyword(report, node, &Durability::WORDS).unwrap_or_default();
        if in_redis && terms.durability == Durability::Fsync {
            let message = "locks are in Redis, whose own settings define durability";
            let fix = "remove it: `durability` applies only to locks in this process";
            report.error("locks-elsewhere", node.location, message, fix);
        }
    }
    if let Some(node) = fields.get("replicas") {
        let read = scalar::between(report, node, 0, REPLICAS_MAX);
        terms.replicas = read.and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
        if terms.replicas > 0 && !in_redis {
            let message = "`replicas` needs locks in Redis";
            let fix = "remove it, or set [store] url to a Redis server";
            report.error("locks-elsewhere", node.location, message, fix);
        }
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

/// Whether locks are stored in Redis; `unix` is the URL scheme of a Redis on a Unix socket.
fn is_in_redis(settings: &ProcessSettings) -> bool {
    let url = settings.sections.get("store").and_then(|store| store.get("url")?.as_str());
    let schemes = ["redis", "valkey", "unix"];
    url.is_some_and(|url| schemes.iter().any(|scheme| url.starts_with(scheme)))
}

/// Reads one kind of lock; fields that its table leaves out are taken from `base`.
fn kind(
    report: &mut Report,
    key: LocatedKey<'_>,
    node: Node<'_>,
    base: KindTerms,
) -> Option<KindTerms> {
    let known = ["ttl", "ttl_max", "hold_max", "version_policy", "failover_grace"];
    let fields = TableFields::read(report, key.location, node, "kind of locks", &known)?;
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
