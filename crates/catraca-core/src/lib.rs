//! The pure core of Catraca: decides whether a caller may pass, what the request costs, and which
//! block or ban follows.
//!
//! Every function depends on its arguments alone: the current time is passed in, and state is cells
//! that a store hands over. A request goes through `select` (which policies and keys), `plan` (one
//! batch for the store), `run` (the store applies the batch to its cells), `conclude` (the replies
//! become a decision) and `settle_plan` (the real cost replaces the reserved units).
//! Must not read the clock, wait, log, use random numbers or do I/O; clippy bans those functions.

// docs.rs builds with nightly and shows the feature that each item needs.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::iter_over_hash_type)]

pub mod address;
pub mod algorithm;
pub mod ban_storm;
pub mod batch;
pub mod catalog;
pub mod cell;
pub mod codec;
pub mod conclude;
pub mod condition;
pub mod cpf_cnpj;
pub mod credit_plan;
pub mod decision;
pub mod digest;
pub mod facts;
pub mod json_path;
pub mod limit;
pub mod lists;
pub mod located;
pub mod lock;
pub mod outcome;
pub mod pix_key;
pub mod plan;
pub mod policy;
pub mod policy_epochs;
pub mod price;
pub mod rate;
pub mod refusal;
pub mod request;
pub mod route;
pub mod run;
pub mod select;
pub mod settle_plan;
pub mod sharding;
pub mod subject;
pub mod ticket;
pub mod time;
