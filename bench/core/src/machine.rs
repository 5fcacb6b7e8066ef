//! What the kernel says of this process and this machine. Linux only: it reads `/proc`.
//! A figure that cannot be read is zero, or `unknown`; a missing counter never stops a run.

use std::fs::read_to_string;
use std::time::{Duration, Instant};

/// Kernel ticks per second in `/proc/stat`: fixed by the kernel's user interface.
const TICKS: f64 = 100.0;

/// Resident bytes of this process, counted page by page and not from the lazily summed counters.
pub fn resident_bytes() -> u64 {
    let rollup = read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    let line = rollup.lines().find_map(|line| line.strip_prefix("Rss:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse().ok()).unwrap_or(0u64) * 1024
}

/// Nanoseconds this thread has run, to the precision of the scheduler's tick.
pub fn thread_cpu_ns() -> f64 {
    schedstat(0) as f64
}

/// How long this thread has stood in a run queue in all.
pub fn thread_queued() -> Duration {
    Duration::from_nanos(schedstat(1))
}

fn schedstat(field: usize) -> u64 {
    let text = read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().nth(field).and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// Watches how many cores others use while we measure.
pub struct Load {
    clock: Instant,
    busy: f64,
    own: f64,
}

impl Load {
    /// Starts watching.
    pub fn start() -> Self {
        Load { clock: Instant::now(), busy: busy_ticks(), own: own_ticks() }
    }

    /// Cores used by anything but this process since the start.
    pub fn foreign(&self) -> f64 {
        let ticks = (busy_ticks() - self.busy) - (own_ticks() - self.own);
        (ticks / TICKS / self.clock.elapsed().as_secs_f64()).max(0.0)
    }
}

/// Ticks of the whole machine in user, nice, system, irq, softirq and steal.
fn busy_ticks() -> f64 {
    let text = read_to_string("/proc/stat").unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    let ticks: Vec<f64> = line.split_whitespace().skip(1).flat_map(str::parse).collect();
    [0, 1, 2, 5, 6, 7].iter().filter_map(|field| ticks.get(*field)).sum()
}

/// User and system ticks of this process.
fn own_ticks() -> f64 {
    let text = read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = text.rsplit(')').next().unwrap_or_default();
    after_name.split_whitespace().skip(11).take(2).flat_map(str::parse::<f64>).sum()
}

/// One line on the machine, for the head of a report.
pub fn describe() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let huge = read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let huge = huge.split(['[', ']']).nth(1).unwrap_or("unknown").to_owned();
    format!(
        "{cores} cores, {}, Linux {}, huge pages `{huge}`, system allocator",
        processor(),
        kernel.trim()
    )
}

fn processor() -> String {
    let text = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    let name = line.and_then(|line| line.split(':').nth(1));
    name.map_or("unknown processor".into(), |name| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_bytes_follow_touched_pages() {
        let before = resident_bytes();
        let pages = vec![1u8; 16 << 20];
        let gained = resident_bytes() - before;
        assert!(gained >= pages.len() as u64 * 9 / 10, "{gained}");
    }
}
