//! A value for each process among a process and those that it was forked from.

use super::ProcessMark;
use std::sync::OnceLock;

/// Processes with a value of their own: a process and its ancestors, those that made hosts.
const PROCESSES: usize = 16;

/// A per-process value. A forked child gets a fresh one: a lock that another thread of the
/// parent held during the fork is held for ever there, and what was mapped in the parent may not be in the child. The 17th
/// in a line of forks that all made hosts has the first one's.
#[derive(Debug)]
pub(crate) struct PerProcess<T>([OnceLock<T>; PROCESSES]);

impl<T: Default> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        Self([const { OnceLock::new() }; PROCESSES])
    }

    /// The value of this process.
    pub(crate) fn here(&self) -> &T {
        let Self([first, ..]) = self;
        let place = usize::try_from(ProcessMark::current().number()).unwrap_or(0).checked_rem(PROCESSES);
        place.and_then(|place| self.0.get(place)).unwrap_or(first).get_or_init(T::default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn a_process_has_one_value() {
        static COUNT: PerProcess<AtomicU64> = PerProcess::new();
        let counted = std::thread::spawn(|| COUNT.here().fetch_add(1, Ordering::Relaxed)).join().unwrap();
        assert_eq!((counted, COUNT.here().load(Ordering::Relaxed)), (0, 1));
    }
}
