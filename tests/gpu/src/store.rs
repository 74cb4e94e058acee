//! The child's part of the rows on sealed memory: stores one byte where nothing may be written, and says what came of that.
//!
//! It prints one line and ends the process, as the program does: with 0 where all is right, with 1 where something is wrong,
//! with 2 where it could not be tried. What was refused may have taken the context with it, so nothing is given back.
#![expect(unsafe_code, reason = "stores into device memory past its owner")]

use crate::hosts::Settings;
use crate::sys::{Flavour, Kernels, Opaque, Streams};
use crate::table::Trouble;
use clap::ValueEnum;
use leasehold::{BufferSpec, PrefixSpec};
use std::convert::Infallible;
use std::fmt::{self, Display};
use std::io::Write;
use std::process;

/// What is sealed.
const SEALED: u8 = 0x21;
/// What is stored before, to see that it can be.
const BEFORE: u8 = 0x42;
/// What is stored then.
const AFTER: u8 = 0x63;

/// By what, and into what: a buffer that it is mapped into, or the window that it was written through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Store {
    FillOfMapping,
    FillOfWindow,
    KernelIntoMapping,
    KernelIntoWindow,
}

impl Store {
    fn is_by_kernel(self) -> bool {
        matches!(self, Self::KernelIntoMapping | Self::KernelIntoWindow)
    }

    fn is_into_mapping(self) -> bool {
        matches!(self, Self::FillOfMapping | Self::KernelIntoMapping)
    }

    /// As it is written among the arguments.
    pub(crate) fn word(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

impl Display for Store {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = if self.is_by_kernel() { "a kernel's store" } else { "a fill" };
        let into = if self.is_into_mapping() { "a mapping" } else { "the window of its writer" };
        write!(formatter, "{by} into a sealed prefix, through {into}")
    }
}

/// What stores a byte, waited for.
struct Writer {
    streams: Streams,
    /// Invariant 1: live for as long as this value.
    stream: Opaque,
    /// Invariant 2: of [`Kernels::load_store`], in the context of the stream.
    kernel: Option<(Kernels, Opaque)>,
}

impl Writer {
    /// In the current context.
    fn new(settings: &Settings, store: Store) -> Result<Self, Trouble> {
        let driver = settings.driver.as_deref();
        let streams = Streams::find(driver)?;
        let stream = streams.create(Flavour::NonBlocking)?;
        let mut kernel = None;
        if store.is_by_kernel() {
            let kernels = Kernels::find(driver)?;
            let loaded = kernels.load_store().map_err(|why| Trouble::Lacking(format!("no kernel: {why}")))?;
            kernel = Some((kernels, loaded));
        }
        Ok(Self { streams, stream, kernel })
    }

    /// # Safety
    ///
    /// The address is of device memory that is the caller's, whether it may be written or not.
    unsafe fn store(&self, address: u64, byte: u8) -> Result<(), Trouble> {
        match &self.kernel {
            // SAFETY: kernel and stream are live and of one context (1, 2); the caller promises the address.
            Some((kernels, kernel)) => unsafe { kernels.store(*kernel, address, byte, self.stream) }?,
            // SAFETY: the stream is live (1); the caller promises the address.
            None => unsafe { self.streams.fill(address, byte, 1, self.stream) }?,
        }
        // SAFETY: the stream is live (1).
        unsafe { self.streams.wait(self.stream) }
    }
}

/// Tries it, tells, and ends the process.
pub(crate) fn run(settings: &Settings, store: Store) -> ! {
    match attempt(settings, store) {
        Ok(never) => match never {},
        Err(trouble) => tell(Err(trouble)),
    }
}

fn attempt(settings: &Settings, store: Store) -> Result<Infallible, Trouble> {
    let _bound = settings.device.bind()?;
    let granule = settings.sizes.granule;
    let (host, backing) = settings.host("cuda-pool")?;
    let mut prefix = host.prefix(&backing, &PrefixSpec::new(granule))?;
    let writer = Writer::new(settings, store)?;
    let nowhere = || Trouble::wrong("it has no plane");
    let window = prefix.base(0).ok_or_else(nowhere)?.get();
    prefix.write(0, 0, &[SEALED])?;
    // SAFETY: the window is the prefix's, which is ours.
    unsafe { writer.store(window, BEFORE) }?;
    let mut seen = [SEALED];
    prefix.read(0, 0, &mut seen)?;
    if seen != [BEFORE] {
        return Err(Trouble::wrong("what may be written was not either: nothing is shown by this"));
    }
    prefix.write(0, 0, &[SEALED])?;
    let prefix = prefix.seal().map_err(leasehold::Error::from)?;
    let mut buffer = host.buffer_set(&backing, 1, &BufferSpec::new(granule))?;
    buffer.map_prefix(&prefix)?;
    let mapping = buffer.base(0).ok_or_else(nowhere)?.get();
    // SAFETY: both are ours, and hold the prefix.
    let stored = unsafe { writer.store(if store.is_into_mapping() { mapping } else { window }, AFTER) };
    let read = buffer.read(0, 0, &mut seen).map(|()| seen == [SEALED]);
    // Here, since nothing may be given back: that waits, or fails, where the context is lost.
    tell(judge(stored, read.map_err(Trouble::from)))
}

/// What came of the store, by its own answer and by whether the bytes are as they were sealed.
fn judge(stored: Result<(), Trouble>, is_kept: Result<bool, Trouble>) -> Result<String, Trouble> {
    match (stored, is_kept) {
        (Ok(()), Ok(false)) => Err(Trouble::wrong("it was let through, and the sealed byte is another")),
        (Err(why), Ok(false)) => {
            Err(Trouble::wrong(format!("the sealed byte is another, though there was an error: {why}")))
        }
        (Ok(()), Ok(true)) => Ok("no error, but the byte is as it was sealed".to_owned()),
        (Err(why), Ok(true)) => Ok(format!("refused, and the byte is as it was sealed: {why}")),
        (Err(why), Err(_)) => Ok(format!("stopped, and the context is lost with it: {why}")),
        (Ok(()), Err(why)) => Err(Trouble::wrong(format!("no error, but then the byte can't be read: {why}"))),
    }
}

/// Prints what came of it for the parent, and ends the process.
pub(crate) fn tell(outcome: Result<String, Trouble>) -> ! {
    let (code, said) = match outcome {
        Ok(figure) => (0, figure),
        Err(Trouble::Wrong(why)) => (1, why),
        Err(Trouble::Lacking(why)) => (2, why),
    };
    // Where nobody listens there is nobody to tell that.
    let _ = writeln!(std::io::stdout(), "{said}");
    process::exit(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault() -> Trouble {
        Trouble::wrong("cuLaunchKernel failed: 700")
    }

    #[test]
    fn a_changed_byte_is_wrong_whatever_the_driver_answers() {
        assert!(matches!(judge(Ok(()), Ok(false)), Err(Trouble::Wrong(_))));
        let Err(Trouble::Wrong(why)) = judge(Err(fault()), Ok(false)) else { panic!("it changed") };
        assert!(why.ends_with("there was an error: cuLaunchKernel failed: 700"), "{why}");
    }

    #[test]
    fn an_error_is_right_also_where_it_ends_the_context() {
        let refused = judge(Err(fault()), Ok(true)).unwrap();
        assert!(refused.starts_with("refused, and the byte is as it was sealed"), "{refused}");
        let stopped = judge(Err(fault()), Err(fault())).unwrap();
        assert!(stopped.starts_with("stopped, and the context is lost with it"), "{stopped}");
    }

    #[test]
    fn without_an_error_the_byte_decides() {
        assert!(judge(Ok(()), Ok(true)).is_ok());
        assert!(matches!(judge(Ok(()), Err(fault())), Err(Trouble::Wrong(_))));
    }
}
