//! Subjects: the attributes of a caller, as the request states them.
//!
//! Values are borrowed and not validated: `select` normalises those that a policy reads and ignores
//! the others. Must not be stored: keys are digests, and private values are never stored in clear.

use smallvec::SmallVec;

/// The attributes of a caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject<'a> {
    pairs: SmallVec<[(&'a str, &'a str); 4]>,
}

impl<'a> Subject<'a> {
    /// A subject without attributes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an attribute.
    #[must_use]
    pub fn with(mut self, attribute: &'a str, value: &'a str) -> Self {
        self.pairs.push((attribute, value));
        self
    }

    /// An attribute's value. An empty one counts as absent: otherwise all callers without a value
    /// would share one counter.
    pub fn get(&self, attribute: &str) -> Option<&'a str> {
        let found = self.pairs.iter().find(|(name, _)| *name == attribute);
        found.map(|(_, value)| *value).filter(|value| !value.is_empty())
    }

    /// A subject of attributes that the caller owns.
    pub fn from_owned_pairs(pairs: &'a [(String, String)]) -> Self {
        pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }

    /// A copy of all attributes, for work that outlives the request.
    pub fn to_owned_pairs(&self) -> Vec<(String, String)> {
        self.pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    /// All attributes, not normalised.
    pub fn pairs(&self) -> &[(&'a str, &'a str)] {
        &self.pairs
    }
}

impl<'a, const N: usize> From<[(&'a str, &'a str); N]> for Subject<'a> {
    fn from(pairs: [(&'a str, &'a str); N]) -> Self {
        Self { pairs: pairs.into_iter().collect() }
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for Subject<'a> {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(pairs: I) -> Self {
        Self { pairs: pairs.into_iter().collect() }
    }
}
