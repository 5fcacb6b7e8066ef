//! Beats: a few times a second a node asks whether the store lives, what others have changed, and
//! whether it still knows what it must.
//!
//! A store that comes back is told of every block first, and asked again after that. One that lost
//! its memory between two beats is noticed by the next. Must not let a check reach a store that is
//! known to have forgotten.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use catraca_core::batch::Batch;
use catraca_core::time::Span;

use super::SharedEngine;
use super::owing::{BATCH, Owed, telling};
#[cfg(not(feature = "records"))]
use crate::store::Pulse;
use crate::store::{SharedStore, StoreError, When};

/// How often a node asks.
const EVERY: Duration = Duration::from_millis(250);
/// Clocks that differ by more are worth an alarm.
const SKEW_MAX: Span = Span::from_secs(2);

/// What a beat found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beat {
    /// Whether the store answered, and is asked from now on.
    pub up: bool,
    /// Whether it had been away.
    pub back: bool,
    /// Whether it may have forgotten something, and was told again.
    pub reborn: bool,
    /// Whether others have changed lists, facts or modes.
    pub changed: bool,
    /// Whether its clock and this node's differ by two seconds or more.
    pub skewed: bool,
    /// What is set there that puts blocks in danger, and what helps.
    pub danger: Option<String>,
    /// What went wrong.
    pub trouble: Option<String>,
}

/// Beats for as long as the engine lives, on the runtime that this is called on.
pub fn tend<S: SharedStore>(
    engine: &Arc<SharedEngine<S>>,
    heard: impl Fn(&Beat) + Send + 'static,
) -> tokio::task::JoinHandle<()> {
    let engine = Arc::downgrade(engine);
    tokio::spawn(async move {
        loop {
            let Some(back) = engine.upgrade().map(|engine| engine.store.returns()) else { return };
            // A store that was away is found as soon as it says that it is back.
            let _ = tokio::time::timeout(EVERY, back).await;
            let Some(engine) = engine.upgrade() else { return };
            let beat = engine.beat().await;
            heard(&beat);
        }
    })
}

impl<S: SharedStore> SharedEngine<S> {
    /// One beat. [`tend`] makes them; tests make their own.
    pub async fn beat(&self) -> Beat {
        let away = !self.breaker.state().0;
        match self.listen().await {
            Ok(beat) => {
                // What came up meanwhile is told by the next beat, and the store asked after that.
                if self.owing.len() == 0 && self.doubted.lock().is_empty() {
                    self.breaker.close();
                }
                let (up, _, why) = self.breaker.state();
                Beat { up, back: away && up, trouble: beat.trouble.or(why), ..beat }
            }
            Err(error) => {
                self.breaker.failed(&reason(&error));
                Beat {
                    up: self.breaker.state().0,
                    trouble: Some(error.to_string()),
                    ..Beat::default()
                }
            }
        }
    }

    async fn listen(&self) -> Result<Beat, StoreError> {
        let here = self.engine.now();
        let pulse = self.store.pulse().await?;
        let before = self.heard.lock().map_or(pulse, |(before, _)| before);
        let (reborn, changed) = (before.life != pulse.life, before.changes != pulse.changes);
        let doubted = self.undo().await?;
        if reborn || doubted {
            self.breaker.hold("it may have lost something and is told of every block");
            self.known.clear();
            self.tell_again().await?;
        }
        self.pay().await?;
        if self.untold.load(Ordering::Relaxed) {
            self.stir().await;
        }
        let trouble = self.catch_up(&pulse, reborn || doubted, changed).await.err();
        // What was not done is tried again by the next beat.
        let heard = if trouble.is_none() { pulse } else { before };
        let ahead = pulse.now.micros() - here.micros();
        *self.heard.lock() = Some((heard, ahead));
        let skewed = ahead.abs() >= SKEW_MAX.micros();
        let danger = self.store.danger();
        Ok(Beat { reborn, changed, skewed, danger, trouble, ..Beat::default() })
    }

    /// Frees keys of acts whose answer was lost: they were refused, and may have been done. What
    /// stands by the records is told again after that. Says whether there were any.
    async fn undo(&self) -> Result<bool, StoreError> {
        let doubted = std::mem::take(&mut *self.doubted.lock());
        if doubted.is_empty() {
            return Ok(false);
        }
        let batch = Batch::Unblock(doubted);
        let done = self.store.apply(&batch, When::Store).await;
        if let (Err(_), Batch::Unblock(doubted)) = (&done, batch) {
            self.doubted.lock().extend(doubted);
        }
        done.map(|_| true)
    }

    /// Tells the store of every block that this node knows.
    async fn tell_again(&self) -> Result<(), StoreError> {
        let mut blocks = Vec::new();
        let now = self.engine.now();
        self.engine.store().each_block(|key, block| {
            if block.until > now && !block.shadow {
                blocks.push(Owed::standing(key, block));
            }
        });
        for some in blocks.chunks(BATCH) {
            self.store.apply(&telling(some, self.engine.now()), When::Store).await?;
        }
        Ok(())
    }

    /// Tells the store of the blocks that were started without it.
    async fn pay(&self) -> Result<(), StoreError> {
        let mut batches = self.owing.take(self.engine.now()).into_iter();
        while let Some(owed) = batches.next() {
            let batch: Batch = telling(&owed, self.engine.now());
            if let Err(error) = self.store.apply(&batch, When::Store).await {
                self.owing.give_back(owed.into_iter().chain(batches.flatten()));
                return Err(error);
            }
        }
        Ok(())
    }

    /// Without records there is nothing else to know.
    #[cfg(not(feature = "records"))]
    async fn catch_up(&self, _: &Pulse, _: bool, _: bool) -> Result<(), String> {
        Ok(())
    }
}

fn reason(error: &StoreError) -> String {
    match error {
        StoreError::Unavailable { reason } => reason.clone(),
        other => other.to_string(),
    }
}
