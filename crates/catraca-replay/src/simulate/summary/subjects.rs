//! Counts denials by subject, up to a limit of subjects.
//!
//! A subject is the key of a policy as it may be shown: private values are pseudonyms.

use std::collections::HashMap;

use catraca_core::policy::PolicyId;

/// Maximum number of subjects tracked in a run, over all policies.
pub const SUBJECTS_MAX: usize = 200_000;

/// The denied subjects of a run.
#[derive(Default)]
pub struct Subjects {
    ids: HashMap<PolicyId, HashMap<String, SubjectId>>,
    all: Vec<Subject>,
    /// Denials of subjects that were not tracked, because the limit was reached.
    pub untracked: u64,
}

/// The index of a subject in one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SubjectId(u32);

/// One subject under one policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The policy.
    pub policy: PolicyId,
    /// Its key, as it may be shown.
    pub who: String,
    /// Number of denials.
    pub denied: u64,
}

impl Subjects {
    /// Counts one denial; `None` for an untracked subject.
    pub fn count(&mut self, policy: PolicyId, who: String) -> Option<SubjectId> {
        let mine = self.ids.entry(policy).or_default();
        let id = match mine.get(&who) {
            Some(id) => *id,
            None if self.all.len() < SUBJECTS_MAX => {
                let id = SubjectId(self.all.len() as u32);
                mine.insert(who.clone(), id);
                self.all.push(Subject { policy, who, denied: 0 });
                id
            }
            None => {
                self.untracked += 1;
                return None;
            }
        };
        self.all[id.0 as usize].denied += 1;
        Some(id)
    }

    /// The subject with an id of this run.
    pub fn get(&self, id: SubjectId) -> &Subject {
        &self.all[id.0 as usize]
    }

    /// The subjects that a policy denied most, ties by name, and the number of all.
    pub fn top(&self, policy: PolicyId, most: usize) -> (Vec<(String, u64)>, usize) {
        let mine = self.ids.get(&policy).into_iter().flatten();
        let all = mine.map(|(who, id)| (who.as_str(), self.get(*id).denied));
        let mut all: Vec<_> = all.collect();
        let total = all.len();
        all.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(other.0)));
        all.truncate(most);
        (all.into_iter().map(|(who, denied)| (who.to_owned(), denied)).collect(), total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn top(subjects: &Subjects, most: usize) -> Vec<(String, u64)> {
        subjects.top(PolicyId(0), most).0
    }

    #[test]
    fn subjects_are_ranked_and_ties_are_stable() {
        let mut subjects = Subjects::default();
        for who in ["c", "b", "a", "b", "c", "z"] {
            subjects.count(PolicyId(0), who.to_owned());
        }
        subjects.count(PolicyId(1), "other".to_owned());
        let expected = [("b", 2), ("c", 2), ("a", 1)].map(|(who, n)| (who.to_owned(), n));
        assert_eq!(top(&subjects, 3), expected);
        assert_eq!(subjects.top(PolicyId(0), 3).1, 4);
    }

    #[test]
    fn beyond_the_cap_new_subjects_are_only_counted() {
        let mut subjects = Subjects::default();
        for number in 0..SUBJECTS_MAX {
            subjects.count(PolicyId(0), number.to_string());
        }
        assert_eq!(subjects.count(PolicyId(0), "late".to_owned()), None);
        subjects.count(PolicyId(0), "7".to_owned());
        assert_eq!((subjects.untracked, subjects.all.len()), (1, SUBJECTS_MAX));
        assert_eq!(top(&subjects, 1), [("7".to_owned(), 2)]);
    }
}
