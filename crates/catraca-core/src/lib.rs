//! The pure core of Catraca: may this caller pass now, what does it cost, and what happens when
//! they misbehave.
//!
//! Everything here is a function of its arguments. Time is a number that callers pass in; state is
//! cells that stores
//! hand over. The way of a request: `select` finds the policies and keys, `plan` writes one batch,
//! a store applies it
//! with `run`, `conclude` reads the replies into a decision, and `settle` turns the reservation
//! into the real cost.
//! Must not read the time, wait, log, roll dice or do I/O; clippy bans those by name.

#![warn(clippy::iter_over_hash_type)]

pub mod address;
pub mod batch;
pub mod catalog;
pub mod cell;
pub mod codec;
pub mod conclude;
pub mod condition;
pub mod credit;
pub mod decision;
pub mod digest;
pub mod facts;
pub mod limit;
pub mod lists;
pub mod lock;
pub mod museum;
pub mod outcome;
pub mod person;
pub mod plan;
pub mod policy;
pub mod price;
pub mod rate;
pub mod refusal;
pub mod request;
pub mod resets;
pub mod route;
pub mod run;
pub mod select;
pub mod settle;
pub mod spread;
pub mod storm;
pub mod subject;
pub mod ticket;
pub mod time;
