//! Rushes: thousands of payers who look one key up each, more than the bucket of their participant
//! has. Categories A to E are large enough for nothing less.

use super::{Caller, Day, DayStep, PARTICIPANTS, Payer, SECOND_US};

const HOUR_US: i64 = 3_600 * SECOND_US;
/// The worker has taken the figures of the bank over.
const START_US: i64 = 10 * SECOND_US;

/// Payers of one participant who come one after the other.
#[derive(Clone, Copy)]
pub struct Rush {
    pub participant: usize,
    pub payers: u64,
    pub interval_us: i64,
    /// The number of the first payer.
    first: u64,
}

/// The participant, the hour and the number of payers of each rush. The intervals are such that
/// half of a bucket's refill comes meanwhile, at most.
const RUSHES: [(usize, i64, u64, i64); 8] = [
    (3, 2, 8_000, 5_000),
    (4, 0, 4_000, 2_000),
    (5, 0, 5_000, 1_000),
    (6, 0, 6_000, 900),
    (7, 10, 62_000, 700),
    (8, 7, 1_000, 10_000),
    (8, 9, 12_000, 2_000),
    (8, 19, 3_000, 2_000),
];
/// The rushes of the participant whose category changes: before, after the rise, after the fall.
pub const ASSIGNED: [usize; 3] = [5, 6, 7];

/// Adds the rushes, and the two changes of a category, to the day.
pub fn begin(day: &mut Day) {
    for (index, (participant, hour, payers, interval_us)) in RUSHES.into_iter().enumerate() {
        let first = index as u64 * 1_000_000;
        let rush = Rush { participant, payers, interval_us, first };
        day.at(START_US + hour * HOUR_US, DayStep::Rush(rush));
    }
    // So that these three meet their limits in seconds: other programs used the rest up.
    for (participant, size) in [(4, 16_000), (5, 30_000), (6, 40_000)] {
        let policy = "ENTRIES_READ_PARTICIPANT_ANTISCAN";
        day.bank.drain(0, policy, PARTICIPANTS[participant].0, size / 10 + 2_000);
    }
    for (hour, category) in [(8, 'C'), (18, 'F')] {
        day.at(hour * HOUR_US, DayStep::Assign { participant: ASSIGNED_PARTICIPANT, category });
    }
}

const ASSIGNED_PARTICIPANT: usize = PARTICIPANTS.len() - 1;

impl Day {
    /// The next payer of a rush.
    pub fn rush(&mut self, rush: Rush) {
        let number = rush.first + rush.payers;
        let caller = Caller {
            participant: rush.participant,
            payer: Payer::Numbered(number),
            unknown: 15,
            pause: None,
        };
        let admitted = self.admitted_to(rush.participant);
        self.step(DayStep::Ask(caller));
        let more = self.admitted_to(rush.participant) - admitted;
        *self.rushes.entry(rush.first).or_default() += more;
        if rush.payers > 1 {
            self.at(rush.interval_us, DayStep::Rush(Rush { payers: rush.payers - 1, ..rush }));
        }
    }

    fn admitted_to(&self, participant: usize) -> u64 {
        let what = format!("lookups of {}", PARTICIPANTS[participant].0);
        self.counts.get(&what).map_or(0, |counts| counts[0])
    }

    /// The payers of a rush who were admitted.
    pub fn admitted_by(&self, rush: usize) -> u64 {
        self.rushes.get(&(rush as u64 * 1_000_000)).copied().unwrap_or_default()
    }
}

/// A CPF with this number and its check digits.
pub fn cpf(number: u64) -> String {
    let mut digits = format!("{:09}", number + 100_000_000);
    for length in [10, 11] {
        let weights = (2..=length).rev();
        let sum: u64 = digits.bytes().zip(weights).map(|(d, w)| u64::from(d - b'0') * w).sum();
        let check = match sum * 10 % 11 {
            10 => 0,
            check => check,
        };
        digits.push_str(&check.to_string());
    }
    digits
}

#[test]
fn generated_numbers_have_the_check_digits_of_known_ones() {
    assert_eq!(cpf(11_444_777), "11144477735");
    assert_eq!(cpf(429_982_247), "52998224725");
}
