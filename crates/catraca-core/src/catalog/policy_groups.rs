//! Policies by their group, which is a label for reports: it decides nothing.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;

use crate::catalog::Catalog;
use crate::policy::Policy;

/// A group that no policy of the catalog has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownGroup {
    group: String,
    known: Vec<String>,
}

impl Catalog {
    /// The policies of a group, or all of them without one.
    pub fn policies_of(&self, group: Option<&str>) -> Result<Vec<&Policy>, UnknownGroup> {
        let Some(group) = group else { return Ok(self.policies.iter().collect()) };
        let of_group = |policy: &&Policy| policy.group.as_deref() == Some(group);
        let found: Vec<&Policy> = self.policies.iter().filter(of_group).collect();
        if found.is_empty() {
            let groups = self.policies.iter().filter_map(|policy| policy.group.as_deref());
            let known: BTreeSet<&str> = groups.collect();
            let known = known.into_iter().map(str::to_owned).collect();
            return Err(UnknownGroup { group: group.to_owned(), known });
        }
        Ok(found)
    }
}

impl fmt::Display for UnknownGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let group = self.group.escape_debug();
        match self.known.is_empty() {
            true => write!(f, "no policy has a group, so none has `{group}`"),
            false => {
                write!(f, "no policy has the group `{group}`: write {}", self.known.join(", "))
            }
        }
    }
}

impl Error for UnknownGroup {}
