//! A server process: started on a core of its own where that can be had, watched through `/proc`,
//! ended by its id. Linux only.

use std::fs::{File, read_to_string};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CpuSet, sched_setaffinity};

/// Kernel ticks per second in `/proc`: fixed by the kernel's user interface.
const TICKS: f64 = 100.0;
const START: Duration = Duration::from_secs(20);
const STOP: Duration = Duration::from_secs(15);

/// A running server, ended when it is dropped.
pub struct Server {
    child: Child,
    /// Its port on loopback.
    pub port: u16,
}

/// A free port.
pub fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(|e| format!("a port: {e}"))?;
    listener.local_addr().map(|at| at.port()).map_err(|e| format!("a port: {e}"))
}

impl Server {
    /// Starts a server on core 0, and waits until it takes connections; `log` gets its errors.
    pub fn start(command: &[String], port: u16, log: Option<File>) -> Result<Self, String> {
        Self::start_on("0", command, port, log)
    }

    /// Starts a server on a core.
    pub fn start_on(
        core: &str,
        command: &[String],
        port: u16,
        log: Option<File>,
    ) -> Result<Self, String> {
        let mut pinned = Command::new(if has_taskset() { "taskset" } else { &command[0] });
        if has_taskset() {
            pinned.args(["-c", core, &command[0]]);
        }
        let errors = log.map_or_else(Stdio::null, Stdio::from);
        pinned.args(&command[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        let child = pinned.spawn().map_err(|e| format!("cannot start {}: {e}", command[0]))?;
        let mut server = Self { child, port };
        server.wait_for_port().map_err(|why| format!("{}: {why}", command.join(" ")))?;
        Ok(server)
    }

    fn wait_for_port(&mut self) -> Result<(), String> {
        let patience = Instant::now() + START;
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("ended at once: {status}"));
            }
            if Instant::now() > patience {
                return Err("did not listen in time".to_owned());
            }
            sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Seconds of processor time so far, of all its threads: in its own code, and in all.
    pub fn cpu_seconds(&self) -> (f64, f64) {
        let text = read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        let after_name = text.rsplit(')').next().unwrap_or_default();
        let mut ticks = after_name.split_whitespace().skip(11).flat_map(str::parse::<f64>);
        let user = ticks.next().unwrap_or(0.0);
        let system = ticks.next().unwrap_or(0.0);
        (user / TICKS, (user + system) / TICKS)
    }

    /// Resident KiB.
    pub fn resident_kib(&self) -> u64 {
        self.status_kib("VmRSS:")
    }

    /// The most KiB that were ever resident.
    pub fn peak_kib(&self) -> u64 {
        self.status_kib("VmHWM:")
    }

    fn status_kib(&self, field: &str) -> u64 {
        let text = read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
        line.split_whitespace().next().and_then(|kib| kib.parse().ok()).unwrap_or(0)
    }

    /// Asks it to stop and waits; it is killed when it does not.
    pub fn stop(mut self) -> Result<(), String> {
        match self.end() {
            true => Ok(()),
            false => Err("the server did not stop when asked and was killed".to_owned()),
        }
    }

    fn end(&mut self) -> bool {
        if let Ok(Some(_)) = self.child.try_wait() {
            return true;
        }
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        pid.map(|pid| kill_process(pid, Signal::TERM));
        let patience = Instant::now() + STOP;
        while Instant::now() < patience {
            if let Ok(Some(_)) = self.child.try_wait() {
                return true;
            }
            sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        false
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// Keeps this process off the servers' core, where there is another.
pub fn step_aside() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if cores > 1 && has_taskset() {
        let mut others = CpuSet::new();
        (1..cores).for_each(|core| others.set(core));
        let _ = sched_setaffinity(None, &others);
    }
}

fn has_taskset() -> bool {
    Path::new("/usr/bin/taskset").is_file()
}

/// Cores in use by all processes, measured between two calls.
pub fn busy_seconds() -> f64 {
    let text = read_to_string("/proc/stat").unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    let ticks: Vec<f64> = line.split_whitespace().skip(1).flat_map(str::parse).collect();
    [0, 1, 2, 5, 6, 7].iter().filter_map(|field| ticks.get(*field)).sum::<f64>() / TICKS
}

/// Processor seconds of this process.
pub fn own_seconds() -> f64 {
    let text = read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = text.rsplit(')').next().unwrap_or_default();
    after_name.split_whitespace().skip(11).take(2).flat_map(str::parse::<f64>).sum::<f64>() / TICKS
}
