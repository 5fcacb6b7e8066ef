//! The program `catraca`; its code is in the library of this package.

use std::process::ExitCode;

/// A response makes many small allocations that the same thread frees: mimalloc's fast path.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    catraca_server::main()
}
