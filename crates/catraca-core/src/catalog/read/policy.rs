//! `[policy.…]`: reads one policy, field by field.
//!
//! Every field is read before any is judged missing, so that one reading finds every mistake.
//! Must not look at other policies: `otherwise` is followed once all are known.

use super::attribute::Known;
use super::ban;
use super::bounds::{HOLD_MAX, REMEMBER_MAX};
use super::node::{Fields, Given, Key, Node};
use super::report::{Place, Report};
use super::scalar;
use super::terms::{self, Context};
use super::tier;
use super::who;
use crate::policy::{Ban, Mode, Name, OnFailure, OnMissing, Policy, Tier};
use crate::rate::{Percent, Rate};
use crate::time::Span;

const FIELDS: [&str; 27] = [
    "group",
    "by",
    "each",
    "window",
    "bucket",
    "fixed",
    "align",
    "inflight",
    "block",
    "cost",
    "credit",
    "debt",
    "tier",
    "otherwise",
    "on_missing",
    "mode",
    "on_failure",
    "count_denied",
    "message",
    "low_water",
    "margin",
    "reserve",
    "hold",
    "remember",
    "ban",
    "ban_storm",
    "watch",
];

/// How long a ticket may be settled unless the policy says otherwise.
const HOLD: Span = Span::from_secs(60);
/// How long a reference is remembered unless the policy says otherwise.
const REMEMBER: Span = Span::from_secs(24 * 3_600);

/// A policy as far as it could be read alone.
pub(super) struct Draft<'t> {
    pub key: Key<'t>,
    /// Nothing if a field was refused.
    pub policy: Option<Policy>,
    /// The name that `otherwise` gives, and its place.
    pub otherwise: Option<(Place, &'t str)>,
}

/// Reads one policy.
pub(super) fn read<'t>(
    report: &mut Report,
    known: &Known,
    (key, node): (Key<'t>, Node<'t>),
) -> Draft<'t> {
    let mut draft = Draft { key, policy: None, otherwise: None };
    let Some(fields) = Fields::read(report, (key.place, node), "policy", &FIELDS) else {
        return draft;
    };
    draft.otherwise = fields
        .get("otherwise")
        .and_then(|node| Some((node.place, node.text(report, "the name of a policy")?)));
    draft.policy = policy(report, known, (key, &fields));
    draft
}

fn policy(
    report: &mut Report,
    known: &Known,
    (key, fields): (Key<'_>, &Fields<'_>),
) -> Option<Policy> {
    let who = who::read(report, fields);
    let words = Words::read(report, fields);
    let amounts = Amounts::read(report, fields);
    let bans = fields.given("ban", |node| ban::bans(report, node, known));
    let watch = fields.given("watch", |node| ban::watch(report, node));
    let tiers = fields.given("tier", |node| tier::read(report, known, node));
    let context = amounts.context(judges(fields, &bans));
    let drafts = tiers.good().map_or(&[][..], Vec::as_slice);
    let terms = terms::read(report, fields, drafts, &context);
    let tiers = joined(tiers, terms.tiers);
    let (words, amounts) = (words?, amounts.all()?);
    Some(Policy {
        name: key.text.into(),
        family: Policy::family_of(key.text),
        group: words.group,
        who: who?,
        base: terms.base.optional()?,
        tiers: tiers?,
        otherwise: None,
        on_missing: words.on_missing,
        mode: words.mode,
        on_failure: words.on_failure,
        debt: words.debt,
        count_denied: words.count_denied,
        reserve: amounts.reserve,
        hold: amounts.hold,
        remember: amounts.remember,
        message: words.message,
        low_water: amounts.low_water,
        bans: bans.or(Vec::new())?,
        watch: watch.optional()?,
        ban_storm: amounts.ban_storm,
    })
}

/// Whether outcomes are judged; a rule that was refused judges too.
fn judges(fields: &Fields<'_>, bans: &Given<Vec<Ban>>) -> bool {
    let rules = match bans {
        Given::Absent => false,
        Given::Bad => true,
        Given::Good(bans) => !bans.is_empty(),
    };
    rules || fields.has("watch")
}

/// Tiers of callers and terms; nothing if any of either is missing.
fn joined(
    drafts: Given<Vec<tier::Draft<'_>>>,
    terms: Vec<Option<crate::policy::Terms>>,
) -> Option<Vec<Tier>> {
    let pairs = drafts.or(Vec::new())?.into_iter().zip(terms);
    let tier = |when, terms| Tier { id: tier::id(&when), when, terms };
    pairs.map(|(draft, terms)| Some(tier(draft.when?, terms?))).collect()
}

/// The fields that are words or texts.
struct Words {
    group: Option<Name>,
    on_missing: OnMissing,
    mode: Mode,
    on_failure: OnFailure,
    debt: bool,
    count_denied: bool,
    message: Option<Name>,
}

impl Words {
    fn read(report: &mut Report, fields: &Fields<'_>) -> Option<Self> {
        let group = fields.given("group", |node| scalar::name(report, node, "group"));
        let on_missing = fields.given("on_missing", |node| scalar::word(report, node, &ON_MISSING));
        let mode = fields.given("mode", |node| scalar::word(report, node, &MODES));
        let on_failure = fields.given("on_failure", |node| scalar::word(report, node, &ON_FAILURE));
        let debt = fields.given("debt", |node| node.flag(report));
        let count_denied = fields.given("count_denied", |node| node.flag(report));
        let message = fields.given("message", |node| ban::message(report, node));
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

/// The fields that are amounts or durations, each as far as it could be read.
struct Amounts {
    reserve: Given<i64>,
    hold: Given<Span>,
    remember: Given<Span>,
    low_water: Given<Percent>,
    ban_storm: Given<Rate>,
}

/// The same, all of them good.
struct GoodAmounts {
    reserve: i64,
    hold: Span,
    remember: Span,
    low_water: Option<Percent>,
    ban_storm: Option<Rate>,
}

impl Amounts {
    fn read(report: &mut Report, fields: &Fields<'_>) -> Self {
        let hold = ("hold-too-long", "a ticket may wait", HOLD_MAX);
        let remember = ("remember-too-long", "a reference is kept", REMEMBER_MAX);
        Self {
            reserve: fields.given("reserve", |node| scalar::cost(report, node, 0)),
            hold: fields.given("hold", |node| at_most(report, node, hold)),
            remember: fields.given("remember", |node| at_most(report, node, remember)),
            low_water: fields.given("low_water", |node| scalar::percent(report, node)),
            ban_storm: fields.given("ban_storm", |node| scalar::rate_above_zero(report, node)),
        }
    }

    fn context(&self, judges: bool) -> Context {
        let reserve = self.reserve.good().copied().unwrap_or(1);
        Context { reserve, hold: self.hold.good().copied().unwrap_or(HOLD), judges }
    }

    fn all(self) -> Option<GoodAmounts> {
        Some(GoodAmounts {
            reserve: self.reserve.or(1)?,
            hold: self.hold.or(HOLD)?,
            remember: self.remember.or(REMEMBER)?,
            low_water: self.low_water.optional()?,
            ban_storm: self.ban_storm.optional()?,
        })
    }
}

fn at_most(
    report: &mut Report,
    node: Node<'_>,
    (code, what, most): (&'static str, &str, Span),
) -> Option<Span> {
    let span = scalar::duration(report, node)?;
    if span > most {
        let message = format!("`{span}` is longer than {what}");
        report.error(code, node.place, message, format!("write at most \"{most}\""));
        return None;
    }
    Some(span)
}

const ON_MISSING: [(&str, OnMissing); 3] =
    [("error", OnMissing::Error), ("skip", OnMissing::Skip), ("deny", OnMissing::Deny)];

const MODES: [(&str, Mode); 3] =
    [("enforce", Mode::Enforce), ("shadow", Mode::Shadow), ("off", Mode::Off)];

const ON_FAILURE: [(&str, OnFailure); 3] =
    [("local", OnFailure::Local), ("open", OnFailure::Open), ("closed", OnFailure::Closed)];
