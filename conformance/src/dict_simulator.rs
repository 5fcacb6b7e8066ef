//! A simulator of the DICT's rate limits, with its own 429, as its API 2.12.1 and the operating
//! manual describe them: a second implementation, which shares nothing with Catraca.
//!
//! Buckets refill continuously. A request needs one token; the answer is charged afterwards and may
//! leave a debt. Time is an argument, in microseconds.

use std::collections::HashMap;

const MINUTE_US: i64 = 60_000_000;
const DAY_US: i64 = 86_400_000_000;

/// Sizes and refills per minute by category, for lookups and for statistics of entries.
const CATEGORIES: [(char, i64, i64); 8] = [
    ('A', 50_000, 25_000),
    ('B', 40_000, 20_000),
    ('C', 30_000, 15_000),
    ('D', 16_000, 8_000),
    ('E', 5_000, 2_500),
    ('F', 500, 250),
    ('G', 250, 25),
    ('H', 50, 2),
];

/// The policies of a participant whose size does not depend on the category: size and refill.
const PARTICIPANT_POLICIES: [(&str, i64, i64); 27] = [
    ("ENTRIES_WRITE", 36_000, 1_200),
    ("ENTRIES_UPDATE", 600, 600),
    ("CLAIMS_READ", 18_000, 600),
    ("CLAIMS_WRITE", 36_000, 1_200),
    ("CLAIMS_LIST_WITH_ROLE", 200, 40),
    ("CLAIMS_LIST_WITHOUT_ROLE", 50, 10),
    ("SYNC_VERIFICATIONS_WRITE", 50, 10),
    ("CIDS_FILES_WRITE", 200, 40),
    ("CIDS_FILES_READ", 50, 10),
    ("CIDS_EVENTS_LIST", 100, 20),
    ("CIDS_ENTRIES_READ", 36_000, 1_200),
    ("INFRACTION_REPORTS_READ", 18_000, 600),
    ("INFRACTION_REPORTS_WRITE", 36_000, 1_200),
    ("INFRACTION_REPORTS_LIST_WITH_ROLE", 200, 40),
    ("INFRACTION_REPORTS_LIST_WITHOUT_ROLE", 50, 10),
    ("KEYS_CHECK", 70, 70),
    ("REFUNDS_READ", 36_000, 1_200),
    ("REFUNDS_WRITE", 72_000, 2_400),
    ("REFUND_LIST_WITH_ROLE", 200, 40),
    ("REFUND_LIST_WITHOUT_ROLE", 50, 10),
    ("FRAUD_MARKERS_READ", 18_000, 600),
    ("FRAUD_MARKERS_WRITE", 36_000, 1_200),
    ("FRAUD_MARKERS_LIST", 18_000, 600),
    ("PERSONS_STATISTICS_READ", 36_000, 12_000),
    ("POLICIES_READ", 200, 60),
    ("POLICIES_LIST", 20, 6),
    ("EVENT_LIST", 200, 40),
];

const LOOKUPS: &str = "ENTRIES_READ_PARTICIPANT_ANTISCAN";
const STATISTICS: &str = "ENTRIES_STATISTICS_READ";
const LIST: &str = "POLICIES_LIST";

/// A lookup of a key (`getEntry`).
#[derive(Clone, Debug)]
pub struct Lookup {
    /// The ISPB.
    pub participant: String,
    /// The CPF or CNPJ of the payer.
    pub payer: String,
    /// Whether the key is an e-mail address or a telephone number.
    pub is_contact: bool,
    /// The EndToEndId.
    pub reference: String,
}

/// The directory of one central bank.
#[derive(Debug, Default)]
pub struct DictSimulator {
    categories: HashMap<String, char>,
    /// By policy and owner.
    buckets: HashMap<(String, String), SimulatedBucket>,
    /// Lookups that were found and not paid, by EndToEndId.
    unpaid: HashMap<String, Lookup>,
    requests: u64,
    refusals: u64,
}

#[derive(Clone, Copy, Debug)]
struct SimulatedBucket {
    size: i64,
    refill: i64,
    period_us: i64,
    /// Tokens times the period, so that refills are exact.
    level: i128,
    at_us: i64,
}

impl SimulatedBucket {
    fn full(size: i64, refill: i64, period_us: i64) -> Self {
        let level = i128::from(size) * i128::from(period_us);
        Self { size, refill, period_us, level, at_us: i64::MIN }
    }

    fn advance(&mut self, now_us: i64) {
        let elapsed = i128::from(now_us.max(self.at_us)) - i128::from(self.at_us);
        self.at_us = self.at_us.max(now_us);
        let refilled = self.level.saturating_add(elapsed.saturating_mul(self.refill.into()));
        self.level = refilled.min(i128::from(self.size) * i128::from(self.period_us));
    }

    fn tokens(&self) -> i64 {
        i64::try_from(self.level.div_euclid(self.period_us.into())).unwrap_or(i64::MIN)
    }

    /// Takes tokens, or gives them back if there are fewer than none; at most the size.
    fn charge(&mut self, tokens: i64) {
        let full = i128::from(self.size) * i128::from(self.period_us);
        self.level = (self.level - i128::from(tokens) * i128::from(self.period_us)).min(full);
    }
}

impl DictSimulator {
    /// Assigns a category to a participant; others have H. Balances are kept, at most up to the
    /// size of the new category.
    pub fn set_category(&mut self, now_us: i64, participant: &str, category: char) {
        // Refills until now are those of the old category.
        let old = [LOOKUPS, STATISTICS].map(|policy| *self.bucket(now_us, policy, participant));
        self.categories.insert(participant.to_owned(), category);
        for (policy, old) in [LOOKUPS, STATISTICS].into_iter().zip(old) {
            self.buckets.remove(&(policy.to_owned(), participant.to_owned()));
            let new = self.bucket(now_us, policy, participant);
            new.level = old.level.min(new.level);
        }
    }

    /// Fills all buckets of a participant.
    pub fn fill(&mut self, participant: &str) {
        self.buckets.retain(|(_, owner), _| owner != participant);
    }

    /// Leaves a bucket no more than these tokens.
    pub fn drain(&mut self, now_us: i64, policy: &str, participant: &str, tokens: i64) {
        let bucket = self.bucket(now_us, policy, participant);
        bucket.charge((bucket.tokens() - tokens).max(0));
    }

    /// The number of requests, refused ones included.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// How often it answered 429.
    pub fn refusals(&self) -> u64 {
        self.refusals
    }

    /// Looks a key up: `status`, or 429. Only 200 and 404 have a price.
    pub fn get_entry(&mut self, now_us: i64, lookup: &Lookup, status: u16) -> u16 {
        self.requests += 1;
        let user = self.user_bucket(now_us, lookup).tokens();
        let participant = self.bucket(now_us, LOOKUPS, &lookup.participant).tokens();
        if user < 1 || participant < 1 {
            self.refusals += 1;
            return 429;
        }
        let (user, participant) = match status {
            200 => (1, 1),
            404 => (20, 3),
            _ => (0, 0),
        };
        self.user_bucket(now_us, lookup).charge(user);
        self.bucket(now_us, LOOKUPS, &lookup.participant).charge(participant);
        if status == 200 {
            self.unpaid.insert(lookup.reference.clone(), lookup.clone());
        }
        status
    }

    /// The payment order of a lookup, which is credited once; whether it was.
    pub fn pay(&mut self, now_us: i64, reference: &str) -> bool {
        let Some(lookup) = self.unpaid.remove(reference) else { return false };
        let credit = if lookup.payer.len() == 14 { 2 } else { 1 };
        self.user_bucket(now_us, &lookup).charge(-credit);
        self.bucket(now_us, LOOKUPS, &lookup.participant).charge(-1);
        true
    }

    /// Any other operation: `status`, which costs one token unless it is 500, or 429.
    pub fn operate(&mut self, now_us: i64, policy: &str, participant: &str, status: u16) -> u16 {
        self.requests += 1;
        let bucket = self.bucket(now_us, policy, participant);
        if bucket.tokens() < 1 {
            self.refusals += 1;
            return 429;
        }
        bucket.charge(i64::from(status != 500));
        status
    }

    /// `listBucketStates`: the states of the participant's buckets, or nothing if it is refused.
    pub fn states(&mut self, now_us: i64, participant: &str, time: &str) -> Option<String> {
        if self.operate(now_us, LIST, participant, 200) == 429 {
            return None;
        }
        let others = PARTICIPANT_POLICIES.iter().map(|(name, ..)| *name);
        let names: Vec<&str> = [LOOKUPS, STATISTICS].into_iter().chain(others).collect();
        let mut policies = String::new();
        for name in names {
            let bucket = *self.bucket(now_us, name, participant);
            policies.push_str(&format!(
                "<Policy><AvailableTokens>{}</AvailableTokens><Capacity>{}</Capacity>\
                 <RefillTokens>{}</RefillTokens><RefillPeriodSec>{}</RefillPeriodSec>\
                 <Name>{name}</Name></Policy>",
                bucket.tokens(),
                bucket.size,
                bucket.refill,
                bucket.period_us / 1_000_000
            ));
        }
        let category = self.category(participant);
        Some(format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ListPoliciesResponse><Signature/>\
             <CorrelationId>0</CorrelationId><ResponseTime>{time}</ResponseTime>\
             <Category>{category}</Category><Policies>{policies}</Policies></ListPoliciesResponse>"
        ))
    }

    /// The tokens of each bucket of a participant, as `states` shows them, without a charge.
    pub fn tokens(&mut self, now_us: i64, policy: &str, participant: &str) -> i64 {
        self.bucket(now_us, policy, participant).tokens()
    }

    fn category(&self, participant: &str) -> char {
        self.categories.get(participant).copied().unwrap_or('H')
    }

    fn user_bucket(&mut self, now_us: i64, lookup: &Lookup) -> &mut SimulatedBucket {
        let policy = match lookup.is_contact {
            true => "ENTRIES_READ_USER_ANTISCAN",
            false => "ENTRIES_READ_USER_ANTISCAN_V2",
        };
        let (size, refill) = if lookup.payer.len() == 14 { (1_000, 20) } else { (100, 2) };
        let owner = format!("{}/{}", lookup.participant, lookup.payer);
        let full = SimulatedBucket::full(size, refill, MINUTE_US);
        let bucket = self.buckets.entry((policy.to_owned(), owner)).or_insert(full);
        bucket.advance(now_us);
        bucket
    }

    fn bucket(&mut self, now_us: i64, policy: &str, participant: &str) -> &mut SimulatedBucket {
        let category = self.category(participant);
        let own = PARTICIPANT_POLICIES.iter().find(|(name, ..)| *name == policy);
        let by_category = CATEGORIES.iter().find(|(name, ..)| *name == category);
        let (size, refill) = match (own, by_category) {
            (Some((_, size, refill)), _) | (None, Some((_, size, refill))) => (*size, *refill),
            (None, None) => (50, 2),
        };
        let period_us = if policy == "CIDS_FILES_WRITE" { DAY_US } else { MINUTE_US };
        let full = SimulatedBucket::full(size, refill, period_us);
        let key = (policy.to_owned(), participant.to_owned());
        let bucket = self.buckets.entry(key).or_insert(full);
        bucket.advance(now_us);
        bucket
    }
}

/// The body of an error, as `application/problem+xml`; nothing for a success.
pub fn problem(status: u16) -> Option<String> {
    let (name, title) = match status {
        400 => ("EntryCannotBeQueriedForBookTransfer", "Entry cannot be queried"),
        403 => ("Forbidden", "Forbidden"),
        404 => ("NotFound", "Not found"),
        410 => ("DeprecatedResource", "Gone"),
        429 => ("RateLimited", "Rate limited"),
        500 => ("InternalServerError", "Internal server error"),
        503 => ("ServiceUnavailable", "Service unavailable"),
        _ => return None,
    };
    Some(format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><problem xmlns=\"urn:ietf:rfc:7807\">\
         <type>https://dict.pi.rsfn.net.br/api/v2/error/{name}</type><title>{title}</title>\
         <status>{status}</status></problem>"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(payer: &str, reference: &str) -> Lookup {
        let reference = reference.to_owned();
        let participant = "12345678".to_owned();
        Lookup { participant, payer: payer.to_owned(), is_contact: true, reference }
    }

    #[test]
    fn five_tokens_and_a_404_leave_a_debt_of_fifteen_for_eight_minutes() {
        let mut dict = DictSimulator::default();
        dict.set_category(0, "12345678", 'A');
        dict.fill("12345678");
        for number in 0..95 {
            assert_eq!(dict.get_entry(0, &lookup("11144477735", &number.to_string()), 200), 200);
        }
        let own = lookup("11144477735", "E");
        assert_eq!(dict.get_entry(0, &own, 404), 404);
        assert_eq!(dict.user_bucket(0, &own).tokens(), -15);
        let eight_minutes = 8 * MINUTE_US;
        assert_eq!(dict.get_entry(eight_minutes - 1, &own, 200), 429);
        assert_eq!(dict.get_entry(eight_minutes, &own, 200), 200);
        assert_eq!((dict.requests(), dict.refusals()), (98, 1));
    }

    #[test]
    fn a_payment_is_credited_once_and_never_above_the_size() {
        let mut dict = DictSimulator::default();
        let own = lookup("11222333000181", "E1");
        assert_eq!(dict.get_entry(0, &own, 200), 200);
        assert_eq!([dict.pay(0, "E1"), dict.pay(0, "E1"), dict.pay(0, "E2")], [true, false, false]);
        assert_eq!(dict.user_bucket(0, &own).tokens(), 1_000);
        assert_eq!(dict.tokens(0, LOOKUPS, "12345678"), 50);
    }

    #[test]
    fn a_lower_category_clamps_and_a_higher_one_gives_nothing() {
        let mut dict = DictSimulator::default();
        dict.set_category(0, "12345678", 'F');
        assert_eq!(dict.tokens(0, LOOKUPS, "12345678"), 50, "what H had");
        assert_eq!(dict.tokens(MINUTE_US, LOOKUPS, "12345678"), 300);
        dict.set_category(MINUTE_US, "12345678", 'G');
        assert_eq!(dict.tokens(MINUTE_US, LOOKUPS, "12345678"), 250);
        dict.drain(MINUTE_US, LOOKUPS, "12345678", 7);
        assert_eq!(dict.tokens(MINUTE_US, LOOKUPS, "12345678"), 7);
        assert_eq!(dict.tokens(2 * MINUTE_US, LOOKUPS, "12345678"), 32);
    }

    #[test]
    fn errors_are_problems_in_the_xml_of_the_api() {
        for (status, words) in [
            (400, ["/EntryCannotBeQueriedForBookTransfer<", "<status>400<"]),
            (410, ["/DeprecatedResource<", "<status>410<"]),
            (429, ["/RateLimited</type><title>Rate limited</title>", "<status>429<"]),
            (500, ["/InternalServerError<", "<status>500<"]),
        ] {
            let xml = problem(status).unwrap_or_default();
            let is_whole = xml.starts_with("<?xml") && xml.ends_with("</problem>");
            assert!(is_whole && words.iter().all(|words| xml.contains(words)), "{xml}");
        }
        assert_eq!(problem(200), None);
    }

    #[test]
    fn the_list_of_states_is_limited_too() {
        let mut dict = DictSimulator::default();
        let listed = (0..21).filter(|_| dict.states(0, "12345678", "now").is_some()).count();
        assert_eq!((listed, dict.refusals()), (20, 1));
        let states = dict.states(10_000_000, "12345678", "now").unwrap_or_default();
        assert_eq!(states.matches("<Policy>").count(), 29);
        assert!(states.contains("<RefillPeriodSec>86400</RefillPeriodSec>"), "{states}");
    }
}
