//! Turns the kernel's auxiliary vector into whether this program runs with more rights than its caller.
//!
//! A set-uid or set-gid program, and one with file capabilities, must not let its caller's environment choose the
//! libraries that it loads. The kernel marks such a program with `AT_SECURE` (getauxval(3), ld.so(8)).

use std::fs;

/// The entry that says so (`linux/auxvec.h`).
const AT_SECURE: usize = 23;
const WORD: usize = size_of::<usize>();

/// Whose word the environment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnvironmentTrust {
    /// The caller has the same rights as the program.
    Trusted,
    /// The program has more rights, or it can't be told: the environment is to be ignored.
    Untrusted,
}

impl EnvironmentTrust {
    /// Asks the kernel about this process. Without `/proc`, or where it may not be read, the answer is
    /// [`Untrusted`](Self::Untrusted): the kernel closes the file to programs that gained rights.
    #[must_use]
    pub fn of_this_process() -> Self {
        fs::read("/proc/self/auxv").map_or(Self::Untrusted, |vector| Self::from_auxiliary_vector(&vector))
    }

    fn from_auxiliary_vector(vector: &[u8]) -> Self {
        match entry(vector, AT_SECURE) {
            Some(0) => Self::Trusted,
            _ => Self::Untrusted,
        }
    }
}

/// The value of the first entry with this key: the vector is pairs of native words.
fn entry(vector: &[u8], wanted: usize) -> Option<usize> {
    let (words, _) = vector.as_chunks::<WORD>();
    let (pairs, _) = words.as_chunks::<2>();
    let pair = pairs.iter().find(|[key, _]| usize::from_ne_bytes(*key) == wanted)?;
    Some(usize::from_ne_bytes(pair[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(entries: &[(usize, usize)]) -> Vec<u8> {
        entries.iter().flat_map(|(key, value)| [key.to_ne_bytes(), value.to_ne_bytes()].concat()).collect()
    }

    #[test]
    fn the_environment_is_trusted_when_the_kernel_says_that_no_rights_were_gained() {
        let plain = vector(&[(6, 4096), (AT_SECURE, 0), (0, 0)]);
        assert_eq!(EnvironmentTrust::from_auxiliary_vector(&plain), EnvironmentTrust::Trusted);
    }

    #[test]
    fn the_environment_is_not_trusted_when_rights_were_gained() {
        let gained = vector(&[(6, 4096), (AT_SECURE, 1), (0, 0)]);
        assert_eq!(EnvironmentTrust::from_auxiliary_vector(&gained), EnvironmentTrust::Untrusted);
    }

    #[test]
    fn the_environment_is_not_trusted_when_it_can_not_be_told() {
        let silent = vector(&[(6, 4096), (0, 0)]);
        let cut_off = vector(&[(AT_SECURE, 0)]);
        for unclear in [&silent[..], &[], &cut_off[..cut_off.len().checked_sub(1).unwrap()]] {
            assert_eq!(EnvironmentTrust::from_auxiliary_vector(unclear), EnvironmentTrust::Untrusted);
        }
    }

    #[test]
    fn the_answer_for_one_process_does_not_change() {
        assert_eq!(EnvironmentTrust::of_this_process(), EnvironmentTrust::of_this_process());
    }

    #[test]
    fn a_value_is_not_taken_for_a_key() {
        let vector = vector(&[(6, AT_SECURE), (0, 0)]);
        assert_eq!(entry(&vector, AT_SECURE), None);
    }
}
