//! Receipts: the answer whether records are on disk, available later.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

/// Whether records are on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ack {
    /// They are, and survive the end of the process.
    Durable,
    /// They are not yet, for this reason. They are effective in memory, stay queued and are tried
    /// again.
    NotYet(Arc<str>),
}

impl Ack {
    /// The value of `durable` in responses.
    pub const fn is_durable(&self) -> bool {
        matches!(self, Self::Durable)
    }
}

/// Resolves to whether records are on disk: a future, or a blocking wait.
#[derive(Debug)]
pub struct Receipt(oneshot::Receiver<Ack>);

/// The sending side of a receipt.
pub(super) type AckSender = oneshot::Sender<Ack>;

impl Receipt {
    pub(super) fn new() -> (AckSender, Self) {
        let (ack_sender, receiver) = oneshot::channel();
        (ack_sender, Self(receiver))
    }

    /// A receipt for no records: durable at once.
    pub(super) fn nothing() -> Self {
        let (ack_sender, receipt) = Self::new();
        // Cannot fail: the receiver is alive.
        let _ = ack_sender.send(Ack::Durable);
        receipt
    }

    /// The answer, if there is one already.
    #[cfg(feature = "shared")]
    pub(crate) fn try_ack(&mut self) -> Option<Ack> {
        match self.0.try_recv() {
            Ok(ack) => Some(ack),
            Err(oneshot::error::TryRecvError::Empty) => None,
            Err(oneshot::error::TryRecvError::Closed) => Some(closed_ack()),
        }
    }

    /// Blocks until the answer. Must not be called on a thread of an async runtime; await it there.
    pub fn wait(self) -> Ack {
        self.0.blocking_recv().unwrap_or_else(|_| closed_ack())
    }
}

impl Future for Receipt {
    type Output = Ack;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Ack> {
        Pin::new(&mut self.0).poll(context).map(|ack| ack.unwrap_or_else(|_| closed_ack()))
    }
}

fn closed_ack() -> Ack {
    Ack::NotYet("the records are closed".into())
}
