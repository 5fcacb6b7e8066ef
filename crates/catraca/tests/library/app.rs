//! The application: what its operations promise beyond those of its parts.

mod act_order;
mod attribute_names;
mod audit;
mod bans;
mod block_ids;
mod cancelled_acts;
mod durable_settles;
mod every_act;
mod fact_names;
mod helpers;
mod incomplete_answers;
mod inspect;
mod no_records;
mod releases;
mod reload;
mod shadow_settles;
mod undeclared_gates;
mod unread_namespaces;
