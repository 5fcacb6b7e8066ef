//! The fields that a policy and its tiers have in common, and tiers.

use std::time::Duration;

use super::consequence::BlockLength;
use super::table::{Table, Value, rate, texts};
use crate::price::Price;
use crate::time::Span;

/// Other terms for some callers of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TierBuilder {
    pub(super) table: Table,
}

impl TierBuilder {
    /// A tier for callers with one of these values of an attribute or a fact.
    pub fn when<T: Into<String>>(name: &str, values: impl IntoIterator<Item = T>) -> Self {
        Self { table: Table::default() }.and_when(name, values)
    }

    /// Requires one of these values of another attribute or fact too.
    #[must_use]
    pub fn and_when<T: Into<String>>(
        mut self,
        name: &str,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        self.table.set_entry("when", name, texts(values));
        self
    }
}

/// Adds the methods that set a limit, a block and a cost.
macro_rules! terms_methods {
    ($builder:ty) => {
        impl $builder {
            /// An exact sliding window: at most this many units in any span of that length. Several
            /// windows must all have room.
            #[must_use]
            pub fn window(mut self, units: i64, per: Duration) -> Self {
                self.table.push("window", rate(units, per.into()));
                self
            }

            /// A token bucket that starts full, and gets `refill` tokens in each `per`.
            #[must_use]
            pub fn bucket(mut self, size: i64, refill: i64, per: Duration) -> Self {
                let mut bucket = Table::default();
                bucket.set("size", size);
                bucket.set("refill", rate(refill, per.into()));
                self.table.set("bucket", bucket);
                self
            }

            /// A fixed window, which starts with its first unit.
            #[must_use]
            pub fn fixed_window(mut self, units: i64, per: Duration) -> Self {
                self.table.set("fixed", rate(units, per.into()));
                self
            }

            /// The most concurrent requests.
            #[must_use]
            pub fn inflight(mut self, most: i64) -> Self {
                self.table.set("inflight", most);
                self
            }

            /// A request over the limit blocks the key: for a [`Duration`], of which
            /// [`Duration::MAX`] is forever, or for longer each time
            /// ([`Escalation`](super::Escalation)).
            #[must_use]
            pub fn block(mut self, length: impl Into<BlockLength>) -> Self {
                self.table.set("block", length.into().0);
                self
            }

            /// Every request costs this many units.
            #[must_use]
            pub fn cost(mut self, units: i64) -> Self {
                self.table.set("cost", units);
                self
            }

            /// The settle of a request reports its cost.
            #[must_use]
            pub fn cost_reported(mut self) -> Self {
                self.table.set("cost", "reported");
                self
            }

            /// The body of the outcome has the cost in these fields, such as
            /// `body.usage.total_tokens`, which are added up. Of `body.a|body.b` the first that is
            /// present counts.
            #[must_use]
            pub fn cost_from_body<T: Into<String>>(
                mut self,
                fields: impl IntoIterator<Item = T>,
            ) -> Self {
                let mut cost = Table::default();
                cost.set("from", texts(fields));
                self.table.set("cost", cost);
                self
            }

            /// Like [`Self::cost_from_body`], with a name for each field, by which
            /// [`Self::cost_field_weights`] refers to it.
            #[must_use]
            pub fn cost_from_named_fields<N: Into<String>, T: Into<String>>(
                mut self,
                fields: impl IntoIterator<Item = (N, T)>,
            ) -> Self {
                let mut from = Table::default();
                for (name, field) in fields {
                    let name: String = name.into();
                    from.set(&name, Value::Text(field.into()));
                }
                let mut cost = Table::default();
                cost.set("from", from);
                self.table.set("cost", cost);
                self
            }

            /// What a unit of each of the fields of [`Self::cost_from_named_fields`] costs, for a
            /// value of an attribute of the request; `default` is for all other values. Can be
            /// called several times.
            #[must_use]
            pub fn cost_field_weights<N: Into<String>>(
                mut self,
                attribute: &str,
                value: &str,
                weights: impl IntoIterator<Item = (N, i64)>,
            ) -> Self {
                let mut table = Table::default();
                for (field, weight) in weights {
                    let field: String = field.into();
                    table.set(&field, weight);
                }
                self.table.set_entry("cost", "weight_by", attribute);
                self.table.set_nested("cost", "weights", value, table);
                self
            }

            /// What a unit of [`Self::cost_from_body`] costs, by the value of an attribute of the
            /// request; `default` is for all other values.
            #[must_use]
            pub fn cost_weights<T: Into<String>>(
                mut self,
                attribute: &str,
                weights: impl IntoIterator<Item = (T, i64)>,
            ) -> Self {
                let mut table = Table::default();
                for (value, weight) in weights {
                    let value: String = value.into();
                    table.set(&value, weight);
                }
                self.table.set_entry("cost", "weight_by", attribute);
                self.table.set_entry("cost", "weights", table);
                self
            }

            /// The status of the outcome decides the cost: `"404"`, `"5xx"`, `"none"` or
            /// `"default"`.
            #[must_use]
            pub fn cost_by_status<T: Into<String>, P: Into<Price>>(
                mut self,
                prices: impl IntoIterator<Item = (T, P)>,
            ) -> Self {
                let mut table = Table::default();
                for (status, price) in prices {
                    let status: String = status.into();
                    table.set(&status, Value::from(price.into()));
                }
                self.table.set("cost", table);
                self
            }

            /// An event after the settle gives units back to a bucket, once, if the settled status
            /// is one of `on`; without statuses, for every status.
            #[must_use]
            pub fn credit<T: Into<String>>(
                mut self,
                event: &str,
                amount: i64,
                on: impl IntoIterator<Item = T>,
            ) -> Self {
                let mut credit = Table::default();
                credit.set("amount", amount);
                let on = texts(on);
                if on != Value::List(Vec::new()) {
                    credit.set("on", on);
                }
                self.table.set_entry("credit", event, credit);
                self
            }
        }
    };
}

terms_methods!(TierBuilder);
terms_methods!(super::PolicyBuilder);

impl From<Price> for Value {
    fn from(price: Price) -> Self {
        match price {
            Price::Units(units) => Self::Integer(units),
            Price::Drain => Self::Text("drain".to_owned()),
        }
    }
}

impl From<Duration> for Value {
    fn from(duration: Duration) -> Self {
        Span::from(duration).into()
    }
}
