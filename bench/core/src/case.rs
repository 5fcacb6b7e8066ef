//! The cases: what is asked of a subject in one child process. Holds no measuring code.

/// Keys of the largest population.
pub const MILLION: u64 = 1_000_000;

/// Window limits whose memory is measured when every key is full.
pub const WINDOW_LIMITS: [u64; 4] = [10, 60, 120, 600];

/// One case.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// Time decisions over a resident population, on one or two threads.
    Speed {
        /// Resident keys; one means a single hot key.
        keys: u64,
        /// Threads deciding at once.
        threads: usize,
    },
    /// Fill to 2^20 keys: bytes per key at many levels, and the slowest insert up to 1M.
    Fill,
    /// Cost of a decision and of an insert at every sixteenth of 1M keys.
    Steps,
    /// Bytes per key of exact windows that hold `limit` entries each.
    Window {
        /// Entries per key.
        limit: u64,
    },
}

impl Case {
    /// Every case, in the order it is run and reported.
    pub fn all() -> Vec<Case> {
        let sizes = [1, 1_000, 100_000, MILLION];
        let speed = [1, 2]
            .into_iter()
            .flat_map(|threads| sizes.into_iter().map(move |keys| Case::Speed { keys, threads }));
        let windows = WINDOW_LIMITS.into_iter().map(|limit| Case::Window { limit });
        speed.chain([Case::Fill, Case::Steps]).chain(windows).collect()
    }

    /// The case of that name.
    pub fn from_name(name: &str) -> Option<Case> {
        Case::all().into_iter().find(|case| case.name() == name)
    }

    /// The name used on the command line and in JSON lines.
    pub fn name(self) -> String {
        match self {
            Case::Speed { keys, threads } => format!("{}-{threads}", size_name(keys)),
            Case::Fill => "fill".into(),
            Case::Steps => "steps".into(),
            Case::Window { limit } => format!("window-{limit}"),
        }
    }
}

/// How a population is written: `hot`, `1k`, `100k`, `1m`.
pub fn size_name(keys: u64) -> &'static str {
    match keys {
        1 => "hot",
        1_000 => "1k",
        100_000 => "100k",
        _ => "1m",
    }
}
