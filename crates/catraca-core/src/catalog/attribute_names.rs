//! The attributes that the catalog names, and the error of a name that is none of them.

use std::collections::BTreeSet;
use std::fmt;

use super::Catalog;
use crate::located::names::{NAME_MAX, nearest};
use crate::policy::KeySpec;

/// A name that no part of the catalog reads as an attribute: most likely it is misspelt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownAttribute {
    /// The name, cut at the longest valid one: it comes from a caller.
    name: String,
    /// The attribute that was probably meant.
    nearest: Option<String>,
}

impl Catalog {
    /// The attributes that the catalog names: those it declares, counts by, has facts about,
    /// matches in tiers, or reads in routes or ban rules.
    pub fn attribute_names(&self) -> BTreeSet<&str> {
        let mut names: BTreeSet<&str> = self.attributes.keys().map(|name| &**name).collect();
        names.insert("ip");
        names.extend(self.facts.names().map(|(_, owner)| &**owner));
        let set = self.routes.iter().flat_map(|route| &route.set);
        names.extend(set.map(|(name, _)| &**name));
        for policy in &self.policies {
            match &policy.key_spec {
                KeySpec::By(parts) => names.extend(parts.iter().flatten().map(|name| &**name)),
                KeySpec::Each(each) => names.extend(each.iter().map(|name| &**name)),
            }
            names.extend(policy.weights().map(|weights| &*weights.by));
            let conditions = policy.tiers.iter().flat_map(|tier| &tier.when);
            names.extend(conditions.map(|(name, _)| &**name));
            let rules = policy.bans.iter().flat_map(|ban| ban.when.attributes());
            names.extend(rules.map(|name| &**name));
        }
        names
    }

    /// Refuses a name that is not one of [`Self::attribute_names`].
    pub fn check_attribute_name(&self, name: &str) -> Result<(), UnknownAttribute> {
        let names = self.attribute_names();
        if names.contains(name) {
            return Ok(());
        }
        let names: Vec<&str> = names.into_iter().collect();
        Err(UnknownAttribute {
            name: name.chars().take(NAME_MAX).collect(),
            nearest: nearest(name, &names).map(str::to_owned),
        })
    }
}

impl fmt::Display for UnknownAttribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nothing in the catalog reads the attribute `{}`: ", self.name)?;
        if let Some(nearest) = &self.nearest {
            write!(f, "did you mean `{nearest}`? ")?;
        }
        f.write_str("if callers send it, declare it as an [attribute]")
    }
}

impl std::error::Error for UnknownAttribute {}

#[cfg(test)]
mod tests {
    use super::*;

    const CATALOG: &str = r#"
        [policy.api]
        by = ["customer"]
        window = "9 per 1m"
        tier = [{ when = { plan = "gold" }, window = "20 per 1m" }]
        [policy.login]
        each = ["ip", "account"]
        window = "9 per 1m"
        [[route]]
        match = "POST /login"
        gate = "login"
        set = { account = "header:x-account", device = "header:x-device" }
        [attribute.region]
        [facts.customer.ana]
        plan = "gold""#;

    #[test]
    fn every_part_of_the_catalog_names_attributes() {
        let catalog = Catalog::parse(CATALOG).unwrap();
        let names: Vec<&str> = catalog.attribute_names().into_iter().collect();
        let expected =
            ["account", "customer", "device", "ip", "plan", "region", "session", "token"];
        assert_eq!(names, expected);
        assert!(expected.iter().all(|name| catalog.check_attribute_name(name).is_ok()));
    }

    #[cfg(feature = "cel")]
    #[test]
    fn ban_rules_name_attributes() {
        let catalog = r#"
            [policy.login]
            by = ["ip"]
            window = "9 per 1m"
            ban = [{ when = "subject.user == 'root'", for = "1h", reason = "root" }]"#;
        let catalog = Catalog::parse(catalog).unwrap();
        assert_eq!(catalog.check_attribute_name("user"), Ok(()));
    }

    #[test]
    fn an_unknown_name_is_shown_with_the_nearest() {
        let catalog = Catalog::parse(CATALOG).unwrap();
        let shown = |name: &str| catalog.check_attribute_name(name).unwrap_err().to_string();
        assert_eq!(
            shown("customr"),
            "nothing in the catalog reads the attribute `customr`: did you mean `customer`? if \
             callers send it, declare it as an [attribute]"
        );
        assert!(!shown("colour").contains("did you mean"));
        assert!(shown(&"x".repeat(100_000)).len() < 250);
    }
}
