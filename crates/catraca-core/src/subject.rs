//! Subjects: the attributes of a caller, as the request states them.
//!
//! Values are borrowed and not validated: `select` normalises those that a policy reads and ignores
//! the others. Must not be stored: keys are digests, and private values are never stored in clear.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use smallvec::SmallVec;

/// The attributes of a caller.
///
/// ```
/// use std::net::IpAddr;
///
/// use catraca_core::subject::Subject;
///
/// let address: IpAddr = "198.51.100.7".parse()?;
/// let subject = Subject::from([("ip", address)]).with("user", "ana");
/// assert_eq!(subject.get("ip").as_deref(), Some("198.51.100.7"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject<'a> {
    pairs: SmallVec<[(&'a str, AttributeValue<'a>); 4]>,
}

/// The value of an attribute: a text, or an address, which becomes a text where a policy reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttributeValue<'a>(ValueSource<'a>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueSource<'a> {
    Text(&'a str),
    Address(IpAddr),
}

impl<'a> Subject<'a> {
    /// A subject without attributes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an attribute.
    #[must_use]
    pub fn with(mut self, attribute: &'a str, value: impl Into<AttributeValue<'a>>) -> Self {
        self.pairs.push((attribute, value.into()));
        self
    }

    /// An attribute's value. An empty one counts as absent: otherwise all callers without a value
    /// would share one counter.
    #[inline]
    pub fn get(&self, attribute: &str) -> Option<Cow<'a, str>> {
        let found = self.pairs.iter().find(|(name, _)| *name == attribute);
        found.map(|(_, value)| value.to_text()).filter(|value| !value.is_empty())
    }

    /// The same subject, for a call whose other values live shorter.
    pub fn reborrow<'b>(&self) -> Subject<'b>
    where
        'a: 'b,
    {
        Subject { pairs: self.pairs.iter().copied().collect() }
    }

    /// A subject of attributes that the caller owns.
    pub fn from_owned_pairs(pairs: &'a [(String, String)]) -> Self {
        pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }

    /// A copy of all attributes, for work that outlives the request.
    pub fn to_owned_pairs(&self) -> Vec<(String, String)> {
        self.pairs().map(|(name, value)| (name.to_owned(), value.into_owned())).collect()
    }

    /// All attributes, not normalised.
    pub fn pairs(&self) -> impl Iterator<Item = (&'a str, Cow<'a, str>)> + Clone {
        self.pairs.iter().map(|(name, value)| (*name, value.to_text()))
    }

    /// The names of all attributes.
    pub fn names(&self) -> impl Iterator<Item = &'a str> {
        self.pairs.iter().map(|(name, _)| *name)
    }
}

impl<'a> AttributeValue<'a> {
    #[inline]
    fn to_text(self) -> Cow<'a, str> {
        match self.0 {
            ValueSource::Text(text) => Cow::Borrowed(text),
            ValueSource::Address(address) => Cow::Owned(address.to_string()),
        }
    }
}

impl<'a, T: AsRef<str> + ?Sized> From<&'a T> for AttributeValue<'a> {
    #[inline]
    fn from(text: &'a T) -> Self {
        Self(ValueSource::Text(text.as_ref()))
    }
}

impl From<IpAddr> for AttributeValue<'_> {
    fn from(address: IpAddr) -> Self {
        Self(ValueSource::Address(address))
    }
}

impl From<Ipv4Addr> for AttributeValue<'_> {
    fn from(address: Ipv4Addr) -> Self {
        IpAddr::from(address).into()
    }
}

impl From<Ipv6Addr> for AttributeValue<'_> {
    fn from(address: Ipv6Addr) -> Self {
        IpAddr::from(address).into()
    }
}

impl<'a, V: Into<AttributeValue<'a>>, const N: usize> From<[(&'a str, V); N]> for Subject<'a> {
    #[inline]
    fn from(pairs: [(&'a str, V); N]) -> Self {
        pairs.into_iter().collect()
    }
}

impl<'a, V: Into<AttributeValue<'a>>> FromIterator<(&'a str, V)> for Subject<'a> {
    #[inline]
    fn from_iter<I: IntoIterator<Item = (&'a str, V)>>(pairs: I) -> Self {
        Self { pairs: pairs.into_iter().map(|(name, value)| (name, value.into())).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_addresses_are_values() {
        let address = IpAddr::from([198, 51, 100, 7]);
        let text = String::from("198.51.100.7");
        let subjects = [
            Subject::from([("ip", address)]),
            Subject::from([("ip", "198.51.100.7")]),
            Subject::from([("ip", &text)]),
            Subject::new().with("ip", Ipv4Addr::new(198, 51, 100, 7)),
        ];
        for subject in subjects {
            assert_eq!(subject.to_owned_pairs(), [("ip".to_owned(), text.clone())]);
        }
        let long = Subject::from([("ip", Ipv6Addr::LOCALHOST)]);
        assert_eq!(long.get("ip").as_deref(), Some("::1"));
        assert_eq!(Subject::from([("ip", "")]).get("ip"), None);
    }
}
