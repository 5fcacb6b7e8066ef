//! The application: what its operations promise beyond those of its parts.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

#[path = "app/act_order.rs"]
mod act_order;
#[path = "app/audit.rs"]
mod audit;
#[path = "app/cancelled_acts.rs"]
mod cancelled_acts;
#[path = "app/durable_settles.rs"]
mod durable_settles;
#[path = "app/every_act.rs"]
mod every_act;
#[path = "app/helpers.rs"]
mod helpers;
#[path = "app/inspect.rs"]
mod inspect;
#[path = "app/no_records.rs"]
mod no_records;
#[path = "app/reload.rs"]
mod reload;
