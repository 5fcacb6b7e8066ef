//! A waker that is silent for what its own task does.
//!
//! hyper hands a body over through a channel, and taking a part of it wakes the other end. In the
//! proxy both ends belong to one task, which is running: it would be scheduled once more, and find
//! nothing to do.

use std::cell::RefCell;
use std::sync::Arc;
use std::task::{Wake, Waker};

/// What happens to the wakes of quiet wakers on this thread. Wakes on other threads, such as those
/// of sockets, are never held back.
enum WakeMode {
    Pass,
    /// The first wake is kept here.
    HoldBack(Option<Waker>),
}

thread_local! {
    static WAKE_MODE: RefCell<WakeMode> = const { RefCell::new(WakeMode::Pass) };
}

struct QuietWaker(Waker);

/// Wakes the task of `task`, except in `quietly`.
pub fn quiet_waker(task: &Waker) -> Waker {
    Waker::from(Arc::new(QuietWaker(task.clone())))
}

impl Wake for QuietWaker {
    fn wake(self: Arc<Self>) {
        Self::wake_by_ref(&self);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let is_held = WAKE_MODE.try_with(|mode| match &mut *mode.borrow_mut() {
            WakeMode::HoldBack(held @ None) => {
                *held = Some(self.0.clone());
                true
            }
            _ => false,
        });
        if !is_held.unwrap_or(false) {
            self.0.wake_by_ref();
        }
    }
}

/// Calls `poll`, and returns the task that it would have woken. The caller wakes it, unless it
/// knows that the task has nothing to do.
pub fn quietly<T>(poll: impl FnOnce() -> T) -> (T, Option<Waker>) {
    /// Also after a panic.
    struct PassAgain;
    impl Drop for PassAgain {
        fn drop(&mut self) {
            WAKE_MODE.set(WakeMode::Pass);
        }
    }
    WAKE_MODE.set(WakeMode::HoldBack(None));
    let _pass_again = PassAgain;
    let polled = poll();
    match WAKE_MODE.replace(WakeMode::Pass) {
        WakeMode::HoldBack(held) => (polled, held),
        WakeMode::Pass => (polled, None),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Default)]
    struct WakeCount(AtomicUsize);

    impl Wake for WakeCount {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn only_wakes_of_the_same_thread_are_held_back() {
        let count = Arc::new(WakeCount::default());
        let wakes = || count.0.load(Ordering::Relaxed);
        let waker = quiet_waker(&Waker::from(Arc::clone(&count)));
        waker.wake_by_ref();
        assert_eq!(wakes(), 1);
        let ((), held) = quietly(|| waker.wake_by_ref());
        assert_eq!(wakes(), 1);
        held.expect("the wake was held back").wake();
        assert_eq!(wakes(), 2);
        let ((), held) = quietly(|| {
            std::thread::scope(|scope| {
                scope.spawn(|| waker.wake_by_ref());
            });
        });
        assert!(held.is_none());
        assert_eq!(wakes(), 3);
    }

    #[test]
    fn a_second_wake_and_one_after_a_panic_pass() {
        let count = Arc::new(WakeCount::default());
        let waker = quiet_waker(&Waker::from(Arc::clone(&count)));
        let ((), held) = quietly(|| {
            waker.wake_by_ref();
            waker.wake_by_ref();
        });
        assert!(held.is_some());
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        let panicked = std::panic::catch_unwind(|| quietly(|| panic!("a poll that panics")));
        assert!(panicked.is_err());
        waker.wake();
        assert_eq!(count.0.load(Ordering::Relaxed), 2);
    }
}
