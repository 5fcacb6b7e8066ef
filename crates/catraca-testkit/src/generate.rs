//! Random catalogs and random operations, from one seed, for comparisons and properties.
//!
//! It must be reproducible to the bit: no clock, no hash order, no outside randomness. Numbers are
//! kept tiny so that
//! edges are hit all the time, with a few extreme ones among them.

pub mod catalog;
pub mod dice;
pub mod op;
pub mod outcome;
pub mod policy;
pub mod story;
pub mod text;

pub use dice::Dice;
pub use op::{Op, Verb};
pub use story::Story;

#[cfg(test)]
mod tests;
