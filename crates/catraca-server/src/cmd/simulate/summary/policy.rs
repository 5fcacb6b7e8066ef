//! What one policy did: how many it let pass and denied, whom most, and its worst minute.

use std::collections::HashMap;

use catraca_core::policy::PolicyId;

/// Subjects tracked in one run, over all policies.
pub const SUBJECTS_MAX: usize = 200_000;

/// The counts of one policy.
#[derive(Default)]
pub struct PolicyTally {
    /// Rows with room.
    pub allowed: u64,
    /// Rows without, for any reason.
    pub denied: u64,
    /// Those of them that were denied because a block stood.
    pub blocked: u64,
    /// When the denials came.
    pub minutes: Minutes,
}

/// The minute with most denials. Time never runs back, so one minute at a time is enough.
#[derive(Default)]
pub struct Minutes {
    current: Option<(i64, u64)>,
    worst: Option<(i64, u64)>,
}

impl Minutes {
    /// Counts one denial in a minute since the epoch.
    pub fn count(&mut self, minute: i64) {
        let before = self.current.filter(|(open, _)| *open == minute).map_or(0, |(_, count)| count);
        let current = (minute, before + 1);
        self.current = Some(current);
        if self.worst.is_none_or(|(_, most)| current.1 > most) {
            self.worst = Some(current);
        }
    }

    /// The first minute with most denials, and how many.
    pub fn worst(&self) -> Option<(i64, u64)> {
        self.worst
    }
}

/// Who was denied how often, up to a cap.
#[derive(Default)]
pub struct Subjects {
    denied: HashMap<PolicyId, HashMap<String, u64>>,
    tracked: usize,
    /// Denials of subjects that came when the cap was reached.
    pub untracked: u64,
}

impl Subjects {
    /// Counts one denial.
    pub fn count(&mut self, policy: PolicyId, who: &str) {
        let mine = self.denied.entry(policy).or_default();
        if let Some(times) = mine.get_mut(who) {
            *times += 1;
        } else if self.tracked < SUBJECTS_MAX {
            mine.insert(who.to_owned(), 1);
            self.tracked += 1;
        } else {
            self.untracked += 1;
        }
    }

    /// The subjects that a policy denied most, with ties in the order of their names.
    pub fn top(&self, policy: PolicyId, most: usize) -> Vec<(&str, u64)> {
        let mine = self.denied.get(&policy).into_iter().flatten();
        let mut all: Vec<_> = mine.map(|(who, times)| (who.as_str(), *times)).collect();
        all.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(other.0)));
        all.truncate(most);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_minute_is_the_first_of_the_fullest() {
        let mut minutes = Minutes::default();
        assert_eq!(minutes.worst(), None);
        for minute in [1, 1, 2, 2, 3, 3, 3, 9, 9, 9] {
            minutes.count(minute);
        }
        assert_eq!(minutes.worst(), Some((3, 3)));
    }

    #[test]
    fn subjects_are_ranked_and_ties_are_stable() {
        let mut subjects = Subjects::default();
        for who in ["c", "b", "a", "b", "c", "z"] {
            subjects.count(PolicyId(0), who);
        }
        subjects.count(PolicyId(1), "other");
        assert_eq!(subjects.top(PolicyId(0), 3), [("b", 2), ("c", 2), ("a", 1)]);
    }

    #[test]
    fn beyond_the_cap_new_subjects_are_only_counted() {
        let mut subjects = Subjects::default();
        for number in 0..SUBJECTS_MAX {
            subjects.count(PolicyId(0), &number.to_string());
        }
        subjects.count(PolicyId(0), "late");
        subjects.count(PolicyId(0), "7");
        assert_eq!(subjects.untracked, 1);
        assert_eq!(subjects.denied[&PolicyId(0)].len(), SUBJECTS_MAX);
        assert_eq!(subjects.top(PolicyId(0), 1), [("7", 2)]);
    }
}
