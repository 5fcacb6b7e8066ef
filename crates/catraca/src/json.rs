//! JSON bodies of decisions and results, the same on every interface.
//!
//! Domain types have no serde attributes; a body borrows one of them, and derives its JSON and its
//! schema from the same fields. [`AsJson`] serializes a domain value as its body, and a client
//! reads the same body back. A body must not add or omit information.

mod bucket;
#[cfg(feature = "client")]
mod compact_reader;
mod credit;
mod decision;
#[cfg(feature = "locks")]
mod lease;
mod settlement;
#[cfg(test)]
mod tests;
mod words;

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::time::SystemTime;

use crate::settlement::{BucketState, CreditResult, SettledRow, Settlement};
use catraca_core::decision::{Decision, DecisionRow, WindowQuota};
use catraca_core::time::{Span, Time};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

pub use bucket::BucketStateBody;
#[cfg(feature = "client")]
pub(crate) use compact_reader::read_json;
pub use credit::{CreditBody, CreditedBucketBody};
pub use decision::{DecisionBody, DecisionRowBody, WindowBody};
#[cfg(feature = "locks")]
pub use lease::{
    ConfirmedSlot, EndedHold, EndedLease, GrantedLease, Holder, LeaseTargetBody, LockConflict,
    RenewedLease, SlotBody,
};
pub use settlement::{SettledRowBody, SettlementBody};
pub use words::{CreditReasonWord, ModeWord, OriginWord, ReasonWord, SettleStateWord, origin_name};

/// Serializes the borrowed value as its JSON body.
///
/// ```
/// use catraca::json::AsJson;
/// use catraca::{Catalog, Check, Engine};
///
/// let engine = Engine::new(Catalog::parse("[policy.api]\n by = ['ip']\n window = '9 per 1m'")?);
/// let decision = engine.check(&Check::new("api", [("ip", "198.51.100.7")]))?;
/// let json = serde_json::to_value(AsJson(&decision))?;
/// assert_eq!((&json["allowed"], &json["remaining"]), (&true.into(), &8.into()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct AsJson<T>(pub T);

/// The rows of a body: borrowed from a domain value, or owned by a body that was read.
#[derive(Clone, Debug)]
pub struct JsonRows<'a, T: Clone>(Cow<'a, [T]>);

impl<'a, T: Clone> JsonRows<'a, T> {
    const fn borrow(rows: &'a [T]) -> Self {
        Self(Cow::Borrowed(rows))
    }

    fn into_vec(self) -> Vec<T> {
        self.0.into_owned()
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T: Clone> Default for JsonRows<'_, T> {
    fn default() -> Self {
        Self(Cow::Borrowed(&[]))
    }
}

/// An instant in RFC 3339, in UTC.
#[derive(Clone, Copy, Debug)]
pub struct InstantText(#[doc(hidden)] pub Time);

impl From<InstantText> for SystemTime {
    fn from(instant: InstantText) -> Self {
        instant.0.into()
    }
}

impl Serialize for InstantText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_rfc3339())
    }
}

impl<'de> Deserialize<'de> for InstantText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'_, str>::deserialize(deserializer)?;
        Time::parse_rfc3339(&text).map(Self).map_err(D::Error::custom)
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for InstantText {
    fn schema_name() -> Cow<'static, str> {
        "InstantText".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "date-time" })
    }
}

/// Serializes a domain value, and a slice of its rows, by its body.
macro_rules! serialize_by_body {
    ($($value:ty => $body:ty),* $(,)?) => {$(
        impl Serialize for AsJson<&$value> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                <$body>::from(self.0).serialize(serializer)
            }
        }

        impl Serialize for AsJson<&[$value]> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_seq(self.0.iter().map(<$body>::from))
            }
        }
    )*};
}

serialize_by_body! {
    Decision => DecisionBody<'_>,
    DecisionRow => DecisionRowBody<'_>,
    WindowQuota => WindowBody,
    Settlement => SettlementBody<'_>,
    SettledRow => SettledRowBody<'_>,
    CreditResult => CreditBody<'_>,
    BucketState => BucketStateBody<'_>,
}

/// Serializes and reads the rows of a body.
macro_rules! rows_by_body {
    ($($value:ty => $body:ty),* $(,)?) => {$(
        impl Serialize for JsonRows<'_, $value> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                AsJson(&*self.0).serialize(serializer)
            }
        }

        impl<'de> Deserialize<'de> for JsonRows<'_, $value> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let rows = deserializer.deserialize_seq(RowsVisitor::<$body, $value>::new())?;
                Ok(Self(Cow::Owned(rows)))
            }
        }
    )*};
}

rows_by_body! {
    DecisionRow => DecisionRowBody<'_>,
    WindowQuota => WindowBody,
    SettledRow => SettledRowBody<'_>,
}

/// Reads a list of bodies as the values that they mean, one after the other.
struct RowsVisitor<B, T>(PhantomData<(B, T)>);

impl<B, T> RowsVisitor<B, T> {
    const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<'de, B: Deserialize<'de>, T: From<B>> Visitor<'de> for RowsVisitor<B, T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut bodies: A) -> Result<Vec<T>, A::Error> {
        // Most decisions have one row.
        let mut rows = Vec::with_capacity(1);
        while let Some(body) = bodies.next_element::<B>()? {
            rows.push(body.into());
        }
        Ok(rows)
    }
}

fn millis(span: Option<Span>) -> Option<i64> {
    span.map(Span::ceil_millis)
}

fn from_millis(millis: Option<i64>) -> Option<Span> {
    millis.map(Span::from_millis)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}
