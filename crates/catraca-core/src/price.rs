//! Costs: the units that a request reserves at check, and its final price at settle.
//!
//! A price depends on the outcome's status, or on units that the outcome reports.

mod body_cost;

pub use body_cost::{BodyCost, CostField, CostWeights, FieldWeights};

/// How a policy prices a request.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Cost {
    /// The units that the check states, or one; not changed at settle.
    #[default]
    Request,
    /// Always this many units; not changed at settle.
    Units(i64),
    /// Units by the outcome's status, known at settle.
    Table(PriceTable),
    /// The units that the caller reports at settle.
    Reported,
    /// The units that the caller or the outcome's body reports, weighted.
    Body(Box<BodyCost>),
}

/// The price of one outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Price {
    /// This many units.
    Units(i64),
    /// All units that are left, for an upstream that reported its own quota as exhausted.
    Drain,
}

impl From<i64> for Price {
    fn from(units: i64) -> Self {
        Self::Units(units)
    }
}

/// Prices by status. An exact status wins over its class, and a class over the default.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PriceTable {
    /// Prices of exact statuses, sorted by status for binary search.
    pub exact: Vec<(u16, Price)>,
    /// Prices of classes: index 1 is `1xx`, index 5 is `5xx`; index 0 is unused.
    pub class: [Option<Price>; 6],
    /// The price of an outcome without a status.
    pub none: Option<Price>,
    /// The price of every other outcome; absent means one unit.
    pub default: Option<Price>,
}

impl PriceTable {
    /// The price of an outcome with this status, or without a status.
    pub fn price(&self, status: Option<u16>) -> Price {
        let found = match status {
            Some(status) => self.exact(status).or_else(|| self.class_of(status)),
            None => self.none,
        };
        found.or(self.default).unwrap_or(Price::Units(1))
    }

    fn exact(&self, status: u16) -> Option<Price> {
        let at = self.exact.binary_search_by_key(&status, |(status, _)| *status).ok()?;
        self.exact.get(at).map(|(_, price)| *price)
    }

    fn class_of(&self, status: u16) -> Option<Price> {
        self.class.get(usize::from(status / 100)).copied().flatten()
    }

    /// Every price in the table, to check that the largest can be counted exactly.
    pub fn prices(&self) -> impl Iterator<Item = Price> + '_ {
        let exact = self.exact.iter().map(|(_, price)| *price);
        exact.chain(self.class.iter().flatten().copied()).chain(self.none).chain(self.default)
    }
}

impl Cost {
    /// Whether the amount is known only at settle.
    pub fn is_priced_at_settle(&self) -> bool {
        matches!(self, Self::Table(_) | Self::Reported | Self::Body(_))
    }

    /// What a unit costs, if an attribute decides it.
    pub fn weights(&self) -> Option<&CostWeights> {
        match self {
            Self::Body(cost) => cost.weights.as_ref(),
            _ => None,
        }
    }

    /// The units that a check reserves: `requested` is what the caller states, weighted; `reserve`
    /// is the policy's amount for a price that is known only at settle.
    pub fn units_to_hold(&self, requested: Option<i64>, reserve: i64) -> i64 {
        match self {
            Self::Units(units) => *units,
            Self::Request => requested.unwrap_or(1),
            Self::Table(_) | Self::Reported | Self::Body(_) => requested.unwrap_or(reserve),
        }
    }

    /// The final price of an outcome whose check reserved `held` units; `reported` is what the
    /// outcome reports, weighted.
    pub fn settled_price(&self, held: i64, status: Option<u16>, reported: Option<i64>) -> Price {
        match self {
            Self::Request | Self::Units(_) => Price::Units(held),
            Self::Table(table) => table.price(status),
            Self::Reported | Self::Body(_) => Price::Units(reported.unwrap_or(held)),
        }
    }
}

/// A set of statuses: exact ones and whole classes.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct StatusSet {
    /// Exact statuses.
    pub exact: Vec<u16>,
    /// Classes by their first digit.
    pub classes: Vec<u8>,
}

impl StatusSet {
    /// Whether the outcome's status is in the set; no status never is.
    pub fn contains(&self, status: Option<u16>) -> bool {
        status.is_some_and(|status| {
            self.exact.contains(&status)
                || self.classes.iter().any(|class| u16::from(*class) == status / 100)
        })
    }
}
