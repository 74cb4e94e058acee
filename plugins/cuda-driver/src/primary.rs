//! One device as the driver counts it, and its primary context: retained once for this library in the process, when something
//! first needs it, and released with the last user.

use crate::context::{Bound, Context};
use crate::error::Fault;
use crate::sys::Calls;
use std::ffi::c_int;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// The devices in use: one for each ordinal, and beside it those whose context has ended under their users. The lock is held
/// while one is looked up, and waits for nothing but the driver.
static IN_USE: Mutex<Vec<Weak<Primary>>> = Mutex::new(Vec::new());

/// One device, and its primary context once something needs it.
#[derive(Debug)]
pub(crate) struct Primary {
    pub(crate) ordinal: u32,
    /// The `CUdevice`.
    pub(crate) device: c_int,
    calls: &'static Calls,
    context: OnceLock<Context>,
    /// Held while the context is retained, which may take seconds: so it isn't retained twice.
    retaining: Mutex<()>,
}

impl Primary {
    /// The device of an ordinal: the one that is in use already, unless its context has ended.
    pub(crate) fn find(calls: &'static Calls, ordinal: u32) -> Result<Arc<Self>, Fault> {
        let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        in_use.retain(|primary| primary.strong_count() > 0);
        let is_it = |primary: &Arc<Self>| primary.ordinal == ordinal && !primary.made().is_some_and(Context::ends);
        if let Some(primary) = in_use.iter().filter_map(Weak::upgrade).find(is_it) {
            return Ok(primary);
        }
        let device = calls.device(ordinal)?;
        let (context, retaining) = (OnceLock::new(), Mutex::new(()));
        let primary = Arc::new(Self { ordinal, device, calls, context, retaining });
        in_use.push(Arc::downgrade(&primary));
        Ok(primary)
    }

    /// Its context, where something needed it before.
    #[inline]
    pub(crate) fn made(&self) -> Option<&Context> {
        self.context.get()
    }

    /// Its context, retained now where nothing needed it before.
    #[inline]
    pub(crate) fn context(&self) -> Result<&Context, Fault> {
        self.made().map_or_else(|| self.make(), Ok)
    }

    #[cold]
    fn make(&self) -> Result<&Context, Fault> {
        let _retaining = self.retaining.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(context) = self.made() {
            return Ok(context);
        }
        let context = Context::retain(self.calls, self.device)?;
        Ok(self.context.get_or_init(|| context))
    }

    /// Makes its context current on this thread, as [`Context::bind`].
    #[inline]
    pub(crate) fn bind(&self) -> Result<Bound<'_>, Fault> {
        match self.made() {
            Some(context) => context.bind(),
            None => self.make()?.bind(),
        }
    }
}
