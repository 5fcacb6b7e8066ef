//! An exchange is one operation of the engine as a value: it asks for batches, takes their replies,
//! and ends in an answer with the events that it caused.
//!
//! The steps of an operation are written once, in its exchange. A driver carries batches to a store
//! and replies back, and knows nothing of policies: [`Engine::run`] drives an exchange over a store
//! in this process, and `shared::SharedDriver` over a store of several nodes.

use catraca_core::batch::{Batch, Reply};
#[cfg(feature = "shared")]
use catraca_core::policy::OnFailure;
#[cfg(feature = "shared")]
use smallvec::SmallVec;

use super::Engine;
use crate::error::Error;
use crate::event::Event;
use crate::store::{Store, StoreError, When};

/// The `on_failure` of each row of a check batch.
#[cfg(feature = "shared")]
pub(crate) type FailureModes = SmallVec<[OnFailure; 2]>;

/// One operation in progress.
pub(crate) trait Exchange {
    /// The result of the operation.
    type Answer;

    /// The batch to apply next; absent once the store is not needed any more.
    fn batch(&self) -> Option<&Batch>;

    /// Takes the reply to that batch.
    fn on_reply(&mut self, reply: StoreReply) -> Result<(), Error>;

    /// Ends the operation; called once, when `batch` returns nothing. Events are pushed even if the
    /// operation fails: what the store has applied has happened.
    fn conclude(&mut self, events: &mut Events) -> Result<Self::Answer, Error>;

    /// The event that describes the answer itself, reported after all others.
    fn summary<'e>(&'e self, _answer: &'e Self::Answer) -> Option<Event<'e>> {
        None
    }

    /// Which store applies the next batch, if a shared store is in use.
    #[cfg(feature = "shared")]
    fn target(&self) -> BatchTarget {
        BatchTarget::Shared
    }

    /// Changes the next batch into one for the memory of this node, which applies its share of each
    /// limit. Returns false if the operation has no such form and must fail.
    #[cfg(feature = "shared")]
    fn localize(&mut self, _nodes: i64) -> bool {
        false
    }

    /// The `on_failure` of each row, if the next batch is a check that charges.
    #[cfg(feature = "shared")]
    fn failure_modes(&self) -> FailureModes {
        FailureModes::new()
    }
}

/// An operation that needs exactly one batch: the batch, and how its reply becomes the answer.
pub(crate) struct OneBatch<C> {
    batch: Batch,
    reply: Option<Reply>,
    conclude: Option<C>,
}

impl<C> OneBatch<C> {
    pub fn new<A>(batch: Batch, conclude: C) -> Self
    where
        C: FnOnce(Reply, &mut Events) -> Result<A, Error>,
    {
        Self { batch, reply: None, conclude: Some(conclude) }
    }
}

impl<A, C> Exchange for OneBatch<C>
where
    C: FnOnce(Reply, &mut Events) -> Result<A, Error>,
{
    type Answer = A;

    fn batch(&self) -> Option<&Batch> {
        self.reply.is_none().then_some(&self.batch)
    }

    fn on_reply(&mut self, reply: StoreReply) -> Result<(), Error> {
        self.reply = Some(reply.reply);
        Ok(())
    }

    fn conclude(&mut self, events: &mut Events) -> Result<A, Error> {
        let (Some(reply), Some(conclude)) = (self.reply.take(), self.conclude.take()) else {
            return Err(StoreError::mismatched_reply().into());
        };
        conclude(reply, events)
    }
}

/// The reply to a batch, and where it comes from.
#[derive(Debug)]
pub(crate) struct StoreReply {
    pub reply: Reply,
    pub source: ReplySource,
    /// Whether other nodes may decide on another copy of the store.
    pub is_doubtful: bool,
}

/// Where a reply comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplySource {
    /// The store of the engine.
    Store,
    /// The block cache of this node. The reply has one row: the one with this index in the batch.
    #[cfg(feature = "shared")]
    BlockCache { row: usize },
    /// The memory of this node, because the shared store is unavailable or does not have the data.
    #[cfg(feature = "shared")]
    Local,
}

impl ReplySource {
    pub const fn is_block_cache(self) -> bool {
        match self {
            Self::Store => false,
            #[cfg(feature = "shared")]
            Self::BlockCache { .. } => true,
            #[cfg(feature = "shared")]
            Self::Local => false,
        }
    }

    pub const fn is_local(self) -> bool {
        match self {
            Self::Store => false,
            #[cfg(feature = "shared")]
            Self::BlockCache { .. } => false,
            #[cfg(feature = "shared")]
            Self::Local => true,
        }
    }
}

/// Which store applies a batch, if a shared store is in use.
#[cfg(feature = "shared")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchTarget {
    /// The shared store.
    Shared,
    /// The memory of this node: its local fallback decided the check that the batch is about.
    Local,
}

/// The events of one operation, in the order in which they happened.
#[derive(Debug)]
pub(crate) struct Events {
    is_wanted: bool,
    /// Whether this node has applied a part of the operation without the shared store.
    #[cfg(all(feature = "shared", feature = "records"))]
    is_local: bool,
    list: Vec<Event<'static>>,
}

impl Events {
    /// Collects events if anything will read them; building one allocates.
    pub fn new(is_wanted: bool) -> Self {
        Self {
            is_wanted,
            #[cfg(all(feature = "shared", feature = "records"))]
            is_local: false,
            list: Vec::new(),
        }
    }

    /// Notes that this node has applied a part of the operation without the shared store.
    #[cfg(all(feature = "shared", feature = "records"))]
    pub fn set_local(&mut self) {
        self.is_local = true;
    }

    /// Whether this node has applied a part of the operation without the shared store.
    #[cfg(all(feature = "shared", feature = "records"))]
    pub fn is_local(&self) -> bool {
        self.is_local
    }

    /// Whether events are collected.
    pub fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    pub fn push(&mut self, event: Event<'static>) {
        if self.is_wanted {
            self.list.push(event);
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Event<'static>> {
        self.list.iter()
    }

    #[cfg(feature = "shared")]
    pub fn into_vec(self) -> Vec<Event<'static>> {
        self.list
    }
}

impl<S: Store> Engine<S> {
    /// Runs an operation over the store of this engine, and calls the listener with its events.
    #[inline]
    pub(crate) fn run<X: Exchange>(&self, exchange: &mut X) -> Result<X::Answer, Error> {
        let mut events = Events::new(self.listener.is_some());
        if !events.is_wanted() {
            return self.drive(exchange, &mut events);
        }
        let answer = self.drive(exchange, &mut events);
        self.emit_all(&events);
        if let Ok(answer) = &answer {
            self.emit_summary(exchange, answer);
        }
        answer
    }

    /// Carries batches to the store and replies back until the operation has its answer.
    #[inline]
    pub(crate) fn drive<X: Exchange>(
        &self,
        exchange: &mut X,
        events: &mut Events,
    ) -> Result<X::Answer, Error> {
        while let Some(batch) = exchange.batch() {
            let reply = self.store.apply(batch, When::Store)?;
            let source = ReplySource::Store;
            exchange.on_reply(StoreReply { reply, source, is_doubtful: false })?;
        }
        exchange.conclude(events)
    }
}

impl<S> Engine<S> {
    pub(crate) fn emit_all(&self, events: &Events) {
        events.iter().for_each(|event| self.emit(event));
    }

    #[inline]
    pub(crate) fn emit_summary<X: Exchange>(&self, exchange: &X, answer: &X::Answer) {
        // Without a listener the summary is not built.
        if let Some(listener) = &self.listener
            && let Some(event) = exchange.summary(answer)
        {
            listener(&event);
        }
    }
}
