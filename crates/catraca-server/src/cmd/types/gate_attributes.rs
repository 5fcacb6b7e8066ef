//! The gates of a catalog, each with the attributes that it reads.

use catraca::Catalog;
use catraca::core::catalog::{GateAttribute, gate_attributes};
use catraca::core::facts::NamespaceFacts;
use catraca::core::policy::Name;

/// A gate and its attributes, in the order in which its policies read them.
pub struct GateAttributes {
    pub gate: Name,
    pub attributes: Vec<GateAttribute>,
}

/// The declared gates in the order of the catalog, and then the policies, which are gates of their
/// own names.
pub fn of_catalog(catalog: &Catalog) -> Vec<GateAttributes> {
    let facts = NamespaceFacts::of_all(&catalog.facts);
    let policies = catalog.policies.iter().map(|policy| &policy.name);
    let undeclared = policies.filter(|name| !catalog.gate_names.contains(name));
    let names = catalog.gate_names.iter().chain(undeclared);
    let gates = names.filter_map(|name| catalog.gates.get(name));
    gates
        .map(|gate| GateAttributes {
            gate: gate.name.clone(),
            attributes: gate_attributes(catalog, facts, &gate.policies),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_gates_come_before_the_policies() {
        let catalog = r#"
            [policy.login]
            by = ["ip"]
            window = "1 per 1s"
            [policy.export]
            by = ["account"]
            window = "1 per 1s"
            [gate.shop]
            policies = ["export", "login"]
            [gate.export]
            policies = ["export"]"#;
        let gates = of_catalog(&Catalog::parse(catalog).unwrap());
        let described = gates.iter().map(|one| {
            let attributes = one.attributes.iter().map(|attribute| &*attribute.name);
            (&*one.gate, attributes.collect())
        });
        let expected =
            [("shop", vec!["account", "ip"]), ("export", vec!["account"]), ("login", vec!["ip"])];
        assert_eq!(described.collect::<Vec<(&str, Vec<&str>)>>(), expected);
    }
}
