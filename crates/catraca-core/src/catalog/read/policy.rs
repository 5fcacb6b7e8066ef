//! `[policy.…]`: reads one policy, field by field.
//!
//! Every field is read before `?` is applied to the first invalid one, so that all mistakes are
//! reported at once. `otherwise` is resolved by `otherwise_chain`, after all policies are read.

use super::attribute::AttributeTable;
use super::ban;
use super::bounds::{HOLD_MAX, REMEMBER_MAX};
use super::feature;
use super::key_parts;
use super::policy_schema::POLICY;
use super::scalar;
use super::terms::{self, TermsContext};
use super::tier;
use crate::limit::Limit;
use crate::located::{FieldResult, LocatedKey, Node, Report, SourceLocation, TableFields};
use crate::policy::{BanRule, Mode, Name, OnFailure, OnMissing, Policy, Tier};
use crate::rate::{Percent, Rate};
use crate::time::Span;

/// The default of `hold` for a policy with a limit, whose units stay charged until the settle.
pub const HOLD_DEFAULT: Span = Span::from_secs(60);
/// The default of `hold` for a policy that only bans. It holds no units, so a slow upstream may
/// take its time without losing the ban.
pub const HOLD_DEFAULT_WITHOUT_LIMIT: Span = Span::from_secs(600);
/// The default of `remember`.
pub(super) const REMEMBER: Span = Span::from_secs(24 * 3_600);

/// A policy before its `otherwise` is resolved.
pub(super) struct PolicyDraft<'t> {
    pub key: LocatedKey<'t>,
    /// `None` if a field is invalid.
    pub policy: Option<Policy>,
    /// The name in `otherwise`, with its location.
    pub otherwise: Option<(SourceLocation, &'t str)>,
}

/// Reads one policy.
pub(super) fn read<'t>(
    report: &mut Report,
    attributes: &AttributeTable,
    key: LocatedKey<'t>,
    node: Node<'t>,
) -> PolicyDraft<'t> {
    let mut draft = PolicyDraft { key, policy: None, otherwise: None };
    let Some(fields) = TableFields::read(report, key.location, node, &POLICY) else {
        return draft;
    };
    draft.otherwise = fields
        .get("otherwise")
        .and_then(|node| Some((node.location, node.text(report, "the name of a policy")?)));
    draft.policy = policy(report, attributes, key, &fields);
    draft
}

fn policy(
    report: &mut Report,
    attributes: &AttributeTable,
    key: LocatedKey<'_>,
    fields: &TableFields<'_>,
) -> Option<Policy> {
    let key_spec = key_parts::read(report, fields);
    let options = OptionFields::read(report, fields);
    let amounts = AmountFields::read(report, fields);
    let bans = fields.parse("ban", |node| ban::bans(report, node, attributes));
    let watch = fields.parse("watch", |node| ban::watch(report, node));
    let tiers = fields.parse("tier", |node| tier::read(report, attributes, node));
    let context = amounts.context(bans_on_outcomes(fields, &bans), attributes);
    let drafts = tiers.valid().map_or(&[][..], Vec::as_slice);
    let terms = terms::read(report, fields, drafts, &context);
    let tiers = join_tiers(tiers, terms.tiers);
    let options = options?;
    let amounts = amounts.into_valid()?;
    let base = terms.base.optional()?;
    let tiers = tiers?;
    let mut all_terms = base.iter().chain(tiers.iter().map(|tier| &tier.terms));
    let has_limit = all_terms.any(|terms| terms.limit != Limit::Unlimited);
    let default_hold = if has_limit { HOLD_DEFAULT } else { HOLD_DEFAULT_WITHOUT_LIMIT };
    let policy = Policy {
        name: key.text.into(),
        family: Policy::family_of(key.text),
        group: options.group,
        key_spec: key_spec?,
        base,
        tiers,
        otherwise: None,
        on_missing: options.on_missing,
        mode: options.mode,
        on_failure: options.on_failure,
        debt: options.debt,
        count_denied: options.count_denied,
        reserve: amounts.reserve,
        hold: amounts.hold.unwrap_or(default_hold),
        remember: amounts.remember,
        message: options.message,
        low_water: amounts.low_water,
        bans: bans.or(Vec::new())?,
        watch: watch.optional()?,
        ban_storm: amounts.ban_storm,
    };
    feature::check_settle(report, fields, &policy);
    Some(policy)
}

/// Whether the policy has ban rules or a watch. Invalid ones count too: without them the policy
/// would also be reported as having no limit.
fn bans_on_outcomes(fields: &TableFields<'_>, bans: &FieldResult<Vec<BanRule>>) -> bool {
    let rules = match bans {
        FieldResult::Absent => false,
        FieldResult::Invalid => true,
        FieldResult::Valid(bans) => !bans.is_empty(),
    };
    rules || fields.has("watch")
}

/// Joins the `when` of each tier with its terms; `None` if either is invalid.
fn join_tiers(
    drafts: FieldResult<Vec<tier::TierDraft<'_>>>,
    terms: Vec<Option<crate::policy::Terms>>,
) -> Option<Vec<Tier>> {
    let pairs = drafts.or(Vec::new())?.into_iter().zip(terms);
    let tier = |when, terms| Tier { id: tier::tier_id(&when), when, terms };
    pairs.map(|(draft, terms)| Some(tier(draft.when?, terms?))).collect()
}

/// The fields that are keywords, flags or texts.
struct OptionFields {
    group: Option<Name>,
    on_missing: OnMissing,
    mode: Mode,
    on_failure: OnFailure,
    debt: bool,
    count_denied: bool,
    message: Option<Name>,
}

impl OptionFields {
    fn read(report: &mut Report, fields: &TableFields<'_>) -> Option<Self> {
        let group = fields.parse("group", |node| scalar::name(report, node, "group"));
        let on_missing =
            fields.parse("on_missing", |node| scalar::keyword(report, node, &ON_MISSING));
        let mode = fields.parse("mode", |node| scalar::keyword(report, node, &MODES));
        let on_failure =
            fields.parse("on_failure", |node| scalar::keyword(report, node, &ON_FAILURE));
        let debt = fields.parse("debt", |node| node.flag(report));
        let count_denied = fields.parse("count_denied", |node| node.flag(report));
        let message = fields.parse("message", |node| ban::message(report, node));
        Some(Self {
            group: group.optional()?,
            on_missing: on_missing.or(OnMissing::default())?,
            mode: mode.or(Mode::default())?,
            on_failure: on_failure.or(OnFailure::default())?,
            debt: debt.or(false)?,
            count_denied: count_denied.or(false)?,
            message: message.optional()?,
        })
    }
}

/// The fields that are numbers, rates or durations. They are kept as results because `context`
/// needs the valid ones even if another is invalid.
struct AmountFields {
    reserve: FieldResult<i64>,
    hold: FieldResult<Span>,
    remember: FieldResult<Span>,
    low_water: FieldResult<Percent>,
    ban_storm: FieldResult<Rate>,
}

/// The values of `AmountFields`, with defaults filled in.
struct ValidAmounts {
    reserve: i64,
    hold: Option<Span>,
    remember: Span,
    low_water: Option<Percent>,
    ban_storm: Option<Rate>,
}

impl AmountFields {
    fn read(report: &mut Report, fields: &TableFields<'_>) -> Self {
        Self {
            reserve: fields.parse("reserve", |node| scalar::cost(report, node, 0)),
            hold: fields.parse("hold", |node| {
                at_most(report, node, HOLD_MAX, "hold-too-long", "a ticket can be settled")
            }),
            remember: fields.parse("remember", |node| {
                at_most(report, node, REMEMBER_MAX, "remember-too-long", "a reference is stored")
            }),
            low_water: fields.parse("low_water", |node| scalar::percent(report, node)),
            ban_storm: fields.parse("ban_storm", |node| scalar::rate_above_zero(report, node)),
        }
    }

    /// What the readers of terms need to know; defaults replace invalid values.
    fn context<'a>(
        &self,
        bans_on_outcomes: bool,
        attributes: &'a AttributeTable,
    ) -> TermsContext<'a> {
        let reserve = self.reserve.valid().copied().unwrap_or(1);
        let hold = self.hold.valid().copied().unwrap_or(HOLD_DEFAULT);
        TermsContext { attributes, reserve, hold, bans_on_outcomes }
    }

    fn into_valid(self) -> Option<ValidAmounts> {
        Some(ValidAmounts {
            reserve: self.reserve.or(1)?,
            hold: self.hold.optional()?,
            remember: self.remember.or(REMEMBER)?,
            low_water: self.low_water.optional()?,
            ban_storm: self.ban_storm.optional()?,
        })
    }
}

fn at_most(
    report: &mut Report,
    node: Node<'_>,
    most: Span,
    code: &'static str,
    what: &str,
) -> Option<Span> {
    let span = scalar::duration(report, node)?;
    if span > most {
        let message = format!("`{span}` is longer than {what}");
        report.error(code, node.location, message, format!("write at most \"{most}\""));
        return None;
    }
    Some(span)
}

pub(in crate::catalog) const ON_MISSING: [(&str, OnMissing); 3] =
    [("error", OnMissing::Error), ("skip", OnMissing::Skip), ("deny", OnMissing::Deny)];

pub(in crate::catalog) const MODES: [(&str, Mode); 3] =
    [("enforce", Mode::Enforce), ("shadow", Mode::Shadow), ("off", Mode::Off)];

pub(in crate::catalog) const ON_FAILURE: [(&str, OnFailure); 3] =
    [("local", OnFailure::Local), ("open", OnFailure::Open), ("closed", OnFailure::Closed)];
