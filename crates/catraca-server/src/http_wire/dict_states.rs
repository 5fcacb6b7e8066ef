//! Reads the bucket states that the DICT answers with: `ListPoliciesResponse`, `GetPolicyResponse`.
//!
//! Only the time of the response and the name and tokens of each policy are used. The signature is
//! not checked: the program that called the DICT has received it over its own connection.

use catraca::{BucketObservation, Time};
use quick_xml::Reader;
use quick_xml::events::Event;
use schemars::JsonSchema;
use serde::Deserialize;

/// The balance of one bucket as the upstream reports it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObservedBucket {
    /// The policy. Capitals do not matter.
    pub policy: String,
    /// Whole tokens.
    pub available: i64,
    /// The size of the upstream's bucket. What it has more than ours stays in reserve.
    pub capacity: Option<i64>,
}

/// What an answer of the DICT says.
pub struct DictStates {
    /// The instant of the response.
    pub at: Time,
    /// The category of the participant.
    pub category: Option<String>,
    /// The balance of each policy.
    pub buckets: Vec<ObservedBucket>,
}

impl ObservedBucket {
    /// The same for the engine.
    pub fn observation(&self) -> BucketObservation<'_> {
        let Self { policy, available, capacity } = self;
        BucketObservation { policy, available: *available, capacity: *capacity }
    }
}

/// Reads an answer. Fails with the reason.
pub fn read_states(xml: &str) -> Result<DictStates, String> {
    let mut reader = Reader::from_str(xml);
    let mut path: Vec<String> = Vec::new();
    let mut found = FoundStates::default();
    loop {
        match reader.read_event().map_err(|error| error.to_string())? {
            Event::Start(start) => {
                path.push(String::from_utf8_lossy(start.local_name().as_ref()).into_owned());
                if path.last().is_some_and(|name| name == "Policy") {
                    found.policies.push(FoundPolicy::default());
                }
            }
            Event::End(_) => drop(path.pop()),
            Event::Text(text) => {
                let text = text.decode().map_err(|error| error.to_string())?;
                found.add(&path, text.trim())?;
            }
            Event::Eof => return found.finish(&path),
            _ => {}
        }
    }
}

/// What was found so far.
#[derive(Default)]
struct FoundStates {
    at: Option<Time>,
    category: Option<String>,
    policies: Vec<FoundPolicy>,
}

#[derive(Default)]
struct FoundPolicy {
    name: Option<String>,
    available: Option<i64>,
    capacity: Option<i64>,
}

impl FoundStates {
    fn add(&mut self, path: &[String], text: &str) -> Result<(), String> {
        let names: Vec<&str> = path.iter().rev().take(2).map(String::as_str).collect();
        match (names.as_slice(), self.policies.last_mut()) {
            (["ResponseTime", ..], _) => {
                let invalid = |_| format!("`{text}` in ResponseTime is not an instant");
                self.at = Some(Time::parse_rfc3339(text).map_err(invalid)?);
            }
            (["Name", "Policy"], Some(policy)) => policy.name = Some(text.to_owned()),
            (["AvailableTokens", "Policy"], Some(policy)) => {
                let invalid = |_| format!("`{text}` in AvailableTokens is not a whole number");
                policy.available = Some(text.parse().map_err(invalid)?);
            }
            // A capacity that is not a number is left out: the balance alone is enough.
            (["Capacity", "Policy"], Some(policy)) => policy.capacity = text.parse().ok(),
            (["Category", ..], None) if !text.is_empty() => self.category = Some(text.to_owned()),
            _ => {}
        }
        Ok(())
    }

    fn finish(self, path: &[String]) -> Result<DictStates, String> {
        if let Some(open) = path.last() {
            return Err(format!("the element {open} has no end"));
        }
        let at = self.at.ok_or("there is no ResponseTime")?;
        let complete = |policy: FoundPolicy| {
            let missing = "a Policy has no Name or no AvailableTokens";
            let capacity = policy.capacity;
            let (policy, available) = policy.name.zip(policy.available).ok_or(missing)?;
            Ok(ObservedBucket { policy, available, capacity })
        };
        let buckets: Result<Vec<_>, String> = self.policies.into_iter().map(complete).collect();
        Ok(DictStates { at, category: self.category, buckets: buckets? })
    }
}

#[cfg(test)]
#[path = "../../../../fuzz/checks/dict_states.rs"]
mod dict_states_check;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_of_the_directory_is_read_with_whatever_else_is_in_it() {
        let xml = r#"<?xml version="1.0"?><d:ListPoliciesResponse xmlns:d="urn:x">
            <Signature><Name>not a policy</Name></Signature>
            <ResponseTime>2026-01-31T12:00:00.250Z</ResponseTime><Category>A</Category>
            <Policies>
              <Policy><AvailableTokens>-3</AvailableTokens><Capacity>70</Capacity>
                <Name>KEYS_CHECK</Name></Policy>
              <Policy><Name>ENTRIES_READ</Name><AvailableTokens> 50000 </AvailableTokens></Policy>
            </Policies></d:ListPoliciesResponse>"#;
        let DictStates { at, category, buckets } = read_states(xml).unwrap();
        assert_eq!(at.to_rfc3339(), "2026-01-31T12:00:00.250Z");
        assert_eq!(category.as_deref(), Some("A"));
        let states: Vec<_> =
            buckets.iter().map(|state| (&*state.policy, state.available, state.capacity)).collect();
        assert_eq!(states, [("KEYS_CHECK", -3, Some(70)), ("ENTRIES_READ", 50_000, None)]);
    }

    #[test]
    fn what_is_missing_or_broken_is_named() {
        let time = "<ResponseTime>2026-01-31T12:00:00Z</ResponseTime>";
        for (xml, why) in [
            ("", "no ResponseTime"),
            ("<a>", "the element a has no end"),
            ("<a></b>", "b"),
            ("<R><ResponseTime>soon</ResponseTime></R>", "`soon` in ResponseTime"),
            (&format!("<R>{time}<Policy><Name>X</Name></Policy></R>"), "no AvailableTokens"),
            (
                &format!("<R>{time}<Policy><AvailableTokens>many</AvailableTokens></Policy></R>"),
                "`many` in AvailableTokens",
            ),
        ] {
            let error = read_states(xml).err().unwrap();
            assert!(error.contains(why), "{xml}: {error}");
        }
    }

    fn read(xml: &str) -> Result<Vec<(String, i64)>, String> {
        let states = read_states(xml)?;
        Ok(states.buckets.into_iter().map(|bucket| (bucket.policy, bucket.available)).collect())
    }

    /// Runs the check of the fuzz target with the inputs in `fuzz/corpus`.
    #[test]
    fn inputs_of_dict_states() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/dict_states");
        let mut count = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let input = std::fs::read(entry.unwrap().path()).unwrap();
            dict_states_check::check(&input, read);
            count += 1;
        }
        assert!(count > 5, "{count}");
    }
}
