//! Receipts: the promise to say whether something is on disk.
//!
//! Must not be kept waiting for a disk that is known to be down.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

/// Whether something is on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ack {
    /// It is, and survives the end of the process.
    Durable,
    /// It is not yet, for this reason. It stands in memory, is tried again and is counted.
    NotYet(Arc<str>),
}

impl Ack {
    /// What the answer's `durable` says.
    pub const fn is_durable(&self) -> bool {
        matches!(self, Self::Durable)
    }
}

/// Will say whether something is on disk: a future, or a blocking wait.
#[derive(Debug)]
pub struct Receipt(oneshot::Receiver<Ack>);

/// The other end of a receipt.
pub(super) type Acker = oneshot::Sender<Ack>;

impl Receipt {
    pub(super) fn new() -> (Acker, Self) {
        let (acker, receiver) = oneshot::channel();
        (acker, Self(receiver))
    }

    /// A receipt for nothing at all, which is always on disk.
    pub(super) fn nothing() -> Self {
        let (acker, receipt) = Self::new();
        // The receipt is held right here, so there is somebody to tell.
        let _ = acker.send(Ack::Durable);
        receipt
    }

    /// Waits for the answer. Must not be called on an async runtime's thread: await it there.
    pub fn wait(self) -> Ack {
        self.0.blocking_recv().unwrap_or_else(|_| ended())
    }
}

impl Future for Receipt {
    type Output = Ack;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Ack> {
        Pin::new(&mut self.0).poll(context).map(|told| told.unwrap_or_else(|_| ended()))
    }
}

fn ended() -> Ack {
    Ack::NotYet("the records were closed".into())
}
