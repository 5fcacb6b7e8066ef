//! The terms of a policy and of its tiers, and the checks that their fields fit together.
//!
//! A tier inherits from the policy the fields that it leaves out.

use super::attribute::AttributeTable;
use super::block;
use super::bounds;
use super::limit;
use super::price;
use super::tier;
use crate::algorithm::LimitOptions;
use crate::limit::{LIMIT_FIELDS, Limit, Penalty};
use crate::located::{FieldResult, Report, SourceLocation, TableFields};
use crate::policy::{CreditRule, Terms};
use crate::price::Cost;
use crate::rate::Rate;
use crate::time::Span;

/// The fields of a policy outside of its terms that the checks of terms depend on.
pub(super) struct TermsContext<'a> {
    pub attributes: &'a AttributeTable,
    pub reserve: i64,
    pub hold: Span,
    /// Whether the policy has ban rules or a watch; then it needs no limit.
    pub bans_on_outcomes: bool,
}

/// The terms of a policy and of each of its tiers; a tier with an invalid field has none.
pub(super) struct TermsSet {
    /// Absent when only the tiers have limits.
    pub base: FieldResult<Terms>,
    pub tiers: Vec<Option<Terms>>,
}

/// Reads all terms of a policy.
pub(super) fn read(
    report: &mut Report,
    fields: &TableFields<'_>,
    tiers: &[tier::TierDraft<'_>],
    context: &TermsContext<'_>,
) -> TermsSet {
    let own = limit::algorithm(fields);
    let of_tiers = tiers.iter().find_map(|tier| limit::algorithm(&tier.fields));
    let algorithm = own.or(of_tiers).map(|(name, _)| name);
    check_algorithm_fields(report, fields, algorithm);
    let options = LimitOptions::read(report, fields, context.hold);
    let base = TermsFields::read(report, fields, options, context);
    let mut parts = Vec::new();
    for tier in tiers {
        check_algorithm_fields(report, &tier.fields, algorithm);
        check_tier_algorithm(report, &tier.fields, own.is_some(), algorithm);
        parts.push(TermsFields::read(report, &tier.fields, options, context).or(&base));
    }
    warn_of_unused_settle_fields(report, fields, &base, &parts);
    let may_limit = context.bans_on_outcomes || fields.has("tier") || limit::is_misspelt(fields);
    if algorithm.is_none() && !may_limit {
        report_no_limit(report, fields.location);
    }
    let tiers = tiers.iter().zip(parts);
    let tiers = tiers.map(|(tier, parts)| parts.terms(report, &tier.fields, context)).collect();
    let base = match (own, algorithm) {
        // Only the tiers have limits. `otherwise` or `on_missing` decide for callers without a
        // tier.
        (None, Some(_)) => FieldResult::Absent,
        _ => base.terms(report, fields, context).map_or(FieldResult::Invalid, FieldResult::Valid),
    };
    TermsSet { base, tiers }
}

/// The fields of one set of terms. Invalid ones are kept as such, so that tiers inherit the others.
struct TermsFields {
    limit: FieldResult<Limit>,
    refill: Option<Rate>,
    block: FieldResult<Option<Penalty>>,
    cost: FieldResult<Cost>,
    credits: FieldResult<Vec<CreditRule>>,
}

impl TermsFields {
    fn read(
        report: &mut Report,
        fields: &TableFields<'_>,
        options: LimitOptions,
        context: &TermsContext<'_>,
    ) -> Self {
        let attributes = context.attributes;
        Self {
            limit: limit::read(report, fields, options),
            refill: limit::written_refill(fields),
            block: fields.parse("block", |node| block::read(report, node)),
            cost: fields.parse("cost", |node| price::cost(report, node, attributes)),
            credits: fields.parse("credit", |node| price::credits(report, node)),
        }
    }

    /// These fields, with absent ones taken from `base`.
    fn or(self, base: &Self) -> Self {
        fn or<T: Clone>(own: FieldResult<T>, base: &FieldResult<T>) -> FieldResult<T> {
            if matches!(own, FieldResult::Absent) { base.clone() } else { own }
        }
        let has_limit = !matches!(self.limit, FieldResult::Absent);
        Self {
            refill: if has_limit { self.refill } else { base.refill },
            limit: or(self.limit, &base.limit),
            block: or(self.block, &base.block),
            cost: or(self.cost, &base.cost),
            credits: or(self.credits, &base.credits),
        }
    }

    /// The terms, after checks across their fields; `fields` has the locations for diagnostics.
    fn terms(
        self,
        report: &mut Report,
        fields: &TableFields<'_>,
        context: &TermsContext<'_>,
    ) -> Option<Terms> {
        let limit = self.limit.or(Limit::Unlimited);
        let block = self.block.optional();
        let cost = self.cost.or(Cost::Request);
        let credits = self.credits.or(Vec::new());
        let terms = Terms {
            limit: limit?,
            refill: self.refill,
            block: block?.flatten(),
            cost: cost?,
            credits: credits?,
        };
        let location =
            fields.key("cost").or(limit::algorithm(fields).map(|(_, location)| location));
        let location = location.unwrap_or(fields.location);
        warn_of_short_block(report, fields, &terms);
        warn_if_never_admits(report, location, &terms, context.reserve);
        bounds::check_prices_exact(report, location, &terms.limit, &terms.cost, context.reserve)
            .then_some(terms)
    }
}

/// Reports fields that have no meaning with the policy's algorithm.
fn check_algorithm_fields(report: &mut Report, fields: &TableFields<'_>, algorithm: Option<&str>) {
    if algorithm.is_none() && limit::is_misspelt(fields) {
        return;
    }
    // Fields that not every algorithm accepts, with the code of the error.
    let requirements = [
        ("credit", "credit-not-bucket"),
        ("margin", "margin-not-bucket"),
        ("align", "align-not-fixed"),
        ("count_denied", "count-denied-not-window"),
        ("block", "block-unused"),
    ];
    for (field, code) in requirements {
        // A tier declares only some of them; another one is reported as unknown.
        if fields.schema().field(field).is_none() {
            continue;
        }
        let Some(node) = fields.get(field) else { continue };
        let is_false = node.value.as_bool() == Some(false);
        let wanted = limit::algorithms_with(field);
        if is_false || algorithm.is_some_and(|name| wanted.contains(&name)) {
            continue;
        }
        let beside =
            algorithm.map_or("without a limit".to_owned(), |name| format!("with `{name}`"));
        let message = format!("`{field}` has no meaning {beside}");
        let fix = format!("remove `{field}`, or limit by `{}`", wanted.join("` or `"));
        report.error(code, fields.key(field).unwrap_or(node.location), message, fix);
    }
    let has_cost = algorithm.is_some_and(|name| limit::algorithms_with("cost").contains(&name));
    if let Some(location) = fields.key("cost").filter(|_| !has_cost) {
        let message = "`cost` has no effect here: each request holds one lease";
        report.warn("cost-unused", location, message, "remove `cost`");
    }
}

/// Reports a tier with another algorithm than the policy's (or than the first tier's, if the policy
/// has none), and a tier without any.
fn check_tier_algorithm(
    report: &mut Report,
    tier: &TableFields<'_>,
    policy_has_limit: bool,
    policy: Option<&str>,
) {
    match (limit::algorithm(tier), policy) {
        (Some((name, location)), Some(policy)) if name != policy => {
            let message =
                format!("the tier counts by `{name}` where the policy counts by `{policy}`");
            let fix = format!("write the tier's `{policy}`, or make another policy");
            report.error("tier-changes-algorithm", location, message, fix);
        }
        (None, _) if !policy_has_limit => {
            let message = "neither the tier nor the policy has a limit";
            let fix = format!("add the tier's `{}`", policy.unwrap_or("window"));
            report.error("tier-without-limit", tier.location, message, fix);
        }
        _ => {}
    }
}

/// Warns of `debt` and `reserve` in a policy without a price that is known only at settle.
fn warn_of_unused_settle_fields(
    report: &mut Report,
    fields: &TableFields<'_>,
    base: &TermsFields,
    tiers: &[TermsFields],
) {
    let is_priced_at_settle = |parts: &TermsFields| match &parts.cost {
        FieldResult::Valid(cost) => cost.is_priced_at_settle(),
        FieldResult::Invalid => true,
        FieldResult::Absent => false,
    };
    if is_priced_at_settle(base) || tiers.iter().any(is_priced_at_settle) {
        return;
    }
    let fix = "write a `cost` by outcome, such as { \"404\" = 20 }, or remove it";
    let debt = fields.get("debt").filter(|node| node.value.as_bool() == Some(true));
    if let Some(location) = debt.and(fields.key("debt")) {
        let message = "`debt` has no effect: every cost is known at check";
        report.warn("debt-unused", location, message, fix);
    }
    if let Some(location) = fields.key("reserve") {
        let message = "`reserve` has no effect: every cost is known at check";
        report.warn("reserve-unused", location, message, fix);
    }
}

fn report_no_limit(report: &mut Report, location: SourceLocation) {
    let algorithms: Vec<&str> = LIMIT_FIELDS.iter().map(|field| field.name).collect();
    let message = format!("the policy limits nothing: no {} or ban", algorithms.join(", "));
    let fix = "add a limit such as window = \"10 per 15m\"";
    report.error("no-limit", location, message, fix);
}

/// Warns of a block that ends while the requests that started it still count in the window.
fn warn_of_short_block(report: &mut Report, fields: &TableFields<'_>, terms: &Terms) {
    let (Some(block), Some(span)) = (terms.block, terms.limit.longest_window()) else { return };
    if block.first < span {
        let location =
            fields.key("block").or(limit::algorithm(fields).map(|(_, location)| location));
        let message = format!(
            "the block of {} is shorter than the window of {span}: the requests that started it \
             still count when it ends",
            block.first
        );
        let fix = format!("write a block of \"{span}\" or longer");
        report.warn("block-below-window", location.unwrap_or(fields.location), message, fix);
    }
}

/// Warns of a limit that no request can pass.
fn warn_if_never_admits(
    report: &mut Report,
    location: SourceLocation,
    terms: &Terms,
    reserve: i64,
) {
    let held = terms.cost.units_to_hold(None, reserve);
    let (message, fix) = match terms.limit.capacity() {
        Some(0) => {
            let fix = "write at least 1, or keep it to deny all requests";
            ("a limit of zero denies all requests".to_owned(), fix.to_owned())
        }
        Some(most) if held > most => {
            let message = format!(
                "each request reserves {held} units of a limit of {most}, so all are denied"
            );
            (message, format!("reserve at most {most}"))
        }
        _ => return,
    };
    report.warn("never-admits", location, message, fix);
}
