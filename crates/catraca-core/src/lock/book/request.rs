//! Requests that may be repeated: the same name and parameters give the same lease.
//!
//! Names and parameters are kept as digests, for as long as their lease is remembered. Must not
//! take two different requests for one.

use super::Book;
use crate::lock::op::{Acquire, Hold, Wanted};
use crate::lock::refusal::LockRefusal;
use crate::lock::reply::Acquired;
use crate::time::Time;

/// A request's name and what it asks for, digested.
pub(super) type Print = ([u8; 16], [u8; 16]);

impl Book {
    /// What was answered to this very request, if it was granted before.
    pub(super) fn repeated(&self, print: Option<Print>) -> Option<Acquired> {
        let (name, asked) = print?;
        let (before, key) = self.requests.get(&name)?;
        if *before != asked {
            return Some(Acquired::Refused(LockRefusal::OtherRequest));
        }
        let lease = self.leases.get(key)?;
        let live = lease.view.state.is_live() && self.now < lease.view.expires_at;
        Some(match live {
            true => Acquired::Again(Box::new(lease.view.clone())),
            false => Acquired::Refused(LockRefusal::RequestOver),
        })
    }
}

pub(super) fn of_acquire(asked: &Acquire) -> Option<Print> {
    let name = name(asked.tenant.as_deref(), asked.lease.request.as_deref()?);
    let mut print = Digest::new("acquire");
    print.text(asked.tenant.as_deref()).text(Some(&asked.kind)).number(asked.policy as i64);
    print.texts(&asked.keys).wanted(&asked.lease);
    Some((name, print.finish()))
}

pub(super) fn of_hold(asked: &Hold) -> Option<Print> {
    let name = name(asked.tenant.as_deref(), asked.lease.request.as_deref()?);
    let mut print = Digest::new("hold");
    print.text(asked.tenant.as_deref()).text(Some(&asked.kind));
    print.time(asked.range.start).time(asked.range.end);
    print.number(asked.range.before.micros()).number(asked.range.after.micros());
    print.texts(&asked.calendars).wanted(&asked.lease);
    Some((name, print.finish()))
}

fn name(tenant: Option<&str>, request: &str) -> [u8; 16] {
    let mut digest = Digest::new("request");
    digest.text(tenant).text(Some(request));
    digest.finish()
}

struct Digest(blake3::Hasher);

impl Digest {
    fn new(usage: &str) -> Self {
        let mut digest = Self(blake3::Hasher::new());
        digest.text(Some(usage));
        digest
    }

    fn number(&mut self, number: i64) -> &mut Self {
        self.0.update(&number.to_le_bytes());
        self
    }

    fn time(&mut self, time: Time) -> &mut Self {
        self.number(time.micros())
    }

    /// With its length before it, so that no two lists of texts are the same bytes.
    fn text(&mut self, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => {
                self.number(text.len() as i64);
                self.0.update(text.as_bytes());
                self
            }
            None => self.number(-1),
        }
    }

    fn texts(&mut self, texts: &[Box<str>]) -> &mut Self {
        self.number(texts.len() as i64);
        texts.iter().fold(self, |digest, text| digest.text(Some(text)))
    }

    fn wanted(&mut self, wanted: &Wanted) -> &mut Self {
        self.number(wanted.ttl.micros()).number(wanted.hold_max.micros());
        self.number(wanted.version.unwrap_or(-1));
        self.text(wanted.label.as_deref()).text(wanted.meta.as_deref())
    }

    fn finish(&self) -> [u8; 16] {
        let mut half = [0; 16];
        half.copy_from_slice(&self.0.finalize().as_bytes()[..16]);
        half
    }
}
