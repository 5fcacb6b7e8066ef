//! A subject: the attributes known of a caller, as the caller's front end states them.
//!
//! Borrowed and unchecked: `select` normalises what a policy reads and ignores the rest.
//! Must not be stored: keys are digests, and private values never leave in clear.

use smallvec::SmallVec;

/// The attributes known of a caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject<'a> {
    pairs: SmallVec<[(&'a str, &'a str); 4]>,
}

impl<'a> Subject<'a> {
    /// A subject of whom nothing is known.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an attribute.
    #[must_use]
    pub fn with(mut self, attribute: &'a str, value: &'a str) -> Self {
        self.pairs.push((attribute, value));
        self
    }

    /// An attribute's value; an empty one counts as absent.
    pub fn get(&self, attribute: &str) -> Option<&'a str> {
        let found = self.pairs.iter().find(|(name, _)| *name == attribute);
        found.map(|(_, value)| *value).filter(|value| !value.is_empty())
    }

    /// All attributes as stated.
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
