//! A progress bar on standard error, only if that is a terminal.

use std::io::{IsTerminal, stderr};

use catraca_replay::simulate::ReadProgress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::render::count;

/// For a file of known size.
const BAR: &str = "{bar:32} {bytes}/{total_bytes}  {msg}  {eta} left";
/// For a pipe.
const SPINNER: &str = "{spinner} {bytes}  {msg}  {elapsed}";
/// Maximum redraws per second.
const TIMES_PER_SECOND: u8 = 5;

/// A progress bar, or `None` without a terminal.
pub struct Progress(Option<ProgressBar>);

impl Progress {
    /// A bar for this many bytes, or a spinner for an unknown size.
    pub fn new(size: Option<u64>) -> Self {
        if !stderr().is_terminal() {
            return Self(None);
        }
        let target = ProgressDrawTarget::stderr_with_hz(TIMES_PER_SECOND);
        let (bar, style) = match size {
            Some(size) => (ProgressBar::with_draw_target(Some(size), target), BAR),
            None => (ProgressBar::with_draw_target(None, target), SPINNER),
        };
        // The tests below check that both templates are valid.
        let style =
            ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar());
        Self(Some(bar.with_style(style.progress_chars("━╸─"))))
    }
}

impl ReadProgress for Progress {
    fn on_bytes(&self, more: usize) {
        if let Some(bar) = &self.0 {
            bar.inc(more as u64);
        }
    }

    fn on_lines(&self, total: u64) {
        if let Some(bar) = &self.0 {
            bar.set_message(format!("{} lines", count(total)));
        }
    }

    /// Removes the bar from the screen.
    fn on_end(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_templates_can_be_drawn() {
        for template in [BAR, SPINNER] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }

    #[test]
    fn nobody_watches_a_test_so_nothing_is_drawn() {
        // A test runner may run on a terminal; then there is a bar, and it counts.
        let progress = Progress::new(Some(10));
        progress.on_bytes(4);
        progress.on_lines(3_000);
        if let Some(bar) = &progress.0 {
            assert_eq!((bar.position(), bar.message().as_str()), (4, "3,000 lines"));
        }
        progress.on_end();
    }
}
