//! Log lines about policies, each at most once per policy and minute.
//!
//! A caller that always settles too late, or a ban rule that always fails, would otherwise fill the
//! log.

use std::collections::BTreeSet;

use catraca::core::time::Time;
use parking_lot::Mutex;

const MINUTE_MICROS: i64 = 60_000_000;

/// The policies of which one kind of line was logged in the current minute.
#[derive(Debug, Default)]
pub(super) struct PolicyLines {
    logged: Mutex<LoggedMinute>,
}

#[derive(Debug, Default)]
struct LoggedMinute {
    minute: i64,
    policies: BTreeSet<String>,
}

impl PolicyLines {
    /// Those of these policies that were not logged in this minute. Counts them as logged.
    pub fn to_log<'p>(&self, policies: impl Iterator<Item = &'p str>, at: Time) -> Vec<&'p str> {
        let minute = at.micros() / MINUTE_MICROS;
        let mut logged = self.logged.lock();
        if logged.minute != minute {
            *logged = LoggedMinute { minute, policies: BTreeSet::new() };
        }
        policies.filter(|policy| logged.policies.insert((*policy).to_owned())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_logged_once_per_minute() {
        let lines = PolicyLines::default();
        let at = |seconds: i64| Time::from_micros(seconds * 1_000_000);
        let both = ["login", "login", "search"];
        assert_eq!(lines.to_log(both.into_iter(), at(61)), ["login", "search"]);
        assert!(lines.to_log(both.into_iter(), at(119)).is_empty());
        assert_eq!(lines.to_log(["other"].into_iter(), at(119)), ["other"]);
        assert_eq!(lines.to_log(both.into_iter(), at(120)), ["login", "search"]);
    }
}
