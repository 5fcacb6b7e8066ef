//! The gates of a catalog as a TypeScript type, and its limits as constants.

use catraca::Catalog;
use catraca::core::catalog::GateAttribute;

use super::gate_attributes::GateAttributes;
use crate::cmd::import::catalog_text::{PolicyConfig, policy_configs};

/// The attribute that the helpers of a checkout send.
const ADDRESS: &str = "ip";

/// A module that exports the type `Gates`.
pub fn render(gates: &[GateAttributes]) -> String {
    let head = "// Made by `catraca types --lang ts`: make it again instead of editing it.\n";
    format!("{head}\n{}", gates_type(gates))
}

/// A module that exports `Gates` and the constants that the helpers of a checkout take.
pub fn render_with_configs(catalog: &Catalog, gates: &[GateAttributes]) -> String {
    format!(
        "// Made by `catraca types --lang ts --configs`: make it again instead of editing it.\n\
         import {{ rateLimitConfig }} from \"@catraca/client/checkout\";\n\n{}\n\
         /** The limits by name. The server decides by its catalog, not by these numbers. */\n\
         export const RATE_LIMIT_CONFIGS = {{\n{}}} as const;\n",
        gates_type(gates),
        config_lines(catalog, gates)
    )
}

fn gates_type(gates: &[GateAttributes]) -> String {
    let lines: String = gates
        .iter()
        .map(|one| format!("  {}: {};\n", property(&one.gate), attributes(&one.attributes)))
        .collect();
    let head = "/** The attributes that each gate of the catalog reads. */\nexport type Gates = {";
    format!("{head}\n{lines}}};\n")
}

/// One constant per policy that can be checked with an address alone, as the helpers do.
fn config_lines(catalog: &Catalog, gates: &[GateAttributes]) -> String {
    let line = |one: PolicyConfig<'_>| {
        let PolicyConfig { constant, policy, numbers } = one;
        if !is_by_address(&policy.name, gates) {
            return format!("  // {constant} is left out: it reads more than `{ADDRESS}`.\n");
        }
        let Some([attempts, window, block]) = numbers else {
            return format!("  // {constant} is left out: it is not one limit in whole minutes.\n");
        };
        let action = serde_json::Value::from(&*policy.name);
        format!("  {constant}: rateLimitConfig({action}, {attempts}, {window}, {block}),\n")
    };
    policy_configs(catalog).into_iter().map(line).collect()
}

fn is_by_address(policy: &str, gates: &[GateAttributes]) -> bool {
    let gate = gates.iter().find(|one| *one.gate == *policy);
    gate.is_some_and(|gate| {
        let mut attributes = gate.attributes.iter();
        attributes.all(|one| !one.is_required || *one.name == *ADDRESS)
    })
}

fn attributes(attributes: &[GateAttribute]) -> String {
    if attributes.is_empty() {
        return "Record<string, never>".to_owned();
    }
    let field = |one: &GateAttribute| {
        let mark = if one.is_required { "" } else { "?" };
        format!("{}{mark}: string", property(&one.name))
    };
    let fields: Vec<String> = attributes.iter().map(field).collect();
    format!("{{ {} }}", fields.join("; "))
}

/// A property name, quoted unless it is an identifier.
fn property(name: &str) -> String {
    let is_start = |c: char| c.is_ascii_alphabetic() || c == '_' || c == '$';
    let is_identifier =
        name.starts_with(is_start) && name.chars().all(|c| is_start(c) || c.is_ascii_digit());
    if is_identifier { name.to_owned() } else { serde_json::Value::from(name).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_no_identifiers_are_quoted() {
        for (name, expected) in
            [("login", "login"), ("$a_1", "$a_1"), ("a-b", "\"a-b\""), ("1a", "\"1a\"")]
        {
            assert_eq!(property(name), expected);
        }
        assert_eq!(property("a\"b\\"), r#""a\"b\\""#);
    }
}
