//! What this process shows of a failure's cause: that it was forked, that it has no file descriptor left.

use std::fs::File;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// The process that initialised the driver; 0 before. A forked child inherits the number.
static INITIALISED_BY: AtomicU32 = AtomicU32::new(0);

/// As many descriptors as one call of the driver may take at once: an assumption, since no documentation says.
const PER_CALL: usize = 2;

/// `ENFILE` and `EMFILE` of Linux: the system's limit is reached, and the process's.
const LIMITS: [i32; 2] = [23, 24];

/// Notes that the driver was initialised in this process.
pub(crate) fn note_initialised() {
    INITIALISED_BY.store(process::id(), Ordering::Relaxed);
}

/// Whether another process initialised the driver, and this one was forked from it.
pub(crate) fn is_forked() -> bool {
    let initialised_by = INITIALISED_BY.load(Ordering::Relaxed);
    initialised_by != 0 && initialised_by != process::id()
}

/// Whether no more descriptors can be had. It opens some and closes them, so ask after a failure only.
pub(crate) fn is_out_of_descriptors() -> bool {
    let opened: Vec<_> = (0..PER_CALL).map(|_| File::open("/dev/null")).collect();
    let refusals = opened.iter().filter_map(|file| file.as_ref().err()?.raw_os_error());
    refusals.into_iter().any(|code| LIMITS.contains(&code))
}
