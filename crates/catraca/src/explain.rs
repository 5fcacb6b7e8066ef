//! Explaining: which policies a request hits, with which key, tier and price, and why. Touches no
//! state.

use catraca_core::conclude;
use catraca_core::limit::{Limit, Penalty};
use catraca_core::plan::{held, named};
use catraca_core::policy::{Mode, Name, Terms};
use catraca_core::price::{Cost, Price};
use catraca_core::request::Check;
use catraca_core::select::Selected;

use crate::Error;
use crate::engine::Engine;
use crate::store::Store;
use crate::world::World;

/// Why a request is decided the way it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The catalog.
    pub revision: Name,
    /// The gate that was asked.
    pub gate: String,
    /// Whether nobody declared it, so that the default policy stands in.
    pub unlisted: bool,
    /// The list that decides, if one does: its name and the entry's reason.
    pub list: Option<(&'static str, Option<String>)>,
    /// One per policy and key.
    pub rows: Vec<Explained>,
    /// Policies of the gate without a row, and why.
    pub absent: Vec<(Name, &'static str)>,
}

/// One policy that applies.
#[derive(Clone, Debug, PartialEq)]
pub struct Explained {
    /// The policy used.
    pub policy: Name,
    /// The policy that was asked, when `otherwise` led here.
    pub instead_of: Option<Name>,
    /// The tier that matched, counted from one, and its condition.
    pub tier: Option<(usize, String)>,
    /// The key's parts, private ones as pseudonyms.
    pub key: Vec<(String, String)>,
    /// The limit in words.
    pub limit: String,
    /// The block in words.
    pub block: Option<String>,
    /// Units held at check.
    pub held: i64,
    /// Whether that is more than there ever is, so that the request never passes.
    pub too_costly: bool,
    /// What the request costs in the end, in words.
    pub price: String,
    /// Whether it decides.
    pub mode: Mode,
}

impl<S: Store> Engine<S> {
    /// Which policies a request hits, with which key, tier and price, and why.
    pub fn explain(&self, check: &Check<'_>) -> Result<Explanation, Error> {
        check.validate()?;
        let world = self.world();
        let asked = world.asked(check.gate)?;
        let selected = world.selector().select(asked.policies, &check.subject)?;
        let now = self.now();
        let listed =
            if check.lists { world.listed(&check.subject, self.digester(), now)? } else { None };
        let list = listed.map(|(entry, passes)| {
            let decision = conclude::listed(&world.catalog, entry, passes, now);
            (decision.reason.as_str(), entry.reason.clone())
        });
        let shown = |row: &Selected<'_, '_>, id| row.policy == id || row.instead_of == Some(id);
        let missing =
            asked.policies.iter().filter(|id| !selected.iter().any(|row| shown(row, **id)));
        let absent = missing.map(|id| {
            let policy = world.catalog.policy(*id);
            (policy.name.clone(), why_absent(policy.mode))
        });
        Ok(Explanation {
            revision: world.catalog.revision.clone(),
            gate: check.gate.to_owned(),
            unlisted: asked.is_default,
            list,
            absent: absent.collect(),
            rows: selected.iter().map(|row| self.explained(&world, check, row)).collect(),
        })
    }

    fn explained(&self, world: &World, check: &Check<'_>, row: &Selected<'_, '_>) -> Explained {
        let policy = world.catalog.policy(row.policy);
        let tier = row.tier.and_then(|place| {
            let tier = policy.tiers.get(usize::from(place))?;
            Some((usize::from(place) + 1, condition(&tier.when)))
        });
        let held = row.terms.map_or(0, |terms| held(policy, terms, check.cost));
        let capacity = row.terms.and_then(|terms| terms.limit.capacity());
        Explained {
            policy: policy.name.clone(),
            instead_of: row.instead_of.map(|id| world.catalog.policy(id).name.clone()),
            tier,
            key: named(&world.catalog, self.digester(), &row.parts),
            limit: row
                .terms
                .map_or_else(|| "denies: no key".to_owned(), |terms| limit(&terms.limit)),
            block: row.terms.and_then(|terms| terms.block).map(penalty),
            held,
            too_costly: capacity.is_some_and(|capacity| held.max(1) > capacity),
            price: row.terms.map_or_else(String::new, price),
            mode: row.mode,
        }
    }
}

fn why_absent(mode: Mode) -> &'static str {
    match mode {
        Mode::Off => "its mode is off",
        Mode::Enforce | Mode::Shadow => "it is skipped or shares a row with an earlier policy",
    }
}

fn condition(when: &[(Name, Vec<Name>)]) -> String {
    let all = when.iter().map(|(name, values)| format!("{name} = {}", values.join(" or ")));
    all.collect::<Vec<_>>().join(", ")
}

/// A limit in the catalog's words.
pub fn limit(limit: &Limit) -> String {
    match limit {
        Limit::Bucket(terms) => {
            format!("bucket of {}, refill {}", terms.size, terms.refill_in_words())
        }
        Limit::Window(windows) => {
            let all = windows.iter().map(|window| format!("{} per {}", window.limit, window.span));
            format!("window {}", all.collect::<Vec<_>>().join(" and "))
        }
        Limit::Fixed(terms) => format!("fixed {} per {}", terms.limit, terms.span),
        Limit::Inflight(terms) => format!("{} in flight", terms.limit),
        Limit::Unlimited => "bans only".to_owned(),
    }
}

/// A block in words.
pub fn penalty(penalty: Penalty) -> String {
    if !penalty.escalates() {
        return penalty.first.to_string();
    }
    let Penalty { first, factor, max, forget } = penalty;
    format!("{first}, then {factor} times longer up to {max}, forgotten after {forget}")
}

fn price(terms: &Terms) -> String {
    match &terms.cost {
        Cost::Request => "what the request says, else 1".to_owned(),
        Cost::Units(units) => format!("always {units}"),
        Cost::Reported => "as reported at settle".to_owned(),
        Cost::Table(table) => {
            let exact =
                table.exact.iter().map(|(status, price)| format!("{status}: {}", units(*price)));
            let classes = table.class.iter().enumerate();
            let classes =
                classes.filter_map(|(class, p)| Some(format!("{class}xx: {}", units((*p)?))));
            let none = table.none.map(|price| format!("none: {}", units(price)));
            let rest = format!("else {}", table.default.map_or_else(|| "1".to_owned(), units));
            exact.chain(classes).chain(none).chain([rest]).collect::<Vec<_>>().join(", ")
        }
    }
}

fn units(price: Price) -> String {
    match price {
        Price::Units(units) => units.to_string(),
        Price::Drain => "drain".to_owned(),
    }
}
