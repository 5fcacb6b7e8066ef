//! A cost is bounded, whatever a body says.

use catraca_core::json_path::JsonPath;
use catraca_core::outcome::OutcomeBody;
use catraca_core::price::{BodyCost, CostField};
use catraca_core::request::COST_MAX;

/// The first line of the input is a path, the rest a body.
pub fn check(data: &[u8]) {
    let line_end = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (path, body) = data.split_at(line_end);
    let path = std::str::from_utf8(path).ok().and_then(JsonPath::parse);
    let Some(path) = path else { return };
    let body = OutcomeBody::from_json(body, 1 << 16);
    let cost = BodyCost { from: vec![CostField { name: None, paths: vec![path] }], weights: None };
    let price = cost.price_of(&body.value, None);
    assert!(price.is_none_or(|price| (0..=COST_MAX).contains(&price)), "{price:?}");
}
