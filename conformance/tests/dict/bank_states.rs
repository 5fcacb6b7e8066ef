//! Reads the states of buckets that the bank lists, as XML.

/// The text of the first element of this name.
pub fn element(xml: &str, name: &str) -> Option<String> {
    let after = xml.split(&format!("<{name}>")).nth(1)?;
    after.split('<').next().map(str::to_owned)
}

/// Name, tokens and size of each policy.
pub fn read_states(xml: &str) -> Vec<(String, i64, i64)> {
    let policies = xml.split("<Policy>").skip(1);
    policies
        .map(|policy| {
            let number = |name| element(policy, name).unwrap().parse().unwrap();
            (element(policy, "Name").unwrap(), number("AvailableTokens"), number("Capacity"))
        })
        .collect()
}
