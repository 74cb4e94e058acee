//! The host's log as a test reads it: every line that this thread writes, with its level and its backing's name.
//!
//! There is one reader for the whole program, which sorts by thread: a reader for each thread would miss lines, because
//! once nobody on one thread wants a line, `tracing` remembers that for all threads.

use std::cell::RefCell;
use std::fmt::{self, Write};
use std::sync::{Arc, Mutex, Once, PoisonError};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

static READER: Once = Once::new();

thread_local! {
    static CURRENT: RefCell<Option<Log>> = const { RefCell::new(None) };
}

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// How much it matters.
    pub level: Level,
    /// The name of the backing that it is about.
    pub backing: String,
    /// The words.
    pub message: String,
}

/// The lines of one thread, from [`Log::during`].
#[derive(Clone, Debug, Default)]
pub struct Log {
    lines: Arc<Mutex<Vec<Line>>>,
}

impl Log {
    /// Runs `work` and hands it the log that it writes, to look into at any moment.
    pub fn during<T>(work: impl FnOnce(&Log) -> T) -> T {
        READER.call_once(|| {
            // Where the program has a reader already, nothing is read, and the test that counts on it says so.
            let _ = tracing::subscriber::set_global_default(Reader);
            tracing::callsite::rebuild_interest_cache();
        });
        let log = Log::default();
        CURRENT.set(Some(log.clone()));
        let result = work(&log);
        CURRENT.set(None);
        result
    }

    /// Every line so far.
    #[must_use]
    pub fn lines(&self) -> Vec<Line> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many lines of a backing begin with `start`.
    #[must_use]
    pub fn count(&self, backing: &str, start: &str) -> usize {
        self.lines().iter().filter(|line| line.backing == backing && line.message.starts_with(start)).count()
    }

    /// Whether a backing wrote a line that holds `words`.
    #[must_use]
    pub fn has(&self, backing: &str, words: &str) -> bool {
        self.lines().iter().any(|line| line.backing == backing && line.message.contains(words))
    }
}

struct Reader;

impl Subscriber for Reader {
    fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line { level: *event.metadata().level(), backing: String::new(), message: String::new() };
        event.record(&mut line);
        CURRENT.with_borrow(|log| {
            if let Some(log) = log {
                log.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            }
        });
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "backing" {
            value.clone_into(&mut self.backing);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            // Writing to a text can't fail.
            let _ = write!(self.message, "{value:?}");
        }
    }
}
