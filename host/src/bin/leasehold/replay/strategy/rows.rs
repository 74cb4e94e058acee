//! What a token's row holds: a byte that depends on the token, its block's id and the plane, so that a row that was lost, moved
//! or mixed up with another plane's or prompt's is noticed when the cache is closed.

use super::super::layout::BLOCK_TOKENS;
use super::super::store::StoreError;
use std::ops::Range;

/// Which rows some bytes are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows<'ids> {
    pub(crate) row_bytes: u64,
    pub(crate) plane: usize,
    /// The token whose row comes first.
    pub(crate) first: u64,
    /// The ids of the prompt's blocks: rows of another prompt are told apart by them, where it has any.
    pub(crate) ids: &'ids [u64],
}

impl Rows<'_> {
    fn range(&self, token: u64) -> Option<Range<usize>> {
        row_range(self.row_bytes, token.checked_sub(self.first)?)
    }

    /// Where a token's row begins, in bytes.
    pub(crate) fn offset(&self, token: u64) -> Result<u64, StoreError> {
        let range = self.range(token).ok_or_else(|| missing(self.plane, token))?;
        u64::try_from(range.start).map_err(|_| missing(self.plane, token))
    }

    /// Zeros for the rows of some tokens.
    pub(crate) fn room_for(&self, tokens: &Range<u64>) -> Result<Vec<u8>, StoreError> {
        let count = tokens.end.saturating_sub(tokens.start);
        let bytes = self.row_bytes.checked_mul(count).and_then(|bytes| usize::try_from(bytes).ok());
        bytes.map(|bytes| vec![0; bytes]).ok_or_else(|| missing(self.plane, tokens.end))
    }

    fn content(&self, token: u64) -> u8 {
        let block = usize::try_from(token / BLOCK_TOKENS).unwrap_or(usize::MAX);
        let id = self.ids.get(block).copied().unwrap_or(0);
        let plane = u64::try_from(self.plane).unwrap_or(u64::MAX);
        let mixed = token.wrapping_mul(31).wrapping_add(id.wrapping_mul(101));
        let [low, ..] = mixed.wrapping_add(plane).wrapping_add(1).to_le_bytes();
        low
    }
}

/// Writes the rows of some tokens.
pub(crate) fn write(bytes: &mut [u8], rows: Rows<'_>, tokens: Range<u64>) -> Result<(), StoreError> {
    for token in tokens {
        let row = rows.range(token).and_then(|range| bytes.get_mut(range));
        row.ok_or_else(|| missing(rows.plane, token))?.fill(rows.content(token));
    }
    Ok(())
}

/// Checks the ends of the rows of all tokens before `tokens`.
pub(crate) fn check(bytes: &[u8], rows: Rows<'_>, tokens: u64) -> Result<(), StoreError> {
    for token in rows.first..tokens {
        let row = rows.range(token).and_then(|range| bytes.get(range));
        let row = row.ok_or_else(|| missing(rows.plane, token))?;
        let wanted = Some(rows.content(token));
        if row.first().copied() != wanted || row.last().copied() != wanted {
            let plane = rows.plane;
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

fn missing(plane: usize, token: u64) -> StoreError {
    StoreError::Broken(format!("plane {plane} has no room for token {token}, which was grown"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(plane: usize, ids: &[u64]) -> Rows<'_> {
        Rows { row_bytes: 16, plane, first: 0, ids }
    }

    #[test]
    fn a_row_that_changed_is_noticed() {
        let mut bytes = vec![0; 64];
        write(&mut bytes, rows(3, &[7]), 0..4).expect("fits");
        assert_eq!(check(&bytes, rows(3, &[7]), 4), Ok(()));
        assert!(check(&bytes, rows(4, &[7]), 4).is_err(), "another plane's rows");
        assert!(check(&bytes, rows(3, &[8]), 4).is_err(), "another prompt's rows");
        bytes[31] ^= 1;
        assert!(check(&bytes, rows(3, &[7]), 4).is_err());
        assert!(check(&bytes[..60], rows(3, &[7]), 4).is_err(), "a row that is not there");
    }

    #[test]
    fn rows_behind_a_prefix_are_those_of_the_whole() {
        let (mut whole, mut rest) = (vec![0; 64], vec![0; 32]);
        write(&mut whole, rows(1, &[]), 0..4).expect("fits");
        write(&mut rest, Rows { first: 2, ..rows(1, &[]) }, 2..4).expect("fits");
        assert_eq!(whole[32..], rest);
        assert!(write(&mut rest, Rows { first: 2, ..rows(1, &[]) }, 1..4).is_err(), "a row of the prefix");
    }
}
