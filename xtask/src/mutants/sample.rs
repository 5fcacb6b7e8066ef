//! The random sample of mutants.

/// Chooses items at random: the same ones for the same list and seed.
pub(super) fn choose<T>(mut items: Vec<T>, count: usize, seed: u64) -> Vec<T> {
    let mut chosen = Vec::new();
    let mut state = seed;
    while chosen.len() < count && !items.is_empty() {
        let index = next(&mut state) % items.len() as u64;
        chosen.push(items.swap_remove(index as usize));
    }
    chosen
}

/// SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut word = *state;
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_depends_on_its_seed_alone() {
        let all: Vec<usize> = (0..100).collect();
        let sample = choose(all.clone(), 10, 1);
        assert_eq!(sample.len(), 10);
        assert_eq!(sample, choose(all.clone(), 10, 1));
        assert_ne!(sample, choose(all.clone(), 10, 2));
        assert_eq!(choose(all, 200, 1).len(), 100);
    }
}
