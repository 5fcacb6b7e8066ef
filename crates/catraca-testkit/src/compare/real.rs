//! The engine's side of a comparison: plays operations through its public interface and gives plain answers.
//!
//! It must translate words and nothing else: no figure is computed here that the engine did not give.

use std::collections::BTreeMap;

use catraca::{BlockOrder, Engine, Error, ManualClock, Observed, Settle};
use catraca_core::cell::block::Origin;
use catraca_core::credit::NotCredited;
use catraca_core::decision::{Decision, Reason, Row};
use catraca_core::outcome::Outcome;
use catraca_core::policy::Mode;
use catraca_core::refusal::Refusal;
use catraca_core::request::{Check, DEFAULT_NAMESPACE};
use catraca_core::subject::Subject;
use catraca_core::time::{Span, Time};

use super::answer::{Answer, Refused};
use crate::generate::op::{Op, Verb};
use crate::generate::text;
use crate::oracle::answer as plain;
use crate::oracle::catalog as terms;
use crate::oracle::outcome as asked;
use crate::oracle::select::Ask;
use crate::oracle::{FOREVER, Micros, block};

/// An engine with a clock of its own and the tickets it gave.
pub struct Real {
    engine: Engine,
    clock: ManualClock,
    versions: Vec<catraca_core::catalog::Catalog>,
    tickets: BTreeMap<usize, String>,
}
