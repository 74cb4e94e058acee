//! The CUDA backings over the simulated driver.
//!
//! The simulator is strict: what the driver's documentation leaves undefined is a violation in its books, fresh memory
//! is not zero, and nothing may be left in the end.

mod budgets;
mod contexts;
mod contract;
mod copies;
mod costs;
mod devices;
mod faults;
mod releases;
mod same;
mod setup;
mod short_of_memory;
mod streams;
