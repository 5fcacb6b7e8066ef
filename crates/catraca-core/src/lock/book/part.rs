//! Part of a book: what one operation can meet, brought here from where all of it is kept.
//!
//! A store that keeps leases elsewhere brings those that matter, lets the rules do the operation,
//! and writes down what has changed. Must not hold a rule: they are the book's own.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Book, Lease};
use crate::lock::id::LeaseKey;
use crate::lock::kept::KeptVersion;
use crate::lock::reply::{State, View, What};
use crate::time::Time;

/// A lease as it is kept elsewhere, ended or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredLease {
    /// The lease.
    pub view: View,
    /// The digests of the request's name and of what it asked for.
    pub request: Option<([u8; 16], [u8; 16])>,
    /// When something is next to be done about it: its end, or when it is forgotten.
    pub due: Time,
    /// Its names stay taken until then, though an operator ended it.
    pub cool_until: Time,
}

/// What an operation is told of a namespace.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// The latest instant that was ever told.
    pub now: Time,
    /// The last number that was given out.
    pub fence: i64,
    /// Leases that it can meet.
    pub leases: Vec<StoredLease>,
    /// Versions that it can meet.
    pub versions: Vec<KeptVersion>,
    /// How many leases there are beside these.
    pub elsewhere: usize,
    /// How many versions there are beside these.
    pub versions_elsewhere: usize,
}

impl StoredLease {
    /// Whether it keeps others out at an instant, as far as was written down.
    pub fn takes(&self, now: Time) -> bool {
        self.view.state.is_live() || self.cools(now)
    }

    /// Only names cool: time is free at once.
    fn cools(&self, now: Time) -> bool {
        let names = matches!(self.view.what, What::Names(_));
        names && self.view.state == State::Forced && now < self.cool_until
    }
}

impl Book {
    /// A book that knows this part alone.
    pub fn of(part: Part) -> Self {
        let (now, fence, elsewhere) = (part.now, part.fence, part.elsewhere);
        let mut book = Self { now, fence, elsewhere, ..Self::default() };
        book.versions.elsewhere = part.versions_elsewhere;
        for stored in part.leases {
            book.bring(stored);
        }
        for kept in part.versions {
            book.restore_version(kept);
        }
        book
    }

    /// Every lease that it knows, by what they are found by.
    pub fn stored(&self) -> BTreeMap<LeaseKey, StoredLease> {
        // Something is to be done about every lease, sooner or later.
        let stored = self.due.iter().filter_map(|(_, key)| {
            let Lease { view, request, due, cool_until } = self.leases.get(key)?;
            let (due, cool_until) = (*due, *cool_until);
            Some((*key, StoredLease { view: view.clone(), request: *request, due, cool_until }))
        });
        stored.collect()
    }

    pub(super) fn bring(&mut self, stored: StoredLease) {
        let takes_names = stored.cools(self.now);
        let StoredLease { view, request, due, cool_until } = stored;
        if view.state.is_live() {
            return self.insert(view, request);
        }
        let key = view.key;
        if let (What::Names(names), true) = (&view.what, takes_names) {
            self.names.extend(names.iter().map(|name| (Arc::clone(name), key)));
        }
        if let Some((name, print)) = request {
            self.requests.insert(name, (print, key));
        }
        self.due.insert((due, key));
        self.leases.insert(key, Lease { view, request, due, cool_until });
    }
}
