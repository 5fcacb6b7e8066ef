//! The number of rows that a caller asks for. A number out of range is refused: a page of another
//! size than asked for looks like the end of the list.

use super::AppError;
use crate::records::PAGE_MAX;

/// The number of rows of a page, from 1 to [`PAGE_MAX`].
pub fn check_page_size(limit: u32) -> Result<u32, AppError> {
    match limit {
        1..=PAGE_MAX => Ok(limit),
        _ => {
            let detail = format!("`limit` is {limit}: send a number from 1 to {PAGE_MAX}");
            Err(AppError::invalid("bad-query", detail))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_out_of_range_is_refused_with_the_range() {
        assert_eq!(check_page_size(1).unwrap(), 1);
        assert_eq!(check_page_size(1_000).unwrap(), 1_000);
        for limit in [0, 1_001, u32::MAX] {
            let refused = check_page_size(limit).unwrap_err().to_string();
            assert!(refused.contains("from 1 to 1000"), "{refused}");
        }
    }
}
