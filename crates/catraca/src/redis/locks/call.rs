//! An operation on locks as the script takes it: the names of a namespace's keys, and its bytes.
//!
//! Must not decide anything. Must not hold a proof: an operation has none.

use catraca_core::lock::book::request::Print;
use catraca_core::lock::op::{Acquire, Hold, Look, Move, Proof, Wanted};
use catraca_core::lock::{LeaseKey, LockName, LockOp, Mark, VersionPolicy};
use catraca_core::time::Span;

/// One letter for each key, in the order in which the script knows them.
const LETTERS: &[u8; 11] = b"flncdvtrwus";
/// The largest number that the script can step over.
const LARGEST: i64 = (1 << 53) - 2;

/// The arguments of one run of the script.
pub(super) struct LockCall<'a> {
    namespace: &'a str,
    bytes: Vec<u8>,
}

/// The names of a namespace's keys: longer than any cell's.
pub(super) fn keys(prefix: &[u8], namespace: &str) -> Vec<Vec<u8>> {
    let Mark(mark) = Mark::of_namespace(namespace);
    LETTERS.iter().map(|letter| [prefix, b"k", &[*letter], &mark].concat()).collect()
}

/// The group of a namespace's keys, where servers share them out.
pub(super) fn group(namespace: &str) -> u16 {
    let Mark(mark) = Mark::of_namespace(namespace);
    u16::from_le_bytes([mark[0], mark[1]])
}

impl<'a> LockCall<'a> {
    /// The arguments for an operation.
    pub fn new(namespace: &'a str, op: &LockOp) -> Self {
        let mut call = Self { namespace, bytes: vec![number(op)] };
        match op {
            LockOp::Acquire { asked, counts } => call.acquire(asked, *counts),
            LockOp::Hold(asked) => call.hold(asked),
            LockOp::Miss { tenant, kind } => call.row(tenant.as_deref(), kind),
            LockOp::Renew { proof, ttl } => call.proof(proof).numbers(&[ttl.micros()]),
            LockOp::Release(proof) | LockOp::Cancel(proof) | LockOp::Show(proof) => {
                call.proof(proof);
            }
            LockOp::Confirm { proof, again, grace } => {
                call.proof(proof).flag(*again);
                call.numbers(&[grace.micros()]);
            }
            LockOp::Relocate(asked) => call.relocate(asked),
            LockOp::Look(asked) => call.look(asked),
            LockOp::List { after, most } => {
                call.numbers(&[*after, i64::try_from(*most).unwrap_or(LARGEST)]);
            }
            LockOp::Force { fence, tenant, cool_down } => {
                call.numbers(&[*fence]);
                call.maybe_tenant(tenant.as_deref());
                call.numbers(&[cool_down.micros()]);
            }
            LockOp::Clear { tenant, after, upto, most } => {
                call.tenant(tenant.as_deref());
                call.numbers(&[*after]);
                call.flag(upto.is_some());
                call.numbers(&[upto.unwrap_or(0), i64::try_from(*most).unwrap_or(LARGEST)]);
            }
            LockOp::Undo(key) => call.key(Some(*key)),
            LockOp::Sweep | LockOp::Tally => {}
        }
        call
    }

    /// `ARGV[1]`.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn acquire(&mut self, asked: &Acquire, counts: bool) {
        self.flag(counts);
        self.flag(asked.policy == VersionPolicy::Monotonic);
        self.wanted(&asked.lease, asked.tenant.as_deref(), &asked.kind, (false, asked.print()));
        self.texts(&asked.keys);
        for key in &asked.keys {
            let (tenant, kind) = (asked.tenant.clone(), asked.kind.clone());
            let Mark(mark) = LockName { tenant, kind, key: key.clone() }.mark(self.namespace);
            self.bytes.extend(mark);
        }
    }

    fn hold(&mut self, asked: &Hold) {
        self.wanted(&asked.lease, asked.tenant.as_deref(), &asked.kind, (true, asked.print()));
        let range = &asked.range;
        self.numbers(&[range.start.micros(), range.end.micros()]);
        self.numbers(&[range.before.micros(), range.after.micros()]);
        self.texts(&asked.calendars);
    }

    fn wanted(
        &mut self,
        wanted: &Wanted,
        tenant: Option<&str>,
        kind: &str,
        (slot, print): (bool, Option<Print>),
    ) {
        self.key(Some(wanted.key));
        self.flag(slot);
        let spans = [wanted.ttl, wanted.hold_max, wanted.grace];
        self.numbers(&spans.map(Span::micros));
        self.flag(wanted.version.is_some());
        self.numbers(&[wanted.version.unwrap_or(0)]);
        self.tenant(tenant);
        self.flag(print.is_some());
        let (name, asked) = print.unwrap_or_default();
        self.bytes.extend(name.into_iter().chain(asked));
        self.row(tenant, kind);
        let mut tail = Vec::new();
        maybe_text(&mut tail, wanted.label.as_deref());
        maybe_text(&mut tail, wanted.meta.as_deref());
        text(&mut self.bytes, &tail);
    }

    fn relocate(&mut self, asked: &Move) {
        self.proof(&asked.proof).numbers(&[asked.start.micros(), asked.end.micros()]);
        self.numbers(&[asked.grace.micros()]);
        self.flag(asked.calendars.is_some());
        self.texts(asked.calendars.as_deref().unwrap_or_default());
    }

    fn look(&mut self, asked: &Look) {
        self.tenant(asked.tenant.as_deref());
        text(&mut self.bytes, asked.calendar.as_bytes());
        self.numbers(&[asked.from.micros(), asked.to.micros()]);
        self.flag(asked.without.is_some());
        self.key(asked.without);
    }

    fn proof(&mut self, proof: &Proof) -> &mut Self {
        self.key(Some(proof.key));
        self.maybe_tenant(proof.tenant.as_deref());
        self
    }

    fn maybe_tenant(&mut self, tenant: Option<&str>) {
        self.flag(tenant.is_some());
        self.tenant(tenant);
    }

    fn tenant(&mut self, tenant: Option<&str>) {
        self.bytes.extend(Mark::of_tenant(self.namespace, tenant).0);
    }

    fn key(&mut self, key: Option<LeaseKey>) {
        self.bytes.extend(key.map(LeaseKey::to_bytes).unwrap_or_default());
    }

    /// Whose counts: a text of two.
    fn row(&mut self, tenant: Option<&str>, kind: &str) {
        let mut row = Vec::new();
        maybe_text(&mut row, tenant);
        text(&mut row, kind.as_bytes());
        text(&mut self.bytes, &row);
    }

    fn texts(&mut self, texts: &[Box<str>]) {
        self.bytes.push(u8::try_from(texts.len()).unwrap_or(u8::MAX));
        texts.iter().for_each(|one| text(&mut self.bytes, one.as_bytes()));
    }

    fn flag(&mut self, flag: bool) {
        self.bytes.push(u8::from(flag));
    }

    fn numbers(&mut self, numbers: &[i64]) {
        for number in numbers {
            self.bytes.extend(((*number).min(LARGEST + 1) as f64).to_le_bytes());
        }
    }
}

fn text(bytes: &mut Vec<u8>, text: &[u8]) {
    bytes.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
    bytes.extend(text);
}

fn maybe_text(bytes: &mut Vec<u8>, text: Option<&str>) {
    let length = text.map_or(0, |text| text.len() + 1);
    bytes.extend(u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    bytes.extend(text.unwrap_or_default().as_bytes());
}

/// The script's numbers of the operations: they may be added to, never changed.
const fn number(op: &LockOp) -> u8 {
    match op {
        LockOp::Acquire { .. } => 1,
        LockOp::Hold(_) => 2,
        LockOp::Miss { .. } => 3,
        LockOp::Renew { .. } => 4,
        LockOp::Release(_) => 5,
        LockOp::Cancel(_) => 6,
        LockOp::Confirm { .. } => 7,
        LockOp::Relocate(_) => 8,
        LockOp::Look(_) => 9,
        LockOp::Show(_) => 10,
        LockOp::List { .. } => 11,
        LockOp::Force { .. } => 12,
        LockOp::Clear { .. } => 13,
        LockOp::Undo(_) => 14,
        LockOp::Sweep => 15,
        LockOp::Tally => 16,
    }
}
