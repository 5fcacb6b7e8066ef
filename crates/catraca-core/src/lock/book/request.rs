//! Requests that may be repeated: the same name and parameters give the same lease.
//!
//! Names and parameters are kept as digests, for as long as their lease is remembered. Must not
//! take two different requests for one.

use super::Book;
use crate::lock::digest::Digest;
use crate::lock::op::{Acquire, Hold, Wanted};
use crate::lock::refusal::LockRefusal;
use crate::lock::reply::Acquired;

/// A request's name and what it asks for, digested.
pub type Print = ([u8; 16], [u8; 16]);

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

impl Acquire {
    /// What tells this request from others, if it has a name.
    pub fn print(&self) -> Option<Print> {
        of_acquire(self)
    }
}

impl Hold {
    /// What tells this request from others, if it has a name.
    pub fn print(&self) -> Option<Print> {
        of_hold(self)
    }
}

pub(super) fn of_acquire(asked: &Acquire) -> Option<Print> {
    let name = name(asked.tenant.as_deref(), asked.lease.request.as_deref()?);
    let mut print = Digest::new("acquire");
    print.text(asked.tenant.as_deref()).text(Some(&asked.kind)).number(asked.policy as i64);
    wanted(print.texts(&asked.keys), &asked.lease);
    Some((name, print.finish()))
}

pub(super) fn of_hold(asked: &Hold) -> Option<Print> {
    let name = name(asked.tenant.as_deref(), asked.lease.request.as_deref()?);
    let mut print = Digest::new("hold");
    print.text(asked.tenant.as_deref()).text(Some(&asked.kind));
    print.time(asked.range.start).time(asked.range.end);
    print.number(asked.range.before.micros()).number(asked.range.after.micros());
    wanted(print.texts(&asked.calendars), &asked.lease);
    Some((name, print.finish()))
}

fn name(tenant: Option<&str>, request: &str) -> [u8; 16] {
    let mut digest = Digest::new("request");
    digest.text(tenant).text(Some(request));
    digest.finish()
}

fn wanted(print: &mut Digest, wanted: &Wanted) {
    print.number(wanted.ttl.micros()).number(wanted.hold_max.micros());
    print.number(wanted.version.unwrap_or(-1));
    print.text(wanted.label.as_deref()).text(wanted.meta.as_deref());
}
