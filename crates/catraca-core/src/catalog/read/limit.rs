//! `bucket`, `window`, `fixed` and `inflight`: the limit of a policy or of a tier.
//!
//! A policy and each of its tiers has at most one of them.

use smallvec::SmallVec;

use super::bounds::{self, UNITS_MAX, WINDOWS_MAX};
use super::scalar;
use super::schema;
use crate::limit::{BucketTerms, FixedTerms, InflightTerms, Limit, WindowTerms};
use crate::located::{
    FieldResult, FieldSchema, Node, Report, SourceLocation, TableFields, TableSchema, ValueSchema,
};
use crate::rate::{Percent, Rate};
use crate::time::Span;

/// The fields that select an algorithm.
const ALGORITHMS: [&str; 4] = ["bucket", "window", "fixed", "inflight"];

/// The limits of a policy or of a tier.
pub(super) const BUCKET: FieldSchema = FieldSchema::new(
    "bucket",
    ValueSchema::Table(&BUCKET_TERMS),
    "`{ size, refill }`: a token bucket that starts full; refills are exact, without rounding \
     errors; size × period is below 2^53",
);
pub(super) const WINDOW: FieldSchema = FieldSchema::new(
    "window",
    ValueSchema::AnyOf(&[
        ValueSchema::Rate,
        ValueSchema::List { of: &ValueSchema::Rate, most: WINDOWS_MAX },
    ]),
    "exact sliding window: at most N units in any span of that length. With a list, all windows \
     must have room, and all are charged; their spans differ, and each has at most 10,000 units",
);
pub(super) const FIXED: FieldSchema = FieldSchema::new(
    "fixed",
    ValueSchema::Rate,
    "a fixed window: it starts with its first unit, and at its end the whole limit is free again",
);
pub(super) const INFLIGHT: FieldSchema = FieldSchema::new(
    "inflight",
    ValueSchema::Integer { least: 1, most: UNITS_MAX },
    "the most concurrent requests; a settle returns the lease, or it expires after `hold`; cannot \
     have `block`",
);

/// The fields of `bucket`.
pub(super) static BUCKET_TERMS: TableSchema = TableSchema {
    name: "bucket",
    fields: &[
        FieldSchema::new("size", schema::COUNT, "the units of a full bucket").require(),
        FieldSchema::new("refill", ValueSchema::Rate, "how many units come back, and how often")
            .require(),
    ],
};

/// The options of a policy that apply to its limit and to those of its tiers.
#[derive(Clone, Copy)]
pub(super) struct LimitOptions {
    pub margin: Option<Percent>,
    pub aligned: bool,
    pub hold: Span,
}

/// The first algorithm in the text of a policy or a tier, with the location of its field.
pub(super) fn algorithm(fields: &TableFields<'_>) -> Option<(&'static str, SourceLocation)> {
    let named = ALGORITHMS.into_iter().filter_map(|name| Some((name, fields.key(name)?)));
    named.min_by_key(|(_, location)| *location)
}

/// Reads the limit of a policy or of a tier, and reports a second algorithm beside it.
pub(super) fn read(
    report: &mut Report,
    fields: &TableFields<'_>,
    options: LimitOptions,
) -> FieldResult<Limit> {
    let Some((name, _)) = algorithm(fields) else { return FieldResult::Absent };
    let extra: Vec<_> = ALGORITHMS.into_iter().filter(|other| *other != name).collect();
    for (other, location) in extra.into_iter().filter_map(|other| Some((other, fields.key(other)?)))
    {
        let message = format!("`{other}` beside `{name}`: a policy has one algorithm");
        let fix = format!("remove `{other}`, or make two policies and a gate of both");
        report.error("two-algorithms", location, message, fix);
    }
    fields.parse(name, |node| match name {
        "bucket" => bucket(report, node, options).map(Limit::Bucket),
        "window" => windows(report, node).map(Limit::Window),
        "fixed" => fixed_window(report, node, options).map(Limit::Fixed),
        _ => inflight(report, node, options).map(Limit::Inflight),
    })
}

fn bucket(report: &mut Report, node: Node<'_>, options: LimitOptions) -> Option<BucketTerms> {
    let fields = TableFields::read_item(report, node, &BUCKET_TERMS)?;
    let size = fields.require(report, "size", "100");
    let size = size.and_then(|node| scalar::whole_number(report, node, 1));
    let refill = fields.require(report, "refill", "\"2 per 1m\"");
    let refill = refill.and_then(|node| scalar::rate_above_zero(report, node));
    let size = size?;
    let (tokens, period) = refill?.in_lowest_terms();
    // The margin lowers the limit below what the upstream allows, but never to nothing.
    let size = options.margin.map_or(size, |margin| margin.of(size).max(1));
    let terms = BucketTerms { size, tokens, period };
    bounds::check_bucket_exact(report, node.location, &terms).then_some(terms)
}

fn windows(report: &mut Report, node: Node<'_>) -> Option<SmallVec<[WindowTerms; 1]>> {
    let wanted = "a rate such as \"10 per 15m\", or a list of them";
    let items: Vec<_> = node.texts(report, wanted)?.into_iter().map(|(item, _)| item).collect();
    if items.is_empty() {
        let message = "a window without a rate limits nothing";
        report.error("no-limit", node.location, message, "write a rate such as \"10 per 15m\"");
        return None;
    }
    if let Some(extra) = items.get(WINDOWS_MAX) {
        let message = format!("{} windows are too many", items.len());
        let fix = format!("keep at most {WINDOWS_MAX}");
        report.error("too-many-windows", extra.location, message, fix);
        return None;
    }
    let terms: Vec<_> = items.iter().map(|item| window(report, *item)).collect();
    report_equal_spans(report, &items, &terms);
    terms.into_iter().collect()
}

fn window(report: &mut Report, node: Node<'_>) -> Option<WindowTerms> {
    let Rate { amount, per } = scalar::rate(report, node)?;
    if amount > UNITS_MAX {
        let message =
            format!("a window of {amount} units is more than the {UNITS_MAX} that a key stores");
        let fix = format!("write bucket = {{ size = {amount}, refill = \"{amount} per {per}\" }}");
        report.error("window-too-large", node.location, message, fix);
        return None;
    }
    Some(WindowTerms { limit: amount, span: per })
}

/// Reports two windows of the same length: the one with the larger limit would have no effect.
fn report_equal_spans(report: &mut Report, items: &[Node<'_>], terms: &[Option<WindowTerms>]) {
    for (at, window) in terms.iter().enumerate() {
        let Some(window) = window else { continue };
        if terms[..at].iter().flatten().any(|earlier| earlier.span == window.span) {
            let message = format!("two windows of {}", window.span);
            let fix = "keep the one with the smaller amount";
            report.error("duplicate-span", items[at].location, message, fix);
        }
    }
}

fn fixed_window(report: &mut Report, node: Node<'_>, options: LimitOptions) -> Option<FixedTerms> {
    let Rate { amount, per } = scalar::rate(report, node)?;
    Some(FixedTerms { limit: amount, span: per, aligned: options.aligned })
}

fn inflight(report: &mut Report, node: Node<'_>, options: LimitOptions) -> Option<InflightTerms> {
    let limit = scalar::whole_number(report, node, 1)?;
    if limit > UNITS_MAX {
        let message = format!("{limit} leases are more than the {UNITS_MAX} that a key stores");
        report.error(
            "window-too-large",
            node.location,
            message,
            format!("write at most {UNITS_MAX}"),
        );
        return None;
    }
    Some(InflightTerms { limit, hold: options.hold })
}
