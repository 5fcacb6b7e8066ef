//! The terms of a policy and of its tiers, and whether their parts fit together.
//!
//! A tier takes from the policy what it leaves out. Must not read the parts themselves: each has
//! its own reader.

use super::block;
use super::bounds;
use super::limit::{self, Shape};
use super::node::{Fields, Given};
use super::price;
use super::report::{Place, Report};
use super::scalar;
use super::tier;
use crate::limit::{Limit, Penalty};
use crate::policy::{Credit, Terms};
use crate::price::Cost;
use crate::time::Span;

/// What a policy says besides its terms, as far as terms depend on it.
pub(super) struct Context {
    pub reserve: i64,
    pub hold: Span,
    /// Whether outcomes are judged, by bans or a watch: then no limit is needed.
    pub judges: bool,
}

/// The terms of a policy and of each tier; those that could not be read are missing.
pub(super) struct Read {
    /// Absent when only the tiers have limits.
    pub base: Given<Terms>,
    pub tiers: Vec<Option<Terms>>,
}

/// Reads all terms of a policy.
pub(super) fn read(
    report: &mut Report,
    fields: &Fields<'_>,
    tiers: &[tier::Draft<'_>],
    context: &Context,
) -> Read {
    let own = limit::algorithm(fields);
    let of_tiers = tiers.iter().find_map(|tier| limit::algorithm(&tier.fields));
    let algorithm = own.or(of_tiers).map(|(name, _)| name);
    misfits(report, fields, algorithm);
    let shape = shape(report, fields, context);
    let base = Parts::read(report, fields, shape);
    let mut parts = Vec::new();
    for tier in tiers {
        misfits(report, &tier.fields, algorithm);
        tier_fits(report, &tier.fields, (own.is_some(), algorithm));
        parts.push(Parts::read(report, &tier.fields, shape).or(&base));
    }
    unused(report, fields, &base, &parts);
    if algorithm.is_none() && !context.judges && !fields.has("tier") {
        limits_nothing(report, fields.place);
    }
    let tiers = tiers.iter().zip(parts);
    let tiers = tiers.map(|(tier, parts)| parts.terms(report, &tier.fields, context)).collect();
    let base = match (own, algorithm) {
        (None, Some(_)) => Given::Absent,
        _ => base.terms(report, fields, context).map_or(Given::Bad, Given::Good),
    };
    Read { base, tiers }
}

/// The parts of one set of terms, each as far as it could be read.
struct Parts {
    limit: Given<Limit>,
    block: Given<Option<Penalty>>,
    cost: Given<Cost>,
    credits: Given<Vec<Credit>>,
}

impl Parts {
    fn read(report: &mut Report, fields: &Fields<'_>, shape: Shape) -> Self {
        Self {
            limit: limit::read(report, fields, shape),
            block: fields.given("block", |node| block::read(report, node)),
            cost: fields.given("cost", |node| price::cost(report, node)),
            credits: fields.given("credit", |node| price::credits(report, node)),
        }
    }

    /// These parts, with absent ones taken from the policy.
    fn or(self, base: &Self) -> Self {
        fn or<T: Clone>(own: Given<T>, base: &Given<T>) -> Given<T> {
            if matches!(own, Given::Absent) { base.clone() } else { own }
        }
        Self {
            limit: or(self.limit, &base.limit),
            block: or(self.block, &base.block),
            cost: or(self.cost, &base.cost),
            credits: or(self.credits, &base.credits),
        }
    }

    /// The terms, judged as a whole; `fields` gives the places.
    fn terms(self, report: &mut Report, fields: &Fields<'_>, context: &Context) -> Option<Terms> {
        let limit = self.limit.or(Limit::Unlimited);
        let block = self.block.optional();
        let cost = self.cost.or(Cost::Request);
        let credits = self.credits.or(Vec::new());
        let terms =
            Terms { limit: limit?, block: block?.flatten(), cost: cost?, credits: credits? };
        let place = fields.key("cost").or(limit::algorithm(fields).map(|(_, place)| place));
        let place = place.unwrap_or(fields.place);
        short_block(report, fields, &terms);
        never_admits(report, place, &terms, context.reserve);
        bounds::prices(report, place, (&terms.limit, &terms.cost), context.reserve).then_some(terms)
    }
}

fn shape(report: &mut Report, fields: &Fields<'_>, context: &Context) -> Shape {
    let margin = fields.given("margin", |node| scalar::percent(report, node));
    let aligned = fields.given("align", |node| scalar::word(report, node, &[("clock", true)]));
    Shape {
        margin: margin.good().copied(),
        aligned: aligned.or(false).unwrap_or_default(),
        hold: context.hold,
    }
}

/// Refuses fields that mean nothing beside the algorithm.
fn misfits(report: &mut Report, fields: &Fields<'_>, algorithm: Option<&str>) {
    let wants = [
        ("credit", "credit-not-bucket", &["bucket"][..]),
        ("margin", "margin-not-bucket", &["bucket"]),
        ("align", "align-not-fixed", &["fixed"]),
        ("count_denied", "count-denied-not-window", &["window", "fixed"]),
        ("block", "block-unused", &["bucket", "window", "fixed"]),
    ];
    for (field, code, wanted) in wants {
        let Some(node) = fields.get(field) else { continue };
        let off = node.value.as_bool() == Some(false);
        if off || algorithm.is_some_and(|name| wanted.contains(&name)) {
            continue;
        }
        let beside =
            algorithm.map_or("without a limit".to_owned(), |name| format!("beside `{name}`"));
        let message = format!("`{field}` means nothing {beside}");
        let fix = format!("remove `{field}`, or limit by `{}`", wanted.join("` or `"));
        report.error(code, fields.key(field).unwrap_or(node.place), message, fix);
    }
    if let Some(place) = fields.key("cost").filter(|_| matches!(algorithm, None | Some("inflight")))
    {
        let message = "`cost` changes nothing here: each request holds one place";
        report.warn("cost-unused", place, message, "remove `cost`");
    }
}

/// A tier has the policy's algorithm, or the first tier's if the policy has none.
fn tier_fits(report: &mut Report, tier: &Fields<'_>, (own, policy): (bool, Option<&str>)) {
    match (limit::algorithm(tier), policy) {
        (Some((name, place)), Some(policy)) if name != policy => {
            let message =
                format!("the tier counts by `{name}` where the policy counts by `{policy}`");
            let fix = format!("write the tier's `{policy}`, or make another policy");
            report.error("tier-changes-algorithm", place, message, fix);
        }
        (None, _) if !own => {
            let message = "neither the tier nor the policy has a limit";
            let fix = format!("add the tier's `{}`", policy.unwrap_or("window"));
            report.error("tier-without-limit", tier.place, message, fix);
        }
        _ => {}
    }
}

/// Warns of fields that matter only to prices that are known at settle.
fn unused(report: &mut Report, fields: &Fields<'_>, base: &Parts, tiers: &[Parts]) {
    let settles = |parts: &Parts| match &parts.cost {
        Given::Good(cost) => cost.is_priced_at_settle(),
        Given::Bad => true,
        Given::Absent => false,
    };
    if settles(base) || tiers.iter().any(settles) {
        return;
    }
    let fix = "write a `cost` by outcome, such as { \"404\" = 20 }, or remove it";
    let debt = fields.get("debt").filter(|node| node.value.as_bool() == Some(true));
    if let Some(place) = debt.and(fields.key("debt")) {
        let message = "`debt` is never made: no cost is known only at settle";
        report.warn("debt-unused", place, message, fix);
    }
    if let Some(place) = fields.key("reserve") {
        let message = "`reserve` is never held: no cost is known only at settle";
        report.warn("reserve-unused", place, message, fix);
    }
}

fn limits_nothing(report: &mut Report, place: Place) {
    let message = "the policy limits nothing: no window, bucket, fixed, inflight or ban";
    let fix = "add a limit such as window = \"10 per 15m\"";
    report.error("no-limit", place, message, fix);
}

/// Warns of a block that ends while what started it still counts.
fn short_block(report: &mut Report, fields: &Fields<'_>, terms: &Terms) {
    let span = match &terms.limit {
        Limit::Window(windows) => windows.iter().map(|window| window.span).max(),
        Limit::Fixed(fixed) => Some(fixed.span),
        _ => None,
    };
    let (Some(block), Some(span)) = (terms.block, span) else { return };
    if block.first < span {
        let place = fields.key("block").or(limit::algorithm(fields).map(|(_, place)| place));
        let message = format!(
            "the block of {} is shorter than the window of {span}: what is in the window still \
             counts when it ends",
            block.first
        );
        let fix = format!("write a block of \"{span}\" or longer");
        report.warn("block-below-window", place.unwrap_or(fields.place), message, fix);
    }
}

/// Warns of an amount that can never pass.
fn never_admits(report: &mut Report, place: Place, terms: &Terms, reserve: i64) {
    let held = terms.cost.held(None, reserve);
    let (message, fix) = match terms.limit.capacity() {
        Some(0) => {
            let fix = "write at least 1, or leave it so if nobody is to pass";
            ("a limit of zero lets nobody pass".to_owned(), fix.to_owned())
        }
        Some(most) if held > most => {
            let message = format!("each request holds {held} of at most {most}: none ever passes");
            (message, format!("hold at most {most}"))
        }
        _ => return,
    };
    report.warn("never-admits", place, message, fix);
}
