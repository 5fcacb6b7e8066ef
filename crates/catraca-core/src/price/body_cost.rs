//! Costs that the body of an outcome has, such as the tokens that a language model used.

use std::collections::BTreeMap;

use crate::json_path::JsonPath;
use crate::outcome::Outcome;
use crate::policy::Name;
use crate::request::COST_MAX;

/// A cost that the body of an outcome has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyCost {
    /// The fields with units, which are added up.
    pub from: Vec<JsonPath>,
    /// What a unit costs, by an attribute; absent means one.
    pub weights: Option<CostWeights>,
}

/// What a unit costs, by the value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostWeights {
    /// The attribute.
    pub by: Name,
    /// The weight of each value, in normal form.
    pub weights: BTreeMap<String, i64>,
    /// The weight of other values, and of requests without one.
    pub default: i64,
}

impl BodyCost {
    /// The units of an outcome, before they are weighted: those that the caller reports, or those
    /// in the body. `None` if the body has none of the fields.
    pub fn units(&self, outcome: &Outcome) -> Option<i64> {
        outcome.cost.or_else(|| self.units_in_body(outcome))
    }

    #[cfg(feature = "outcome-body")]
    fn units_in_body(&self, outcome: &Outcome) -> Option<i64> {
        self.units_in(&outcome.body)
    }

    #[cfg(not(feature = "outcome-body"))]
    fn units_in_body(&self, _: &Outcome) -> Option<i64> {
        None
    }

    /// The sum of the fields in a body. A field that is not a whole number of units counts as
    /// missing.
    #[cfg(feature = "outcome-body")]
    pub fn units_in(&self, body: &serde_json::Value) -> Option<i64> {
        let found = self.from.iter().filter_map(|path| path.find(body)?.as_u64());
        let units = found.map(|units| i64::try_from(units).unwrap_or(COST_MAX).min(COST_MAX));
        units.reduce(|sum, units| (sum + units).min(COST_MAX))
    }
}

impl CostWeights {
    /// What units cost for a value of the attribute, at most [`COST_MAX`].
    pub fn weigh(&self, units: i64, value: Option<&str>) -> i64 {
        let weight = value.and_then(|value| self.weights.get(value)).unwrap_or(&self.default);
        units.saturating_mul(*weight).min(COST_MAX)
    }
}

#[cfg(all(test, feature = "outcome-body"))]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn cost(from: &[&str]) -> BodyCost {
        let from = from.iter().filter_map(|path| JsonPath::parse(path)).collect();
        BodyCost { from, weights: None }
    }

    #[test]
    fn fields_that_exist_are_added_up() {
        let openai = json!({"usage": {"prompt_tokens": 9, "total_tokens": 21}});
        let anthropic = json!({"usage": {"input_tokens": 25, "output_tokens": 15}});
        let total = cost(&["usage.total_tokens"]);
        let both = cost(&["usage.input_tokens", "usage.output_tokens"]);
        assert_eq!((total.units_in(&openai), total.units_in(&anthropic)), (Some(21), None));
        assert_eq!((both.units_in(&openai), both.units_in(&anthropic)), (None, Some(40)));
        assert_eq!(both.units_in(&json!({"usage": {"output_tokens": 15}})), Some(15));
        for body in [json!({"total": -1}), json!({"total": 1.5}), json!({"total": "7"}), json!([])]
        {
            assert_eq!(cost(&["total"]).units_in(&body), None, "{body}");
        }
        let large = json!({"a": u64::MAX, "b": u64::MAX});
        assert_eq!(cost(&["a", "b"]).units_in(&large), Some(COST_MAX));
    }

    #[test]
    fn a_reported_cost_goes_before_the_body() {
        let body = json!({"total": 7});
        let outcome = Outcome { body, cost: Some(3), ..Outcome::default() };
        assert_eq!(cost(&["total"]).units(&outcome), Some(3));
        assert_eq!(cost(&["total"]).units(&Outcome { cost: None, ..outcome }), Some(7));
        assert_eq!(cost(&["total"]).units(&Outcome::default()), None);
    }

    #[test]
    fn a_weight_multiplies_within_bounds() {
        let weights = [("large".to_owned(), 10), ("free".to_owned(), 0)];
        let weights = CostWeights { by: "model".into(), weights: weights.into(), default: 20 };
        assert_eq!(weights.weigh(7, Some("large")), 70);
        assert_eq!(weights.weigh(7, Some("free")), 0);
        assert_eq!((weights.weigh(7, Some("other")), weights.weigh(7, None)), (140, 140));
        assert_eq!(weights.weigh(COST_MAX, Some("large")), COST_MAX);
    }

    proptest! {
        #[test]
        fn any_body_has_bounded_units(body in "[\\[\\]{}\":,ab0-9.-]{0,60}") {
            let body = serde_json::from_str(&body).unwrap_or(json!({ "a": { "b": body } }));
            let units = cost(&["a.b", "a", "0"]).units_in(&body);
            prop_assert!(units.is_none_or(|units| (0..=COST_MAX).contains(&units)));
        }
    }
}
