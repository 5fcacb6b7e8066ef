//! Explains a check: which policies apply, with which key, tier and price, and why. Reads no state.

mod policy_text;

use catraca_core::conclude;
use catraca_core::limit::Penalty;
use catraca_core::plan::{display_parts, held_units};
use catraca_core::policy::{Mode, Name, Terms};
use catraca_core::price::{BodyCost, Cost, CostField, FieldWeights, Price};
use catraca_core::refusal::Refusal;
use catraca_core::request::Check;
use catraca_core::select::SelectedPolicy;

use crate::Error;
use crate::engine::Engine;
use crate::rule_set::RuleSet;
use crate::store::Store;

pub use policy_text::{
    TextField, ban_fields, describe_key, policy_fields, terms_fields, tier_condition,
};

/// Which policies apply to a request, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The revision of the catalog.
    pub revision: Name,
    /// The gate of the request.
    pub gate: String,
    /// Whether the catalog does not declare the gate, so that the default policies apply.
    pub unlisted: bool,
    /// The reason code of the list entry that decides, if one does, and the reason that the entry
    /// gives.
    pub list: Option<(&'static str, Option<String>)>,
    /// One row per policy and key.
    pub rows: Vec<ExplainedPolicy>,
    /// Policies of the gate that have no row, and why.
    pub absent: Vec<(Name, &'static str)>,
}

/// One policy that applies, with one key.
#[derive(Clone, Debug, PartialEq)]
pub struct ExplainedPolicy {
    /// The policy that applies.
    pub policy: Name,
    /// The policy of the gate that `otherwise` replaced with this one, if any.
    pub instead_of: Option<Name>,
    /// The number of the matching tier, from one, and its condition.
    pub tier: Option<(usize, String)>,
    /// Whether the tier has a counter of its own: the key does not determine the tier.
    pub own_counter: bool,
    /// The attributes of the key and their values, private ones as pseudonyms.
    pub key: Vec<(String, String)>,
    /// The limit as text.
    pub limit: String,
    /// The block as text.
    pub block: Option<String>,
    /// The units that the check charges.
    pub held: i64,
    /// Whether `held` exceeds the capacity of the limit, so that the request can never pass.
    pub too_costly: bool,
    /// The final cost of the request, as text.
    pub price: String,
    /// The mode of the policy for this row.
    pub mode: Mode,
}

impl<S: Store> Engine<S> {
    /// Explains which policies apply to a request, with which key, tier and price. Changes nothing.
    ///
    /// ```
    /// use catraca::{Catalog, Check, Engine};
    ///
    /// let catalog = Catalog::parse("[policy.api]\n by = ['ip']\n window = '9 per 1m'")?;
    /// let engine = Engine::new(catalog);
    /// let explained = engine.explain(&Check::new("api", [("ip", "198.51.100.7")]))?;
    /// assert_eq!(&*explained.rows[0].policy, "api");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn explain(&self, check: &Check<'_>) -> Result<Explanation, Error> {
        check.validate()?;
        let rules = self.rules();
        let gate = rules.policies_for(check.gate)?;
        let selected = rules.selector(check.namespace).select(gate.policies, &check.subject)?;
        let now = self.now();
        let listed = if check.lists {
            rules.list_entry_for(check.namespace, &check.subject, self.digester(), now)?
        } else {
            None
        };
        let list = listed.map(|listed| {
            let entry = listed.entry;
            let decision = conclude::conclude_from_list(&rules.catalog, entry, listed.allows, now);
            (decision.reason.as_str(), entry.reason.clone())
        });
        let has_row =
            |row: &SelectedPolicy<'_, '_>, id| row.policy == id || row.instead_of == Some(id);
        let missing =
            gate.policies.iter().filter(|id| !selected.iter().any(|row| has_row(row, **id)));
        let absent = missing.map(|id| {
            let policy = rules.catalog.policy(*id);
            (policy.name.clone(), why_absent(policy.mode))
        });
        let rows: Result<Vec<_>, Refusal> =
            selected.iter().map(|row| self.explain_row(&rules, check, row)).collect();
        Ok(Explanation {
            revision: rules.catalog.revision.clone(),
            gate: check.gate.to_owned(),
            unlisted: gate.is_default,
            list,
            absent: absent.collect(),
            rows: rows?,
        })
    }

    fn explain_row(
        &self,
        rules: &RuleSet,
        check: &Check<'_>,
        row: &SelectedPolicy<'_, '_>,
    ) -> Result<ExplainedPolicy, Refusal> {
        let policy = rules.catalog.policy(row.policy);
        let tier = row.tier.and_then(|index| {
            let tier = policy.tiers.get(usize::from(index))?;
            Some((usize::from(index) + 1, describe_condition(&tier.when)))
        });
        let catalog = &rules.catalog;
        let held = row.terms.map_or(Ok(0), |terms| held_units(catalog, policy, terms, check))?;
        let capacity = row.terms.and_then(|terms| terms.limit.capacity());
        Ok(ExplainedPolicy {
            policy: policy.name.clone(),
            instead_of: row.instead_of.map(|id| rules.catalog.policy(id).name.clone()),
            tier,
            own_counter: row.tier_counter.is_some(),
            key: display_parts(&rules.catalog, self.digester(), &row.parts),
            limit: row
                .terms
                .map_or_else(|| "denies: no key".to_owned(), |terms| terms.describe_limit()),
            block: row.terms.and_then(|terms| terms.block).map(describe_block),
            held,
            // Even a check of zero units needs one free unit.
            too_costly: capacity.is_some_and(|capacity| held.max(1) > capacity),
            price: row.terms.map_or_else(String::new, describe_price),
            mode: row.mode,
        })
    }
}

fn why_absent(mode: Mode) -> &'static str {
    match mode {
        Mode::Off => "its mode is off",
        Mode::Enforce | Mode::Shadow => "it is skipped or shares a row with an earlier policy",
    }
}

fn describe_condition(when: &[(Name, Vec<Name>)]) -> String {
    let all = when.iter().map(|(name, values)| format!("{name} = {}", values.join(" or ")));
    all.collect::<Vec<_>>().join(", ")
}

/// The length of a block as text.
pub fn describe_block(penalty: Penalty) -> String {
    if !penalty.escalates() {
        return penalty.first.to_string();
    }
    let Penalty { first, factor, max, forget } = penalty;
    format!(
        "{first}, each further one {factor} times the previous, up to {max}; {first} again after \
         {forget} without a block"
    )
}

/// The price of a request as text.
pub fn describe_price(terms: &Terms) -> String {
    match &terms.cost {
        Cost::Request => "the request's cost, or 1".to_owned(),
        Cost::Units(units) => format!("always {units}"),
        Cost::Reported => "as reported at settle".to_owned(),
        Cost::Body(cost) => describe_body_cost(cost),
        Cost::Table(table) => {
            let exact = table
                .exact
                .iter()
                .map(|(status, price)| format!("{status}: {}", describe_units(*price)));
            let classes = table.class.iter().enumerate();
            let classes = classes
                .filter_map(|(class, p)| Some(format!("{class}xx: {}", describe_units((*p)?))));
            let none = table.none.map(|price| format!("none: {}", describe_units(price)));
            let rest =
                format!("else {}", table.default.map_or_else(|| "1".to_owned(), describe_units));
            exact.chain(classes).chain(none).chain([rest]).collect::<Vec<_>>().join(", ")
        }
    }
}

fn describe_body_cost(cost: &BodyCost) -> String {
    let fields: Vec<String> = cost.from.iter().map(describe_cost_field).collect();
    let fields = fields.join(" + ");
    let Some(weights) = &cost.weights else { return fields };
    let listed = weights.weights.iter();
    let listed =
        listed.map(|(value, own)| format!("{value}: {}", describe_weights(own, &cost.from)));
    let listed: Vec<String> = listed.collect();
    let default = describe_weights(&weights.default, &cost.from);
    format!("({fields}) by {} ({}, else {default})", weights.by, listed.join(", "))
}

fn describe_cost_field(field: &CostField) -> String {
    let paths: Vec<String> = field.paths.iter().map(|path| format!("body.{path}")).collect();
    let paths = paths.join("|");
    field.name.as_ref().map_or(paths.clone(), |name| format!("{name} {paths}"))
}

/// One weight, or one for each named field.
fn describe_weights(weights: &FieldWeights, from: &[CostField]) -> String {
    let first = weights.0.first().copied().unwrap_or(1);
    if weights.0.iter().all(|weight| *weight == first) {
        return first.to_string();
    }
    let pairs = from.iter().zip(&weights.0);
    let named = pairs
        .map(|(field, weight)| format!("{weight} per {}", field.name.as_deref().unwrap_or("unit")));
    named.collect::<Vec<_>>().join(" and ")
}

fn describe_units(price: Price) -> String {
    match price {
        Price::Units(units) => units.to_string(),
        Price::Drain => "drain".to_owned(),
    }
}
