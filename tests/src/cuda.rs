//! The simulated CUDA driver in safe words: makes it the driver of this process, plans its failures, reads its books.
//!
//! Cargo builds it beside the program of the test, since this package depends on it. Its library is called `libcuda.so`
//! by its `SONAME`, so once it is opened by its path, whoever looks for the driver by that name finds it. It is opened
//! and never linked: a second copy in the program would have books of its own.
#![expect(unsafe_code, reason = "opens the simulated driver and calls the C functions that control it")]

mod books;
mod current;
mod turn;

pub use books::{AllocationBooks, Books, Counts, DeviceBooks, HandleBooks, MappingBooks, ReservationBooks};
pub use current::CurrentContext;

use crate::plugins::library;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW, Symbol};
use std::ffi::{CString, c_char};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use turn::Turn;

/// The simulated driver of this process, for one test at a time.
#[derive(Debug)]
pub struct Simulator {
    /// Invariant 1: the simulator's own library, which stays loaded for ever.
    library: ManuallyDrop<Library>,
    _turn: Turn,
}

/// Whether a planned failure goes away after it struck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasting {
    /// It strikes once.
    Once,
    /// It strikes that call and every later one.
    ForEver,
}

/// What a kernel does to a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// Reads it.
    Load,
    /// Writes it.
    Store,
}

impl Default for Simulator {
    fn default() -> Self {
        Self::start()
    }
}

impl Simulator {
    /// Where its library is: what `Driver::open` takes.
    #[must_use]
    pub fn path() -> PathBuf {
        library("leasehold_cuda_sim")
    }

    /// Opens a copy of it for ever, as a program does that is linked with the driver.
    ///
    /// # Panics
    ///
    /// Where it can't be opened.
    pub fn load(copy: &Path) {
        // SAFETY: as in `start`.
        let library = unsafe { Library::open(Some(copy), RTLD_NOW | RTLD_LOCAL) }.expect("the copy opens");
        let _ = ManuallyDrop::new(library);
    }

    /// Waits for its turn, makes the simulator the driver of this process, and starts it over: two devices of 256 MiB
    /// with a granule of 2 MiB, unless the environment says otherwise. It is for the process that it is called in.
    ///
    /// # Panics
    ///
    /// Where it isn't built, or where a test before left something live.
    #[must_use]
    pub fn start() -> Self {
        Self::start_from(&Self::path())
    }

    /// The same with a copy of the simulator, in a process in which it is the first.
    ///
    /// # Panics
    ///
    /// As [`Simulator::start`].
    #[must_use]
    pub fn start_from(path: &Path) -> Self {
        let turn = Turn::take();
        // SAFETY: the simulator's library runs no code when it is loaded.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.expect("the simulator opens");
        let simulator = Self { library: ManuallyDrop::new(library), _turn: turn };
        simulator.heal();
        simulator.reset();
        simulator
    }

    /// Starts over; see [`Simulator::start`].
    ///
    /// # Panics
    ///
    /// Where something is live.
    pub fn reset(&self) {
        // SAFETY: the simulator's own function, which takes nothing (1).
        let code = unsafe { self.function::<unsafe extern "C" fn() -> u32>("leasehold_sim_reset")() };
        assert_eq!(code, 0, "something is live: {:#?}", self.books());
    }

    /// Changes a setting, one of those that `leasehold_sim_set` lists; where each device has its own, that of device 0.
    ///
    /// # Panics
    ///
    /// Where there is no such setting or value.
    pub fn set(&self, name: &str, value: u64) {
        self.set_of_device(name, 0, value);
    }

    /// The bytes that a device has.
    ///
    /// # Panics
    ///
    /// Where there can be no such device.
    pub fn limit_memory(&self, device: u32, bytes: u64) {
        self.set_of_device("memory", device, bytes);
    }

    fn set_of_device(&self, name: &str, device: u32, value: u64) {
        let text = CString::new(name).expect("a name has no zero");
        let set = self.function::<unsafe extern "C" fn(*const c_char, i32, u64) -> u32>("leasehold_sim_set");
        // SAFETY: the simulator's own function, with a C string that lives (1).
        assert_eq!(unsafe { set(text.as_ptr(), ordinal(device), value) }, 0, "{name} = {value} of device {device}");
    }

    /// Takes away from `device` that it can reach the memory of `peer`.
    ///
    /// # Panics
    ///
    /// Where there can be no such device.
    pub fn separate(&self, device: u32, peer: u32) {
        let set = self.function::<unsafe extern "C" fn(i32, i32, u32) -> u32>("leasehold_sim_set_peer");
        // SAFETY: the simulator's own function, with numbers (1).
        assert_eq!(unsafe { set(ordinal(device), ordinal(peer), 0) }, 0);
    }

    /// Has the `nth` call from now of a function (its symbol, or a beginning and a star) fail with that code; 1 is the
    /// next.
    ///
    /// # Panics
    ///
    /// Where a symbol can't have that name.
    pub fn plan(&self, function: &str, nth: u64, lasting: Lasting, code: u32) {
        self.plan_by("leasehold_sim_plan", function, nth, lasting, code);
    }

    /// Has the `nth` call from now of `cuMemUnmap` or `cuMemSetAccess` fail half-way: it acts on the first half of the
    /// mappings in its range, and fails with that code.
    ///
    /// # Panics
    ///
    /// For any other function.
    pub fn plan_halfway(&self, function: &str, nth: u64, lasting: Lasting, code: u32) {
        self.plan_by("leasehold_sim_plan_halfway", function, nth, lasting, code);
    }

    fn plan_by(&self, control: &str, function: &str, nth: u64, lasting: Lasting, code: u32) {
        let text = CString::new(function).expect("a name has no zero");
        let plan = self.function::<unsafe extern "C" fn(*const c_char, u64, u32, u32) -> u32>(control);
        // SAFETY: the simulator's own function, with a C string that lives (1).
        assert_eq!(unsafe { plan(text.as_ptr(), nth, u32::from(lasting == Lasting::ForEver), code) }, 0, "{function}");
    }

    /// Forgets all plans.
    ///
    /// # Panics
    ///
    /// Where the simulator itself fails.
    pub fn heal(&self) {
        // SAFETY: the simulator's own function, which takes nothing (1).
        assert_eq!(unsafe { self.function::<unsafe extern "C" fn() -> u32>("leasehold_sim_heal")() }, 0);
    }

    /// Makes every later call in the device's context fail with that code.
    ///
    /// # Panics
    ///
    /// Where nobody retains that context.
    pub fn poison(&self, device: u32, code: u32) {
        let poison = self.function::<unsafe extern "C" fn(i32, u32) -> u32>("leasehold_sim_poison");
        // SAFETY: the simulator's own function, with numbers (1).
        assert_eq!(unsafe { poison(ordinal(device), code) }, 0, "no context of device {device} is retained");
    }

    /// Ends the device's context under its users, as some other library in the process might.
    ///
    /// # Panics
    ///
    /// Before `cuInit`, and where there is no such device.
    pub fn reset_context(&self, device: u32) {
        let reset = self.function::<unsafe extern "C" fn(i32) -> u32>("cuDevicePrimaryCtxReset_v2");
        // SAFETY: the simulator's own function, with a number (1).
        assert_eq!(unsafe { reset(ordinal(device)) }, 0);
    }

    /// Runs something while some other thread captures a graph, in the mode that minds what this one does.
    pub fn while_capturing<T>(&self, act: impl FnOnce() -> T) -> T {
        let capture = self.function::<unsafe extern "C" fn(u32) -> u32>("leasehold_sim_capture");
        // SAFETY: the simulator's own function, with a number (1).
        assert_eq!(unsafe { capture(1) }, 0);
        let answer = act();
        // SAFETY: as above.
        assert_eq!(unsafe { capture(0) }, 0);
        answer
    }

    /// What a kernel's load or store on that device does: the driver's code, 0 where it may. Where it may not, the
    /// context of the device is poisoned.
    ///
    /// # Panics
    ///
    /// Where there can be no such device.
    #[must_use]
    pub fn touch(&self, device: u32, address: u64, touch: Touch) -> u32 {
        let function = self.function::<unsafe extern "C" fn(i32, u64, u32) -> u32>("leasehold_sim_touch");
        // SAFETY: the simulator's own function, with numbers (1).
        unsafe { function(ordinal(device), address, u32::from(touch == Touch::Store)) }
    }

    /// The context that is current on this thread, as a number; 0 for none. It counts as a call.
    ///
    /// # Panics
    ///
    /// Before `cuInit`.
    #[must_use]
    pub fn current_context(&self) -> usize {
        let mut context = 0;
        let current = self.function::<unsafe extern "C" fn(*mut usize) -> u32>("cuCtxGetCurrent");
        // SAFETY: the simulator's own function, with an out-parameter that lives (1).
        assert_eq!(unsafe { current(&raw mut context) }, 0);
        context
    }

    /// Acts as other code on this thread that works on a device: retains its context and makes it current, until what this
    /// answers is dropped.
    ///
    /// # Panics
    ///
    /// Where the driver refuses.
    pub fn enter(&self, device: u32) -> CurrentContext<'_> {
        let mut context = 0;
        let retain = self.function::<unsafe extern "C" fn(*mut usize, i32) -> u32>("cuDevicePrimaryCtxRetain");
        // SAFETY: the simulator's own function, with an out-parameter that lives (1).
        assert_eq!(unsafe { retain(&raw mut context, ordinal(device)) }, 0);
        assert_eq!(self.make_current(context), 0);
        CurrentContext::new(self, device, context)
    }

    /// Makes a context current on this thread, or with 0 none, and answers the driver's code.
    fn make_current(&self, context: usize) -> u32 {
        let set = self.function::<unsafe extern "C" fn(usize) -> u32>("cuCtxSetCurrent");
        // SAFETY: the simulator's own function, with a context that it made, or none (1).
        unsafe { set(context) }
    }

    /// Releases the context of a device once, and answers the driver's code.
    fn release_context(&self, device: u32) -> u32 {
        let release = self.function::<unsafe extern "C" fn(i32) -> u32>("cuDevicePrimaryCtxRelease_v2");
        // SAFETY: the simulator's own function, with a number (1).
        unsafe { release(ordinal(device)) }
    }

    /// All books.
    ///
    /// # Panics
    ///
    /// Where the simulator writes what this package can't read.
    #[must_use]
    pub fn books(&self) -> Books {
        let read = self.function::<unsafe extern "C" fn(*mut u8, usize, *mut usize) -> u32>("leasehold_sim_books_json");
        let mut text = vec![0; 64 << 10];
        loop {
            let mut bytes = 0;
            // SAFETY: the simulator's own function, with a buffer and an out-parameter that live (1).
            let code = unsafe { read(text.as_mut_ptr(), text.len(), &raw mut bytes) };
            text.resize(bytes, 0);
            if code == 0 {
                return serde_json::from_slice(&text).expect("the books are JSON");
            }
        }
    }

    /// How much is live, of everything.
    ///
    /// # Panics
    ///
    /// Where the simulator itself fails.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        let read = self.function::<unsafe extern "C" fn(*mut Counts) -> u32>("leasehold_sim_books");
        // SAFETY: the simulator's own function, with an out-parameter of its layout that lives (1).
        assert_eq!(unsafe { read(&raw mut counts) }, 0);
        counts
    }

    /// How often a function was called since the last reset.
    ///
    /// # Panics
    ///
    /// As [`Simulator::books`].
    #[must_use]
    pub fn count(&self, function: &str) -> u64 {
        self.books().count(function)
    }

    /// Ends a test: nothing is live, and nobody broke a rule.
    ///
    /// # Panics
    ///
    /// Where that isn't so.
    pub fn finish(self) {
        self.heal();
        let books = self.books();
        assert_eq!(books.violations, [""; 0]);
        assert!(books.is_empty(), "something is live: {books:#?}");
    }

    fn function<T>(&self, name: &str) -> Symbol<T> {
        // SAFETY: every caller gives the parameters that the simulator declares for that name (1).
        unsafe { self.library.get(name.as_bytes()) }.expect("the simulator has it")
    }
}

/// A device's number as the driver's functions take it.
fn ordinal(device: u32) -> i32 {
    i32::try_from(device).expect("a device's number fits the driver's type")
}
