//! `bucket`, `window`, `fixed` and `inflight`: how much a policy allows.
//!
//! A policy and each of its tiers has at most one of them. Must not know prices or blocks.

use smallvec::SmallVec;

use super::bounds::{self, UNITS_MAX, WINDOWS_MAX};
use super::node::{Fields, Given, Node};
use super::report::{Place, Report};
use super::scalar;
use crate::limit::{BucketTerms, FixedTerms, InflightTerms, Limit, WindowTerms};
use crate::rate::{Percent, Rate};
use crate::time::Span;

/// The fields that are algorithms.
pub(super) const ALGORITHMS: [&str; 4] = ["bucket", "window", "fixed", "inflight"];

/// What the policy says about all its limits, those of its tiers included.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub margin: Option<Percent>,
    pub aligned: bool,
    pub hold: Span,
}

/// The algorithm that a policy or a tier names first, with the field's place.
pub(super) fn algorithm(fields: &Fields<'_>) -> Option<(&'static str, Place)> {
    let named = ALGORITHMS.into_iter().filter_map(|name| Some((name, fields.key(name)?)));
    named.min_by_key(|(_, place)| *place)
}

/// Reads the limit of a policy or of a tier.
pub(super) fn read(report: &mut Report, fields: &Fields<'_>, shape: Shape) -> Given<Limit> {
    let Some((name, _)) = algorithm(fields) else { return Given::Absent };
    let extra: Vec<_> = ALGORITHMS.into_iter().filter(|other| *other != name).collect();
    for (other, place) in extra.into_iter().filter_map(|other| Some((other, fields.key(other)?))) {
        let message = format!("`{other}` beside `{name}`: a policy counts in one way");
        let fix = format!("keep one, or make two policies and a gate of both; remove `{other}`");
        report.error("two-algorithms", place, message, fix);
    }
    fields.given(name, |node| match name {
        "bucket" => bucket(report, node, shape).map(Limit::Bucket),
        "window" => windows(report, node).map(Limit::Window),
        "fixed" => fixed(report, node, shape).map(Limit::Fixed),
        _ => inflight(report, node, shape).map(Limit::Inflight),
    })
}

fn bucket(report: &mut Report, node: Node<'_>, shape: Shape) -> Option<BucketTerms> {
    let fields = Fields::item(report, node, "bucket", &["size", "refill"])?;
    let size = fields.need(report, "size", "100");
    let size = size.and_then(|node| scalar::whole(report, node, 1));
    let refill = fields.need(report, "refill", "\"2 per 1m\"");
    let refill = refill.and_then(|node| scalar::rate_above_zero(report, node));
    let (size, (tokens, period)) = (size?, refill?.reduced());
    let size = shape.margin.map_or(size, |margin| margin.of(size).max(1));
    let terms = BucketTerms { size, tokens, period };
    bounds::bucket(report, node.place, &terms).then_some(terms)
}

fn windows(report: &mut Report, node: Node<'_>) -> Option<SmallVec<[WindowTerms; 1]>> {
    let wanted = "a rate such as \"10 per 15m\", or a list of them";
    let items: Vec<_> = node.texts(report, wanted)?.into_iter().map(|(item, _)| item).collect();
    if items.is_empty() {
        let message = "a window without a rate limits nothing";
        report.error("no-limit", node.place, message, "write a rate such as \"10 per 15m\"");
        return None;
    }
    if let Some(extra) = items.get(WINDOWS_MAX) {
        let message = format!("{} windows are too many", items.len());
        let fix = format!("keep at most {WINDOWS_MAX}");
        report.error("too-many-windows", extra.place, message, fix);
        return None;
    }
    let terms: Vec<_> = items.iter().map(|item| window(report, *item)).collect();
    repeated(report, &items, &terms);
    terms.into_iter().collect()
}

fn window(report: &mut Report, node: Node<'_>) -> Option<WindowTerms> {
    let Rate { amount, per } = scalar::rate(report, node)?;
    if amount > UNITS_MAX {
        let message =
            format!("an exact window of {amount} units is above the {UNITS_MAX} kept per key");
        let fix = format!("write bucket = {{ size = {amount}, refill = \"{amount} per {per}\" }}");
        report.error("window-too-large", node.place, message, fix);
        return None;
    }
    Some(WindowTerms { limit: amount, span: per })
}

/// Two windows of one length: the larger would never decide.
fn repeated(report: &mut Report, items: &[Node<'_>], terms: &[Option<WindowTerms>]) {
    for (at, window) in terms.iter().enumerate() {
        let Some(window) = window else { continue };
        if terms[..at].iter().flatten().any(|earlier| earlier.span == window.span) {
            let message = format!("two windows of {}", window.span);
            let fix = "keep the one with the smaller amount";
            report.error("duplicate-span", items[at].place, message, fix);
        }
    }
}

fn fixed(report: &mut Report, node: Node<'_>, shape: Shape) -> Option<FixedTerms> {
    let Rate { amount, per } = scalar::rate(report, node)?;
    Some(FixedTerms { limit: amount, span: per, aligned: shape.aligned })
}

fn inflight(report: &mut Report, node: Node<'_>, shape: Shape) -> Option<InflightTerms> {
    let limit = scalar::whole(report, node, 1)?;
    if limit > UNITS_MAX {
        let message = format!("{limit} leases at once are above the {UNITS_MAX} kept per key");
        report.error("window-too-large", node.place, message, format!("write at most {UNITS_MAX}"));
        return None;
    }
    Some(InflightTerms { limit, hold: shape.hold })
}
