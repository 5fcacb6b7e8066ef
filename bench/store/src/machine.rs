//! What the machine does meanwhile: the server's time on a core, and everybody else's.

use std::fs;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};

/// What the kernel counts time in, on every Linux there is.
const TICKS_PER_SECOND: f64 = 100.0;

/// Seconds that a process has spent on a core.
pub fn cpu_seconds(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> =
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |place: usize| fields.get(place).and_then(|text| text.parse::<f64>().ok());
    (ticks(11).unwrap_or(0.0) + ticks(12).unwrap_or(0.0)) / TICKS_PER_SECOND
}

/// Gives the server one core and the driver the others, where there are some.
pub fn apart(server: u32) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if cores < 2 {
        return;
    }
    let mut first = CpuSet::new();
    let mut others = CpuSet::new();
    first.set(0);
    (1..cores).for_each(|core| others.set(core));
    let pid = i32::try_from(server).ok().and_then(Pid::from_raw);
    // Where it is not allowed they share, and the figures say so by their spread.
    let _ = sched_setaffinity(pid, &first);
    let _ = sched_setaffinity(None, &others);
}
