//! Reads the bucket states that the DICT answers with: `ListPoliciesResponse`, `GetPolicyResponse`.
//!
//! Only the time of the response and the name and tokens of each policy are used. The signature is
//! not checked: the program that called the DICT has received it over its own connection.

use catraca::Time;
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
}

/// The instant of the response, and the tokens of each policy. Fails with the reason.
pub fn read_states(xml: &str) -> Result<(Time, Vec<ObservedBucket>), String> {
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
    policies: Vec<FoundPolicy>,
}

#[derive(Default)]
struct FoundPolicy {
    name: Option<String>,
    available: Option<i64>,
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
            _ => {}
        }
        Ok(())
    }

    fn finish(self, path: &[String]) -> Result<(Time, Vec<ObservedBucket>), String> {
        if let Some(open) = path.last() {
            return Err(format!("the element {open} has no end"));
        }
        let at = self.at.ok_or("there is no ResponseTime")?;
        let complete = |policy: FoundPolicy| {
            let missing = "a Policy has no Name or no AvailableTokens";
            let policy = policy.name.zip(policy.available).ok_or(missing)?;
            Ok(ObservedBucket { policy: policy.0, available: policy.1 })
        };
        let states: Result<Vec<_>, String> = self.policies.into_iter().map(complete).collect();
        Ok((at, states?))
    }
}

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
        let (at, states) = read_states(xml).unwrap();
        assert_eq!(at.to_rfc3339(), "2026-01-31T12:00:00.250Z");
        let states: Vec<_> = states.iter().map(|state| (&*state.policy, state.available)).collect();
        assert_eq!(states, [("KEYS_CHECK", -3), ("ENTRIES_READ", 50_000)]);
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
}
