//! A fake wall clock for a child process, as a small library for `LD_PRELOAD`.
//!
//! Only the wall clock is shifted; the monotonic clock is not, so timeouts are not affected.
//! libfaketime conflicts with the allocator of Debian's redis-server, hence this library, which
//! `cc` builds at run time; rustc needs `cc` too.

#![expect(clippy::expect_used, reason = "a test cannot run without its clock")]

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs};

/// The library: adds the number of seconds in a mapped file to the wall clock. It allocates no
/// memory.
const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static volatile long long *seconds;
static long long ahead(void) {
  if (!seconds) {
    const char *name = getenv("FAKE_CLOCK");
    int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return 0;
    void *mapped = mmap(0, sizeof *seconds, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (mapped == MAP_FAILED) return 0;
    seconds = mapped;
  }
  return *seconds;
}
int clock_gettime(clockid_t which, struct timespec *now) {
  int failed = syscall(SYS_clock_gettime, which, now);
  if (!failed && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE))
    now->tv_sec += ahead();
  return failed;
}
int gettimeofday(struct timeval *now, void *zone) {
  struct timespec fine;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &fine)) return -1;
  now->tv_sec = fine.tv_sec;
  now->tv_usec = fine.tv_nsec / 1000;
  return 0;
}
time_t time(time_t *now) {
  struct timespec fine;
  if (clock_gettime(CLOCK_REALTIME, &fine)) return -1;
  if (now) *now = fine.tv_sec;
  return fine.tv_sec;
}
"#;

/// The library and the file with its offset; both are deleted on drop.
#[derive(Debug)]
pub struct FakeClockLibrary {
    directory: PathBuf,
}

impl FakeClockLibrary {
    /// Builds the library, with an offset of zero.
    ///
    /// # Panics
    ///
    /// If it cannot be built.
    pub fn build() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("catraca-clock-{}-{number}", std::process::id());
        let clock = Self { directory: env::temp_dir().join(name) };
        fs::create_dir_all(&clock.directory).expect("the temporary directory can be written");
        let source = clock.directory.join("clock.c");
        fs::write(&source, SOURCE).expect("the temporary directory can be written");
        let mut cc = Command::new("cc");
        // A shared library, which LD_PRELOAD puts before the C library.
        cc.args(["-O2", "-shared", "-fPIC", "-o"]).arg(clock.library()).arg(source);
        let built = cc.output().expect("there is a C compiler");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        clock.set(0);
        clock
    }

    /// Sets the clock `ahead` seconds ahead of the real one.
    ///
    /// # Panics
    ///
    /// If the temporary directory cannot be written.
    pub fn set(&self, ahead: i64) {
        // The child process maps the file, so it is changed in place by one write, not replaced.
        fs::OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.file())
            .and_then(|mut file| std::io::Write::write_all(&mut file, &ahead.to_le_bytes()))
            .expect("the temporary directory can be written");
    }

    /// The environment variables for a child process that uses the clock.
    pub fn environment(&self) -> Vec<(&'static str, OsString)> {
        vec![("LD_PRELOAD", self.library().into()), ("FAKE_CLOCK", self.file().into())]
    }

    fn library(&self) -> PathBuf {
        self.directory.join("clock.so")
    }

    fn file(&self) -> PathBuf {
        self.directory.join("ahead")
    }
}

impl Drop for FakeClockLibrary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}
