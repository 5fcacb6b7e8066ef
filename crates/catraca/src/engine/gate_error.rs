//! Why a gate cannot be checked with some attributes.

use std::fmt;

use catraca_core::refusal::Refusal;

/// Why a gate cannot be checked with these attributes.
///
/// ```
/// use catraca::{Catalog, Engine, GateError};
///
/// let engine = Engine::new(Catalog::parse("[policy.login]\n by = ['ip']\n window = '9 per 1m'")?);
/// let misspelt = engine.gate("logn").err();
/// let Some(GateError::UnknownGate { nearest, .. }) = misspelt else { panic!("no such gate") };
/// assert_eq!(nearest.as_deref(), Some("login"));
/// let error = engine.gate_by("login", ["ipp"]).err().expect("no policy reads it");
/// assert!(matches!(error, GateError::UnknownAttribute { .. }), "{error}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GateError {
    /// The catalog declares no gate or policy of this name.
    UnknownGate {
        /// The name.
        gate: String,
        /// A declared gate with a similar name.
        nearest: Option<String>,
    },
    /// Nothing in the catalog reads an attribute of this name.
    UnknownAttribute {
        /// The gate.
        gate: String,
        /// The name.
        attribute: String,
        /// A known attribute with a similar name.
        nearest: Option<String>,
        /// The attributes that the gate reads.
        known: Vec<String>,
    },
    /// The gate does not read exactly one attribute, so the order of its values must be given.
    AttributesNotNamed {
        /// The gate.
        gate: String,
        /// The attributes that the gate reads.
        attributes: Vec<String>,
    },
    /// Every check with these attributes would be refused.
    Refused(Refusal),
}

impl fmt::Display for GateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownGate { gate, nearest } => {
                write!(f, "no gate or policy is called `{gate}`")?;
                suggest(f, nearest.as_deref())
            }
            Self::UnknownAttribute { gate, attribute, nearest, known } => {
                write!(f, "gate `{gate}` reads no attribute `{attribute}`, but ")?;
                f.write_str(&known.join(", "))?;
                suggest(f, nearest.as_deref())
            }
            Self::AttributesNotNamed { gate, attributes } => {
                let count = attributes.len();
                write!(f, "gate `{gate}` reads {count} attributes: name them in the order of ")?;
                write!(f, "their values, `gate_by({gate:?}, {attributes:?})`")
            }
            Self::Refused(refusal) => refusal.fmt(f),
        }
    }
}

impl std::error::Error for GateError {}

impl From<Refusal> for GateError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

fn suggest(f: &mut fmt::Formatter<'_>, nearest: Option<&str>) -> fmt::Result {
    nearest.iter().try_for_each(|name| write!(f, ": did you mean `{name}`?"))
}
