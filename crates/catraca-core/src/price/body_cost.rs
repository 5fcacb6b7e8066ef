//! Costs that the body of an outcome has, such as the tokens that a language model used.

use std::collections::BTreeMap;

use crate::json_path::JsonPath;
use crate::outcome::Outcome;
use crate::policy::Name;
use crate::request::COST_MAX;

/// A cost that the body of an outcome has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyCost {
    /// The fields with units, whose prices are added up.
    pub from: Vec<CostField>,
    /// What a unit costs, by an attribute; absent means one.
    pub weights: Option<CostWeights>,
}

/// A number of units in a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostField {
    /// The name by which weights refer to it.
    pub name: Option<Name>,
    /// Where it can be. The first path that has a whole number counts.
    pub paths: Vec<JsonPath>,
}

/// What a unit of each field costs, by the value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostWeights {
    /// The attribute.
    pub by: Name,
    /// The weights of each value, in normal form.
    pub weights: BTreeMap<String, FieldWeights>,
    /// The weights of other values, and of requests without one.
    pub default: FieldWeights,
}

/// What a unit of each field costs, in the order of [`BodyCost::from`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldWeights(pub Vec<i64>);

impl BodyCost {
    /// What an outcome costs: the units that the caller reports, or those in the body, weighted.
    /// `value` is that of the attribute which weights depend on. `None` if the body has none of the
    /// fields.
    pub fn price(&self, outcome: &Outcome, value: Option<&str>) -> Option<i64> {
        match (outcome.cost, &self.weights) {
            (Some(units), Some(weights)) => Some(weights.weigh(units, value)),
            (Some(units), None) => Some(units),
            (None, _) => self.price_in_body(outcome, value),
        }
    }

    #[cfg(feature = "outcome-body")]
    fn price_in_body(&self, outcome: &Outcome, value: Option<&str>) -> Option<i64> {
        self.price_of(&outcome.body, value)
    }

    #[cfg(not(feature = "outcome-body"))]
    fn price_in_body(&self, _: &Outcome, _: Option<&str>) -> Option<i64> {
        None
    }

    /// The sum of the fields in a body, weighted.
    #[cfg(feature = "outcome-body")]
    pub fn price_of(&self, body: &serde_json::Value, value: Option<&str>) -> Option<i64> {
        let weights = self.weights.as_ref().map(|weights| weights.of(value));
        let fields = self.from.iter().enumerate();
        let prices = fields.filter_map(|(index, field)| {
            let units = field.units_in(body)?;
            Some(weights.map_or(units, |weights| weights.weigh(index, units)))
        });
        prices.reduce(|sum, price| (sum + price).min(COST_MAX))
    }
}

impl CostField {
    /// The units in a body. A value that is not a whole number of units counts as missing.
    #[cfg(feature = "outcome-body")]
    fn units_in(&self, body: &serde_json::Value) -> Option<i64> {
        let units = self.paths.iter().find_map(|path| path.find(body)?.as_u64())?;
        Some(i64::try_from(units).unwrap_or(COST_MAX).min(COST_MAX))
    }
}

impl CostWeights {
    /// What units cost of which the field is not known: as much as the dearest field, at most
    /// [`COST_MAX`].
    pub fn weigh(&self, units: i64, value: Option<&str>) -> i64 {
        let dearest = self.of(value).0.iter().copied().max();
        bounded_product(units, dearest.unwrap_or(1))
    }

    fn of(&self, value: Option<&str>) -> &FieldWeights {
        value.and_then(|value| self.weights.get(value)).unwrap_or(&self.default)
    }
}

impl FieldWeights {
    /// What units of the field with this index cost.
    #[cfg(feature = "outcome-body")]
    fn weigh(&self, index: usize, units: i64) -> i64 {
        bounded_product(units, self.0.get(index).copied().unwrap_or(1))
    }
}

fn bounded_product(units: i64, weight: i64) -> i64 {
    units.saturating_mul(weight).min(COST_MAX)
}

#[cfg(all(test, feature = "outcome-body"))]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn cost(from: &[&str]) -> BodyCost {
        let field = |texts: &&str| {
            let paths = texts.split('|').filter_map(JsonPath::parse).collect();
            CostField { name: None, paths }
        };
        BodyCost { from: from.iter().map(field).collect(), weights: None }
    }

    fn units(cost: &BodyCost, body: &serde_json::Value) -> Option<i64> {
        cost.price_of(body, None)
    }

    #[test]
    fn fields_that_exist_are_added_up() {
        let openai = json!({"usage": {"prompt_tokens": 9, "total_tokens": 21}});
        let anthropic = json!({"usage": {"input_tokens": 25, "output_tokens": 15}});
        let total = cost(&["usage.total_tokens"]);
        let both = cost(&["usage.input_tokens", "usage.output_tokens"]);
        assert_eq!((units(&total, &openai), units(&total, &anthropic)), (Some(21), None));
        assert_eq!((units(&both, &openai), units(&both, &anthropic)), (None, Some(40)));
        assert_eq!(units(&both, &json!({"usage": {"output_tokens": 15}})), Some(15));
        for body in [json!({"total": -1}), json!({"total": 1.5}), json!({"total": "7"}), json!([])]
        {
            assert_eq!(units(&cost(&["total"]), &body), None, "{body}");
        }
        let large = json!({"a": u64::MAX, "b": u64::MAX});
        assert_eq!(units(&cost(&["a", "b"]), &large), Some(COST_MAX));
    }

    #[test]
    fn the_first_place_that_has_a_number_counts() {
        let either = cost(&["usage.input_tokens|message.usage.input_tokens"]);
        let message = json!({"usage": {"input_tokens": 25}});
        assert_eq!(units(&either, &message), Some(25));
        assert_eq!(units(&either, &json!({ "message": message })), Some(25));
        let both = json!({"usage": {"input_tokens": 30}, "message": message});
        assert_eq!(units(&either, &both), Some(30));
        let unreadable = json!({"usage": {"input_tokens": "30"}, "message": message});
        assert_eq!(units(&either, &unreadable), Some(25));
    }

    #[test]
    fn a_reported_cost_goes_before_the_body() {
        let body = json!({"total": 7});
        let outcome = Outcome { body, cost: Some(3), ..Outcome::default() };
        assert_eq!(cost(&["total"]).price(&outcome, None), Some(3));
        assert_eq!(cost(&["total"]).price(&Outcome { cost: None, ..outcome }, None), Some(7));
        assert_eq!(cost(&["total"]).price(&Outcome::default(), None), None);
    }

    fn weights() -> CostWeights {
        let of = |input, output| FieldWeights(vec![input, output]);
        let weights = [("large".to_owned(), of(3, 15)), ("free".to_owned(), of(0, 0))];
        CostWeights { by: "model".into(), weights: weights.into(), default: of(20, 20) }
    }

    #[test]
    fn each_field_has_its_own_weight() {
        let cost = BodyCost { weights: Some(weights()), ..cost(&["input", "output"]) };
        let price = |body: serde_json::Value, value| cost.price_of(&body, value);
        let body = || json!({"input": 1_000, "output": 10});
        assert_eq!(price(body(), Some("large")), Some(3_150));
        assert_eq!(price(body(), Some("free")), Some(0));
        assert_eq!(
            (price(body(), Some("other")), price(body(), None)),
            (Some(20_200), Some(20_200))
        );
        assert_eq!(price(json!({"output": 10}), Some("large")), Some(150));
        assert_eq!(price(json!({}), Some("large")), None);
        assert_eq!(price(json!({"input": 1_u64 << 60}), Some("large")), Some(COST_MAX));
    }

    #[test]
    fn units_of_an_unknown_field_cost_as_much_as_the_dearest() {
        let weights = weights();
        assert_eq!(weights.weigh(7, Some("large")), 105);
        assert_eq!(weights.weigh(7, Some("free")), 0);
        assert_eq!((weights.weigh(7, Some("other")), weights.weigh(7, None)), (140, 140));
        assert_eq!(weights.weigh(COST_MAX, Some("large")), COST_MAX);
        let cost = BodyCost { weights: Some(weights), ..cost(&["input", "output"]) };
        let reported = Outcome { cost: Some(7), ..Outcome::default() };
        assert_eq!(cost.price(&reported, Some("large")), Some(105));
    }

    proptest! {
        #[test]
        fn any_body_has_bounded_units(body in "[\\[\\]{}\":,ab0-9.-]{0,60}") {
            let body = serde_json::from_str(&body).unwrap_or(json!({ "a": { "b": body } }));
            let units = units(&cost(&["a.b|b", "a", "0"]), &body);
            prop_assert!(units.is_none_or(|units| (0..=COST_MAX).contains(&units)));
        }
    }
}
