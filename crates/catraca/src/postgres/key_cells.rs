//! The body of a table row: all cells of a key, and the strikes of its ban rules, as bytes.
//!
//! Equal cells have equal bytes, so a row has changed exactly if its body has. Decoding fails on
//! invalid bytes and never panics: rows can be edited by hand.
//!
//! Layout: one byte [`LAYOUT`]; then per cell its kind (1 byte), the length (4 bytes,
//! little-endian) and the bytes of core's codec.

use catraca_core::cell::{CellKind, SlidingWindow};
use catraca_core::codec::{Codec, CodecError};
use catraca_core::for_each_kind;
use catraca_core::run::RULES_MAX;
use catraca_core::time::{Span, Time};

/// The version of the layout: the first byte of every body that is not empty.
const LAYOUT: u8 = 1;
/// The kind of the strikes of ban rule 0; those of rule `r` have this plus `r`. Other cells have
/// the numbers of core's codec.
const STRIKES: u8 = 16;
/// How long a forgotten cell stays in its row: if the clock is set back, it must still be there.
const GRACE: Span = Span::from_secs(60);
/// `expires` is a multiple of this many seconds, one to two steps after the last cell is forgotten.
/// So most updates of a busy row do not change the index on `expires` (a HOT update).
const STEP: i64 = 600;
/// The `expires` of a row that is never swept.
pub(super) const NEVER: i64 = i64::MAX;

/// A kind of cell in a row.
pub(super) trait RowCell: Codec + 'static {
    fn of(cells: &mut KeyCells) -> &mut Option<Self>;
}

macro_rules! key_cells {
    (() $($(#[$doc:meta])* $kind:ident($cell:ty) $field:ident $columns:tt)*) => {
        /// The decoded cells of one key.
        #[derive(Debug, Default)]
        pub(super) struct KeyCells {
            $($(#[$doc])* pub $field: Option<$cell>,)*
            /// Strikes by ban rule.
            pub strikes: Vec<(u8, Option<SlidingWindow>)>,
        }

        impl KeyCells {
            /// Decodes one cell that is not strikes.
            fn set_cell(&mut self, kind: CellKind, bytes: &[u8]) -> Result<(), CodecError> {
                match kind {
                    $(CellKind::$kind => self.$field = Some(<$cell>::decode(bytes)?),)*
                }
                Ok(())
            }
        }

        impl RowBody {
            /// Adds all cells but the strikes.
            fn add_cells(&mut self, cells: &KeyCells) {
                $(self.add(CellKind::$kind as u8, cells.$field.as_ref());)*
            }
        }

        $(impl RowCell for $cell {
            fn of(cells: &mut KeyCells) -> &mut Option<Self> {
                &mut cells.$field
            }
        })*
    };
}

for_each_kind!(key_cells);

/// Why a body cannot be decoded.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BodyError {
    #[error("the row has the unknown layout {0}")]
    Layout(u8),
    #[error("the row is truncated")]
    Short,
    #[error("the row contains a cell of the unknown kind {0}")]
    Kind(u8),
    #[error(transparent)]
    Cell(#[from] CodecError),
}

impl KeyCells {
    pub(super) fn decode(body: &[u8]) -> Result<Self, BodyError> {
        let mut cells = Self::default();
        let Some((layout, mut left)) = body.split_first() else { return Ok(cells) };
        if *layout != LAYOUT {
            return Err(BodyError::Layout(*layout));
        }
        while let Some((number, rest)) = left.split_first() {
            let (length, rest) = rest.split_first_chunk().ok_or(BodyError::Short)?;
            let length = u32::from_le_bytes(*length) as usize;
            let (bytes, rest) = rest.split_at_checked(length).ok_or(BodyError::Short)?;
            cells.add_cell(*number, bytes)?;
            left = rest;
        }
        Ok(cells)
    }

    /// The body, and its `expires` in seconds. Cells that were forgotten longer than [`GRACE`] ago
    /// are left out; if none is left the body is empty, and the row can be deleted.
    pub(super) fn encode(&self, now: Time) -> (Vec<u8>, i64) {
        let mut body = RowBody { bytes: vec![LAYOUT], now, forgotten_at: Time::ZERO };
        body.add_cells(self);
        let mut strikes: Vec<_> = self.strikes.iter().collect();
        strikes.sort_unstable_by_key(|(rule, _)| *rule);
        strikes.into_iter().for_each(|(rule, log)| body.add(STRIKES + rule, log.as_ref()));
        match body.bytes.len() {
            1 => (Vec::new(), 0),
            _ => (body.bytes, expires_second(body.forgotten_at)),
        }
    }

    /// The strikes of a rule, which may be none.
    pub(super) fn strikes(&mut self, rule: u8) -> &mut Option<SlidingWindow> {
        let found = self.strikes.iter().position(|(other, _)| *other == rule);
        let index = found.unwrap_or_else(|| {
            self.strikes.push((rule, None));
            self.strikes.len() - 1
        });
        &mut self.strikes[index].1
    }

    /// Decodes one cell.
    fn add_cell(&mut self, number: u8, bytes: &[u8]) -> Result<(), BodyError> {
        if let Some(rule) = number.checked_sub(STRIKES).filter(|rule| *rule < RULES_MAX) {
            *self.strikes(rule) = Some(SlidingWindow::decode(bytes)?);
            return Ok(());
        }
        let kind = CellKind::from_number(number).ok_or(BodyError::Kind(number))?;
        Ok(self.set_cell(kind, bytes)?)
    }
}

/// Writes a body.
struct RowBody {
    bytes: Vec<u8>,
    now: Time,
    /// When the last cell is forgotten.
    forgotten_at: Time,
}

impl RowBody {
    fn add<C: Codec>(&mut self, number: u8, cell: Option<&C>) {
        let alive = |cell: &&C| self.now < cell.expires_at().after(GRACE);
        let Some(cell) = cell.filter(alive) else { return };
        self.forgotten_at = self.forgotten_at.max(cell.expires_at());
        self.bytes.push(number);
        // The length is not known before the cell is encoded.
        let length_at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        cell.encode(&mut self.bytes);
        let length = (self.bytes.len() - length_at - 4) as u32;
        self.bytes[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
    }
}

/// The `expires` of a row whose last cell is forgotten at this instant.
fn expires_second(forgotten: Time) -> i64 {
    if forgotten == Time::FOREVER {
        return NEVER;
    }
    (forgotten.micros() / 1_000_000 / STEP + 2) * STEP
}

#[cfg(test)]
mod tests {
    use catraca_core::cell::Bucket;
    use catraca_core::limit::{BucketTerms, WindowTerms};

    use super::*;

    const TERMS: BucketTerms = BucketTerms { size: 2, tokens: 1, period: 1_000_000 };

    fn at(seconds: i64) -> Time {
        Time::from_micros(seconds * 1_000_000)
    }

    fn some() -> KeyCells {
        let mut bucket = Bucket::full(&TERMS, at(1_000));
        bucket.take(&TERMS, 1);
        let mut cells = KeyCells { bucket: Some(bucket), ..KeyCells::default() };
        let windows = [WindowTerms { limit: 3, span: Span::from_secs(5_000) }];
        let mut log = SlidingWindow::new(&windows);
        log.charge(&windows, at(1_000), 1);
        *cells.strikes(7) = Some(log);
        cells
    }

    #[test]
    fn a_body_is_read_back_and_written_the_same() {
        let (body, swept) = some().encode(at(1_000));
        let mut read = KeyCells::decode(&body).unwrap();
        assert!(read.bucket.is_some() && read.strikes(7).is_some() && read.block.is_none());
        assert_eq!(read.encode(at(1_000)), (body, swept));
        assert_eq!(swept, 7_200, "the step after the one in which 6000 s lie");
    }

    #[test]
    fn what_was_forgotten_goes_a_while_later_and_nothing_needs_no_row() {
        let kept = |now| KeyCells::decode(&some().encode(now).0).unwrap().bucket.is_some();
        assert!(kept(at(1_060)));
        assert!(!kept(at(1_061)));
        assert_eq!(some().encode(at(6_060)), (Vec::new(), 0));
    }

    #[test]
    fn a_row_stays_well_beyond_the_last_instant_at_which_it_matters() {
        assert_eq!(expires_second(at(1_199)), 1_800);
        assert_eq!(expires_second(at(1_200)), 2_400);
        assert_eq!(expires_second(Time::FOREVER), NEVER);
    }

    #[test]
    fn damage_is_named_and_never_taken_for_a_cell() {
        let (body, _) = some().encode(at(1_000));
        assert_eq!(KeyCells::decode(&[9]).unwrap_err(), BodyError::Layout(9));
        assert_eq!(KeyCells::decode(&[LAYOUT, 99, 0, 0, 0, 0]).unwrap_err(), BodyError::Kind(99));
        for end in 2..body.len() {
            let cut = KeyCells::decode(&body[..end]);
            assert!(cut.is_err() || cut.is_ok_and(|cut| cut.strikes.is_empty()), "at {end}");
        }
    }
}
