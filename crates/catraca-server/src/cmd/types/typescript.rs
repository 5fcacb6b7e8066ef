//! The gates of a catalog as a TypeScript type.

use catraca::core::catalog::GateAttribute;

use super::gate_attributes::GateAttributes;

/// A module that exports the type `Gates`.
pub fn render(gates: &[GateAttributes]) -> String {
    let lines: String = gates
        .iter()
        .map(|one| format!("  {}: {};\n", property(&one.gate), attributes(&one.attributes)))
        .collect();
    format!(
        "// Made by `catraca types --lang ts`: make it again instead of editing it.\n\n\
         /** The attributes that each gate of the catalog reads. */\n\
         export type Gates = {{\n{lines}}};\n"
    )
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
