//! The balances in an answer of the DICT are those that its elements have.

/// The input is an answer. `read` returns the name and the balance of each bucket, or why there are
/// none.
pub fn check(data: &[u8], read: impl Fn(&str) -> Result<Vec<(String, i64)>, String>) {
    let Ok(xml) = std::str::from_utf8(data) else { return };
    let found = read(xml);
    assert_eq!(found, read(xml), "a second reading differs");
    match found {
        Ok(buckets) => {
            assert!(xml.contains("ResponseTime"), "an answer without an instant");
            let policies = xml.matches("Policy").count();
            assert!(buckets.len() <= policies, "{} buckets of {policies}", buckets.len());
            for (name, available) in buckets {
                assert!(xml.contains(&name), "{name:?}");
                let digits = available.unsigned_abs().to_string();
                assert!(xml.contains(&digits), "{available}");
            }
        }
        Err(why) => assert!(!why.is_empty()),
    }
}
