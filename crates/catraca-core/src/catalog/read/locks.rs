//! `[locks]`: how long each kind lasts, and how safely a grant is kept.
//!
//! Must not grant anything.

use super::names;
use super::node::{Fields, Key, Node};
use super::report::Report;
use super::scalar;
use super::section::Sections;
use crate::catalog::Settings;
use crate::lock::terms::{HOLD_MAX, KINDS_MAX, REPLICAS_MAX, SLOT_MAX, TTL_MAX, WAIT_MAX};
use crate::lock::{Durability, KindTerms, LockTerms, VersionPolicy};
use crate::time::Span;

/// Reads `[locks]`.
pub(super) fn read(report: &mut Report, sections: &Sections<'_>, settings: &Settings) -> LockTerms {
    let mut terms = LockTerms::default();
    let in_redis = is_in_redis(settings);
    let Some((key, node)) = sections.single(report, "locks") else { return terms };
    let known = ["durability", "replicas", "slot_max", "wait_max", "kind"];
    let Some(fields) = Fields::read(report, (key.place, node), "locks section", &known) else {
        return terms;
    };
    if let Some(node) = fields.get("durability") {
        terms.durability = scalar::word(report, node, &Durability::WORDS).unwrap_or_default();
        if in_redis && terms.durability == Durability::Fsync {
            let message = "what Redis keeps is as safe as its own settings make it";
            let fix = "leave it out: it is for locks in this process";
            report.error("locks-elsewhere", node.place, message, fix);
        }
    }
    if let Some(node) = fields.get("replicas") {
        let read = scalar::between(report, node, (0, REPLICAS_MAX));
        terms.replicas = read.and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
        if terms.replicas > 0 && !in_redis {
            let message = "only a Redis has replicas that are waited for";
            let fix = "leave it out, or name a Redis in [store] url";
            report.error("locks-elsewhere", node.place, message, fix);
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
            let message = "these are too many kinds of locks";
            let fix = format!("keep at most {KINDS_MAX}: a kind without a table is `default`");
            report.error("too-many-kinds", key.place, message, fix);
            break;
        }
        if names::check(report, key, "kind") {
            let usual = terms.kind(key.text);
            if let Some(kind) = kind(report, (key, node), usual) {
                terms.kinds.insert(key.text.into(), kind);
            }
        }
    }
    terms
}

fn is_in_redis(settings: &Settings) -> bool {
    let url = settings.sections.get("store").and_then(|store| store.get("url")?.as_str());
    let schemes = ["redis", "valkey", "unix"];
    url.is_some_and(|url| schemes.iter().any(|scheme| url.starts_with(scheme)))
}

/// One kind: what its table says, and all else as usual.
fn kind(
    report: &mut Report,
    (key, node): (Key<'_>, Node<'_>),
    usual: KindTerms,
) -> Option<KindTerms> {
    let known = ["ttl", "ttl_max", "hold_max", "version_policy", "failover_grace"];
    let fields = Fields::read(report, (key.place, node), "kind of locks", &known)?;
    let mut kind = usual;
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
        kind.version_policy = scalar::word(report, node, &words).unwrap_or_default();
    }
    if let Some(node) = fields.get("failover_grace") {
        kind.failover_grace = node.flag(report).unwrap_or_default();
    }
    if kind.ttl > kind.ttl_max {
        let place = fields.key("ttl").or_else(|| fields.key("ttl_max")).unwrap_or(key.place);
        let message = format!("`ttl` is {}, and `ttl_max` {}", kind.ttl, kind.ttl_max);
        report.error("ttl-above-max", place, message, format!("add ttl_max = \"{}\"", kind.ttl));
    }
    Some(kind)
}

fn within(report: &mut Report, node: Node<'_>, most: Span) -> Option<Span> {
    let span = scalar::duration(report, node)?;
    if span > most {
        let message = format!("{span} is longer than any lease should last");
        report.error("too-long-lease", node.place, message, format!("write at most \"{most}\""));
        return None;
    }
    Some(span)
}
