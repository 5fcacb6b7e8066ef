//! The JSON of one decision: written by hand, as the server responds to a check, and derived, as it
//! writes batches. Must not compare the texts; a test of the server does.

// The server's own file, so that this crate does not build the server.
#[path = "../../../crates/catraca-server/src/http/bodies/decision_writer.rs"]
mod decision_writer;

use std::hint::black_box;

use catraca::json::AsJson;
use catraca::{Catalog, Check, Decision, Engine};

use crate::measure::Measure;
use crate::results::Figures;
use crate::subject::Subject;

const CATALOG: &str = "[policy.login]\nby = [\"ip\"]\nwindow = \"100 per 15m\"\n";

/// Hands one of the writers to a measurement.
pub fn run<M: Measure>(name: &str, measure: M) -> Option<Figures> {
    Some(match name {
        "json" => measure.run(|_| OwnWriter(decision())),
        "json-derived" => measure.run(|_| DerivedWriter(decision())),
        _ => return None,
    })
}

/// An allowed decision of one policy, as most responses are.
fn decision() -> Decision {
    let catalog = Catalog::parse(CATALOG).expect("the catalog of the benchmark");
    let check = Check::new("login", [("ip", "198.51.100.7")]);
    Engine::builder(catalog).build().check(&check).expect("a valid check")
}

fn buffer() -> Vec<u8> {
    Vec::with_capacity(decision_writer::TYPICAL_BYTES)
}

struct OwnWriter(Decision);

impl Subject for OwnWriter {
    #[inline]
    fn hit(&self, key: &str) -> bool {
        black_box(key);
        let mut json = buffer();
        decision_writer::write(black_box(&self.0), &mut json);
        !black_box(json).is_empty()
    }
}

struct DerivedWriter(Decision);

impl Subject for DerivedWriter {
    #[inline]
    fn hit(&self, key: &str) -> bool {
        black_box(key);
        let mut json = buffer();
        let written = serde_json::to_writer(&mut json, &AsJson(black_box(&self.0)));
        written.is_ok() && !black_box(json).is_empty()
    }
}
