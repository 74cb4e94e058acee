//! Runs an operation many times, and counts what needs no valgrind.

use crate::child::Counted;
use leasehold::BufferSet;
use leasehold_tests::baseline::Figures;
use leasehold_tests::cuda::Simulator;
use leasehold_tests::observe;
use std::hint::black_box;

/// Turns before those that count: by then libraries are bound and tables have their size.
pub(crate) const WARM_UP: u64 = 16;

/// What is counted of one operation.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    operations: u32,
    figures: Figures,
}

impl Meter {
    /// Runs an operation [`WARM_UP`] times, then so many times that count. The operation is given its number, from 0 on.
    pub(crate) fn count(&mut self, operations: u32, mut operation: impl FnMut(u64)) {
        (0..WARM_UP).for_each(&mut operation);
        self.count_warm(operations, operation);
    }

    /// The same, and counts the calls of the simulated driver. Each operation makes as many as any other.
    pub(crate) fn count_driver_calls(
        &mut self,
        simulator: &Simulator,
        operations: u32,
        mut operation: impl FnMut(u64),
    ) {
        (0..WARM_UP).for_each(&mut operation);
        let before = simulator.books().calls;
        self.count_warm(operations, operation);
        let since = |(function, count): (String, u64)| {
            let made = count - before.get(&function).copied().unwrap_or(0);
            assert_eq!(made % u64::from(operations), 0, "{function} is not called alike by each operation");
            (made > 0).then_some((function, made / u64::from(operations)))
        };
        self.figures.driver_calls = simulator.books().calls.into_iter().filter_map(since).collect();
    }

    fn count_warm(&mut self, operations: u32, mut operation: impl FnMut(u64)) {
        counted_by_callgrind(&mut || (WARM_UP..WARM_UP + u64::from(operations)).for_each(&mut operation));
        self.operations = operations;
    }

    /// Counts the kernel's mappings in all planes of some sets. A mapping that reaches into two planes counts for each.
    pub(crate) fn count_mappings(&mut self, sets: &[&BufferSet]) {
        let planes = sets
            .iter()
            .flat_map(|set| (0..set.planes()).map_while(|plane| set.base(plane)).map(|base| (base, set.capacity())));
        let mappings: usize = planes.map(|(base, bytes)| observe::mappings_in(base, bytes).len()).sum();
        self.figures.mappings = u64::try_from(mappings).ok();
    }

    /// What was counted.
    pub(crate) fn counted(self) -> Counted {
        Counted { operations: self.operations, figures: self.figures }
    }
}

/// Callgrind counts from its begin to its end.
#[inline(never)]
fn counted_by_callgrind(turns: &mut dyn FnMut()) {
    turns();
    // Keeps the call above from becoming a jump, after which this function would be over.
    black_box(());
}
