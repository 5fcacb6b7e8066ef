//! One row: all cells of a key, and of the strikes beside it, as one body of bytes.
//!
//! Equal cells are equal bytes, so a row has changed exactly if its body has. Decoding is total:
//! rows can be edited by hand. Must not know SQL.

use catraca_core::cell::{Block, Bucket, Fixed, Leases, Log, Mark, Reference, Watch};
use catraca_core::codec::{Codec, CodecError, Kind};
use catraca_core::run::RULES_MAX;
use catraca_core::time::{Span, Time};

/// The first byte of every body that is not empty.
const LAYOUT: u8 = 1;
/// Cells have the numbers of their kinds; the strikes of ban rule `r` have this plus `r`.
const STRIKES: u8 = 16;
/// How long a cell is kept after it is forgotten: a clock that is set back finds it again.
const KEPT: Span = Span::from_secs(60);
/// Rows are kept to whole steps of this many seconds, and one more. A row that is charged every
/// second then changes its bytes and not its place in the index.
const STEP: i64 = 600;
/// A row that is never swept.
pub(super) const NEVER: i64 = i64::MAX;

/// The cells of one key.
#[derive(Debug, Default)]
pub(super) struct Cluster {
    pub bucket: Option<Bucket>,
    pub log: Option<Log>,
    pub fixed: Option<Fixed>,
    pub leases: Option<Leases>,
    pub block: Option<Block>,
    pub watch: Option<Watch>,
    pub mark: Option<Mark>,
    pub reference: Option<Reference>,
    /// Of each ban rule that has any.
    pub strikes: Vec<(u8, Option<Log>)>,
}

/// Why a body is not one.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BodyError {
    #[error("layout {0} of the row is not known here")]
    Layout(u8),
    #[error("the row ends too early")]
    Short,
    #[error("the row holds a cell of kind {0}, which is not known here")]
    Kind(u8),
    #[error(transparent)]
    Cell(#[from] CodecError),
}

impl Cluster {
    pub(super) fn decode(body: &[u8]) -> Result<Self, BodyError> {
        let mut cluster = Self::default();
        let Some((layout, mut left)) = body.split_first() else { return Ok(cluster) };
        if *layout != LAYOUT {
            return Err(BodyError::Layout(*layout));
        }
        while let Some((number, rest)) = left.split_first() {
            let (length, rest) = rest.split_first_chunk().ok_or(BodyError::Short)?;
            let length = u32::from_le_bytes(*length) as usize;
            let (bytes, rest) = rest.split_at_checked(length).ok_or(BodyError::Short)?;
            cluster.admit(*number, bytes)?;
            left = rest;
        }
        Ok(cluster)
    }

    /// The body, and when it may be swept, in seconds. Without what was forgotten a while ago; an
    /// empty body needs no row.
    pub(super) fn encode(&self, now: Time) -> (Vec<u8>, i64) {
        let mut body = Body { bytes: vec![LAYOUT], now, last: Time::ZERO };
        body.add(Kind::Bucket as u8, self.bucket.as_ref());
        body.add(Kind::Log as u8, self.log.as_ref());
        body.add(Kind::Fixed as u8, self.fixed.as_ref());
        body.add(Kind::Leases as u8, self.leases.as_ref());
        body.add(Kind::Block as u8, self.block.as_ref());
        body.add(Kind::Watch as u8, self.watch.as_ref());
        body.add(Kind::Mark as u8, self.mark.as_ref());
        body.add(Kind::Reference as u8, self.reference.as_ref());
        let mut strikes: Vec<_> = self.strikes.iter().collect();
        strikes.sort_unstable_by_key(|(rule, _)| *rule);
        strikes.into_iter().for_each(|(rule, log)| body.add(STRIKES + rule, log.as_ref()));
        match body.bytes.len() {
            1 => (Vec::new(), 0),
            _ => (body.bytes, swept_at(body.last)),
        }
    }

    /// The strikes of a rule, found or not.
    pub(super) fn strikes(&mut self, rule: u8) -> &mut Option<Log> {
        let known = self.strikes.iter().position(|(known, _)| *known == rule);
        let place = known.unwrap_or_else(|| {
            self.strikes.push((rule, None));
            self.strikes.len() - 1
        });
        &mut self.strikes[place].1
    }

    fn admit(&mut self, number: u8, bytes: &[u8]) -> Result<(), BodyError> {
        if let Some(rule) = number.checked_sub(STRIKES).filter(|rule| *rule < RULES_MAX) {
            *self.strikes(rule) = Some(Log::decode(bytes)?);
            return Ok(());
        }
        match Kind::from_number(number).ok_or(BodyError::Kind(number))? {
            Kind::Bucket => self.bucket = Some(Bucket::decode(bytes)?),
            Kind::Log => self.log = Some(Log::decode(bytes)?),
            Kind::Fixed => self.fixed = Some(Fixed::decode(bytes)?),
            Kind::Leases => self.leases = Some(Leases::decode(bytes)?),
            Kind::Block => self.block = Some(Block::decode(bytes)?),
            Kind::Watch => self.watch = Some(Watch::decode(bytes)?),
            Kind::Mark => self.mark = Some(Mark::decode(bytes)?),
            Kind::Reference => self.reference = Some(Reference::decode(bytes)?),
        }
        Ok(())
    }
}

/// A body that is being written.
struct Body {
    bytes: Vec<u8>,
    now: Time,
    /// When the last of its cells is forgotten.
    last: Time,
}

impl Body {
    fn add<C: Codec>(&mut self, number: u8, cell: Option<&C>) {
        let alive = |cell: &&C| self.now < cell.forgotten_at().after(KEPT);
        let Some(cell) = cell.filter(alive) else { return };
        self.last = self.last.max(cell.forgotten_at());
        self.bytes.push(number);
        let length_at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        cell.encode(&mut self.bytes);
        let length = (self.bytes.len() - length_at - 4) as u32;
        self.bytes[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
    }
}

fn swept_at(forgotten: Time) -> i64 {
    if forgotten == Time::FOREVER {
        return NEVER;
    }
    (forgotten.micros() / 1_000_000 / STEP + 2) * STEP
}

#[cfg(test)]
mod tests {
    use catraca_core::limit::{BucketTerms, WindowTerms};

    use super::*;

    const TERMS: BucketTerms = BucketTerms { size: 2, tokens: 1, period: 1_000_000 };

    fn at(seconds: i64) -> Time {
        Time::from_micros(seconds * 1_000_000)
    }

    fn some() -> Cluster {
        let mut bucket = Bucket::full(&TERMS, at(1_000));
        bucket.take(&TERMS, 1);
        let mut cluster = Cluster { bucket: Some(bucket), ..Cluster::default() };
        let windows = [WindowTerms { limit: 3, span: Span::from_secs(5_000) }];
        let mut log = Log::new(&windows);
        log.charge(&windows, at(1_000), 1);
        *cluster.strikes(7) = Some(log);
        cluster
    }

    #[test]
    fn a_body_is_read_back_and_written_the_same() {
        let (body, swept) = some().encode(at(1_000));
        let mut read = Cluster::decode(&body).unwrap();
        assert!(read.bucket.is_some() && read.strikes(7).is_some() && read.block.is_none());
        assert_eq!(read.encode(at(1_000)), (body, swept));
        assert_eq!(swept, 7_200, "the step after the one in which 6000 s lie");
    }

    #[test]
    fn what_was_forgotten_goes_a_while_later_and_nothing_needs_no_row() {
        let kept = |now| Cluster::decode(&some().encode(now).0).unwrap().bucket.is_some();
        assert!(kept(at(1_060)));
        assert!(!kept(at(1_061)));
        assert_eq!(some().encode(at(6_060)), (Vec::new(), 0));
    }

    #[test]
    fn a_row_stays_well_beyond_the_last_instant_at_which_it_matters() {
        assert_eq!(swept_at(at(1_199)), 1_800);
        assert_eq!(swept_at(at(1_200)), 2_400);
        assert_eq!(swept_at(Time::FOREVER), NEVER);
    }

    #[test]
    fn damage_is_named_and_never_taken_for_a_cell() {
        let (body, _) = some().encode(at(1_000));
        assert_eq!(Cluster::decode(&[9]).unwrap_err(), BodyError::Layout(9));
        assert_eq!(Cluster::decode(&[LAYOUT, 99, 0, 0, 0, 0]).unwrap_err(), BodyError::Kind(99));
        for end in 2..body.len() {
            let cut = Cluster::decode(&body[..end]);
            assert!(cut.is_err() || cut.is_ok_and(|cut| cut.strikes.is_empty()), "at {end}");
        }
    }
}
