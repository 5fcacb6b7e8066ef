//! Expired settles: which policies to log, each at most once per minute.
//!
//! A caller that always settles too late would otherwise fill the log.

use std::collections::BTreeSet;

use catraca::core::ticket::TicketRow;
use catraca::core::time::Time;
use parking_lot::Mutex;

const MINUTE_MICROS: i64 = 60_000_000;

/// The policies that were logged in the current minute.
#[derive(Debug, Default)]
pub(super) struct ExpiredSettles {
    logged: Mutex<LoggedMinute>,
}

#[derive(Debug, Default)]
struct LoggedMinute {
    minute: i64,
    policies: BTreeSet<String>,
}

impl ExpiredSettles {
    /// The policies of a ticket that were not logged in this minute. Counts them as logged.
    pub fn policies_to_log<'r>(&self, rows: &'r [TicketRow], at: Time) -> Vec<&'r str> {
        let minute = at.micros() / MINUTE_MICROS;
        let mut logged = self.logged.lock();
        if logged.minute != minute {
            *logged = LoggedMinute { minute, policies: BTreeSet::new() };
        }
        let names = rows.iter().map(|row| row.policy.as_str());
        names.filter(|policy| logged.policies.insert((*policy).to_owned())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use catraca::core::digest::Key;

    fn rows(policies: &[&str]) -> Vec<TicketRow> {
        let row = |policy: &&str| TicketRow {
            policy: (*policy).to_owned(),
            tier: None,
            own_counter: false,
            key: Key::from_bytes([0; 16]),
            held: 0,
            shadow: false,
            each: false,
            parts: Vec::new(),
        };
        policies.iter().map(row).collect()
    }

    #[test]
    fn a_policy_is_logged_once_per_minute() {
        let settles = ExpiredSettles::default();
        let at = |seconds: i64| Time::from_micros(seconds * 1_000_000);
        let both = rows(&["login", "login", "search"]);
        assert_eq!(settles.policies_to_log(&both, at(61)), ["login", "search"]);
        assert!(settles.policies_to_log(&both, at(119)).is_empty());
        assert_eq!(settles.policies_to_log(&rows(&["other"]), at(119)), ["other"]);
        assert_eq!(settles.policies_to_log(&both, at(120)), ["login", "search"]);
    }
}
