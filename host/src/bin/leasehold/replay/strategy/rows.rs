//! What a token's row holds: a byte that depends on the token and the plane, so that a row that was lost, moved or mixed
//! up with another plane's is noticed when the cache is closed.

use super::super::store::StoreError;
use std::ops::Range;

/// Whether rows are written and checked, or memory is only committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    Rows,
    Nothing,
}

/// Writes the rows of some tokens of one plane.
pub(crate) fn write(bytes: &mut [u8], row_bytes: u64, plane: usize, tokens: Range<u64>) -> Result<(), StoreError> {
    for token in tokens {
        let row = row_range(row_bytes, token).and_then(|range| bytes.get_mut(range));
        row.ok_or_else(|| missing(plane, token))?.fill(content(plane, token));
    }
    Ok(())
}

/// Checks the ends of the rows of the first `tokens` tokens of one plane.
pub(crate) fn check(bytes: &[u8], row_bytes: u64, plane: usize, tokens: u64) -> Result<(), StoreError> {
    for token in 0..tokens {
        let row = row_range(row_bytes, token).and_then(|range| bytes.get(range));
        let row = row.ok_or_else(|| missing(plane, token))?;
        let wanted = Some(&content(plane, token));
        if row.first() != wanted || row.last() != wanted {
            return Err(StoreError::Broken(format!("token {token} of plane {plane} does not hold what was written")));
        }
    }
    Ok(())
}

fn row_range(row_bytes: u64, token: u64) -> Option<Range<usize>> {
    let start = row_bytes.checked_mul(token)?;
    let end = start.checked_add(row_bytes)?;
    Some(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
}

fn content(plane: usize, token: u64) -> u8 {
    let plane = u64::try_from(plane).unwrap_or(u64::MAX);
    let [low, ..] = token.wrapping_mul(31).wrapping_add(plane).wrapping_add(1).to_le_bytes();
    low
}

fn missing(plane: usize, token: u64) -> StoreError {
    StoreError::Broken(format!("plane {plane} has no room for token {token}, which was grown"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_changed_is_noticed() {
        let mut bytes = vec![0; 64];
        write(&mut bytes, 16, 3, 0..4).expect("fits");
        assert_eq!(check(&bytes, 16, 3, 4), Ok(()));
        assert!(check(&bytes, 16, 4, 4).is_err(), "another plane's rows");
        bytes[31] ^= 1;
        assert!(check(&bytes, 16, 3, 4).is_err());
        assert!(check(&bytes[..60], 16, 3, 4).is_err(), "a row that is not there");
    }
}
