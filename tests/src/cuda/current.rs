//! A device that other code on a thread works on, until it is dropped.

use super::Simulator;
use std::marker::PhantomData;

/// The context of a device, retained and current on this thread: from [`Simulator::enter`]. When it is dropped no context is
/// current there, and this one is released.
#[derive(Debug)]
#[must_use = "the context is left at once"]
pub struct CurrentContext<'s> {
    simulator: &'s Simulator,
    device: u32,
    number: usize,
    /// A context is current on one thread only, and is taken away on that thread.
    _stays: PhantomData<*const ()>,
}

impl<'s> CurrentContext<'s> {
    /// Of a context that was retained and made current.
    pub(super) fn new(simulator: &'s Simulator, device: u32, number: usize) -> Self {
        Self { simulator, device, number, _stays: PhantomData }
    }

    /// Which one it is, as [`Simulator::current_context`] tells it.
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }
}

impl Drop for CurrentContext<'_> {
    /// Panics where the driver refuses, unless the test fails already.
    fn drop(&mut self) {
        let codes = [self.simulator.make_current(0), self.simulator.release_context(self.device)];
        assert!(codes == [0; 2] || std::thread::panicking(), "device {} can't be left: {codes:?}", self.device);
    }
}
