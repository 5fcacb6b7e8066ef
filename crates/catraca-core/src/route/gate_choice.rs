//! The gate of a request whose route has a map of gates.

use std::borrow::Cow;

use crate::catalog::{Catalog, GateMap, Route, RouteGate};
use crate::policy::Name;
use crate::refusal::Refusal;
use crate::select::normalise;

impl Route {
    /// The gate of a request with these attributes; `value_of` returns what the route has read.
    pub fn gate_for<'s>(
        &self,
        catalog: &Catalog,
        value_of: impl FnOnce(&str) -> Option<&'s str>,
    ) -> Result<&Name, Refusal> {
        match &self.gate {
            RouteGate::Fixed(gate) => Ok(gate),
            RouteGate::Map(map) => {
                let raw = value_of(&map.attribute).filter(|raw| !raw.is_empty());
                map.gate_for(catalog, raw)
            }
        }
    }
}

impl GateMap {
    fn gate_for(&self, catalog: &Catalog, raw: Option<&str>) -> Result<&Name, Refusal> {
        let refusal = || Refusal::UnmappedGate { attribute: self.by.to_string() };
        let Some(raw) = raw else { return self.absent.as_ref().ok_or_else(refusal) };
        let mut value = normalise(catalog, &self.attribute, raw)?;
        if self.by != self.attribute {
            let derived = catalog.attribute_kind(&self.attribute).derived_name();
            let derived = derived.and_then(|derived| derived.derive(&value));
            value = Cow::Borrowed(derived.unwrap_or_default());
        }
        let mapped = self.gates.get(&*value).or(self.default.as_ref());
        mapped.ok_or_else(refusal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CATALOG: &str = "
        [policy.free]\nby = ['ip']\nwindow = '1 per 1s'
        [policy.paid]\nby = ['ip']\nwindow = '9 per 1s'
        [policy.none]\nby = ['ip']\nwindow = '1 per 9s'
        [attribute.plan]\nkind = 'caseless'
        [attribute.payer]\nkind = 'cpf_cnpj'
        [[route]]\nmatch = '/plan'\nset = { plan = 'header:plan' }
        gate = { by = 'plan', map = { Gold = 'paid', free = 'free' }, absent = 'none' }
        [[route]]\nmatch = '/person'\nset = { payer = 'header:payer' }
        gate = { by = 'person', map = { PJ = 'paid' }, default = 'free' }
    ";

    fn gate(route: usize, value: Option<&str>) -> Result<String, &'static str> {
        let catalog = Catalog::parse(CATALOG).unwrap();
        let chosen = catalog.routes[route].gate_for(&catalog, |_| value);
        chosen.map(|gate| gate.to_string()).map_err(|refusal| refusal.code())
    }

    #[test]
    fn a_value_chooses_a_declared_gate_and_never_names_one() {
        assert_eq!(gate(0, Some(" GOLD")), Ok("paid".to_owned()));
        assert_eq!(gate(0, Some("free")), Ok("free".to_owned()));
        assert_eq!(gate(0, None), Ok("none".to_owned()));
        assert_eq!(gate(0, Some("")), Ok("none".to_owned()));
        for value in ["paid", "none", "silver"] {
            assert_eq!(gate(0, Some(value)), Err("unmapped-gate"), "{value}");
        }
        assert_eq!(gate(0, Some(&"x".repeat(257))), Err("attribute-too-long"));
    }

    #[test]
    fn a_derived_name_chooses_a_gate() {
        assert_eq!(gate(1, Some("11.222.333/0001-81")), Ok("paid".to_owned()));
        assert_eq!(gate(1, Some("52998224725")), Ok("free".to_owned()));
        assert_eq!(gate(1, Some("5299822472")), Err("bad-attribute"));
        assert_eq!(gate(1, None), Err("unmapped-gate"));
    }
}
