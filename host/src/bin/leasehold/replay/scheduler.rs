//! Replays requests by continuous batching: requests join and leave the batch between steps.
//!
//! Input: requests in order of arrival, a [`CacheStore`], [`ReplayOptions`]. Output: a
//! [`RunSummary`]. The clock is virtual: a step lasts what the options say, and generates one token
//! for every running request.
//!
//! ```text
//! requests ─► arrive ─► waiting ─► admit (prefill) ─► running ─► generate ─► finish
//!               │          ▲          │ alone: refuse    │          │ refused growth
//!               └ refuse   └──────────┼── preempt the youngest ◄────┘
//! ```
//!
//! **Order.** `running` followed by `waiting` is always in order of arrival: arrivals join the end
//! of `waiting`, its front is what joins the end of `running`, and preemption moves the end of
//! `running` back to the front of `waiting`. The youngest running request is thus the last, the
//! oldest the first.
//!
//! **Progress.** In every step, the oldest request that hasn't ended gains a token or ends, so a run
//! of n requests and t output tokens takes at most n + t steps, whatever the store answers:
//! - If nothing runs, it is the front of `waiting`: its prefill succeeds, or it was refused alone,
//!   and is dropped.
//! - Running, it is the first to grow; a refusal preempts others, the youngest first, until it
//!   grows or is alone. Alone and refused, it is dropped. It is itself the youngest only when
//!   alone, so it is never preempted, and what it has generated is never lost.
//!
//! **No thrashing.** A preempted request comes back when there is room for what it had *and* its
//! next token. What it gave back is what it had: were that enough, a request that went because its
//! own growth was refused would be filled anew in every step, only to go again. As it is, it comes
//! back after others have given something up.
//!
//! Owns the caches of running requests, and at most one empty one; all are given back before a run
//! returns. When the store breaks, they are dropped instead. Does not know what a cache is made of,
//! nor print anything.

mod answer;
#[cfg(test)]
mod model_tests;
mod state;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use self::answer::{Answer, answered, done};
use self::state::{Running, Waiting};
use super::options::ReplayOptions;
use super::outcome::RunSummary;
use super::store::CacheStore;
use super::tally::Tally;
use super::trace::Request;

pub(crate) use self::answer::ReplayError;

/// Replays `requests`, sorted by arrival, over `store`. `progress` hears of every request that
/// ends, as the number that have ended and the number of all.
///
/// # Errors
/// When the store breaks. A refused budget is no error: the request waits, or is counted as
/// refused.
pub(crate) fn replay<S: CacheStore>(
    requests: &[Request],
    options: ReplayOptions,
    store: &mut S,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<RunSummary, ReplayError> {
    debug_assert!(requests.is_sorted_by_key(|request| request.arrival), "requests come in order of arrival");
    let tally = Tally::new(requests.len(), &options, progress).map_err(ReplayError::Histogram)?;
    Scheduler::new(requests, options, store, tally).run()
}

struct Scheduler<'run, S: CacheStore> {
    options: ReplayOptions,
    store: &'run mut S,
    clock: Duration,
    /// Not arrived yet, in order of arrival.
    coming: std::slice::Iter<'run, Request>,
    waiting: VecDeque<Waiting<'run>>,
    running: Vec<Running<'run, S::Cache>>,
    /// A cache that was opened for a request and then not grown: the next prefill uses it, instead
    /// of opening and closing one in every step in which the front of the queue has to wait.
    spare: Option<S::Cache>,
    tally: Tally<'run>,
}

impl<'run, S: CacheStore> Scheduler<'run, S> {
    fn new(requests: &'run [Request], options: ReplayOptions, store: &'run mut S, tally: Tally<'run>) -> Self {
        Self {
            options,
            store,
            clock: Duration::ZERO,
            coming: requests.iter(),
            waiting: VecDeque::new(),
            running: Vec::new(),
            spare: None,
            tally,
        }
    }

    fn run(mut self) -> Result<RunSummary, ReplayError> {
        while self.wait_for_work() {
            self.tally.begin_step(self.clock);
            self.admit()?;
            self.tally.count_step(self.store.owned_bytes(), self.store.mapped_bytes(), self.running.len());
            self.generate()?;
            self.tally.footprint.note_peak();
            self.clock = self.clock.saturating_add(self.options.step);
        }
        self.close_spare()?;
        Ok(self.tally.summary(self.store.peak_owned_bytes(), self.store.prefix_use()))
    }

    /// Takes in what has arrived; when there is nothing to do, what arrives next. False when all
    /// has ended.
    fn wait_for_work(&mut self) -> bool {
        loop {
            self.take_arrivals();
            if !self.running.is_empty() || !self.waiting.is_empty() {
                return true;
            }
            let Some(next) = self.coming.as_slice().first() else {
                return false;
            };
            self.clock = next.arrival;
        }
    }

    fn take_arrivals(&mut self) {
        while let Some(request) = self.coming.as_slice().first().filter(|next| next.arrival <= self.clock) {
            self.coming.next();
            match self.store.fits(request.final_tokens()) {
                Ok(()) => self.waiting.push_back(Waiting::new(request)),
                Err(reason) => self.tally.refuse(request, reason),
            }
        }
    }

    /// Lets waiting requests run, from the front, until one is refused or the batch is full.
    fn admit(&mut self) -> Result<(), ReplayError> {
        while self.options.max_running.is_none_or(|most| self.running.len() < most.get()) {
            let Some(&next) = self.waiting.front() else {
                return Ok(());
            };
            match self.prefill(next)? {
                Ok(()) => {}
                Err(reason) if self.running.is_empty() => self.tally.refuse(next.request, reason),
                Err(_) => return Ok(()),
            }
            self.waiting.pop_front();
        }
        Ok(())
    }

    fn prefill(&mut self, Waiting { request, tokens, room }: Waiting<'run>) -> Result<Answer<()>, ReplayError> {
        let mut cache = match self.take_spare_or_open(request)? {
            Ok(cache) => cache,
            Err(reason) => return Ok(Err(reason)),
        };
        if let Err(reason) = self.make_ready(&mut cache, request, room)? {
            self.spare = Some(cache);
            return Ok(Err(reason));
        }
        done(request, "filling", self.store.fill(&mut cache, 0, tokens))?;
        self.tally.footprint.add(tokens);
        self.running.push(Running { request, cache, tokens });
        self.tally.note_running(self.running.len());
        self.finish_if_complete(self.running.len().saturating_sub(1))?; // it asked for no output
        Ok(Ok(()))
    }

    fn make_ready(&mut self, cache: &mut S::Cache, request: &Request, room: u64) -> Result<Answer<()>, ReplayError> {
        if let Err(reason) = answered(request, "sharing into", self.store.begin(cache, request))? {
            return Ok(Err(reason));
        }
        let grown = self.tally.time_growth(|| self.store.grow(cache, room));
        answered(request, "growing", grown)
    }

    fn take_spare_or_open(&mut self, request: &Request) -> Result<Answer<S::Cache>, ReplayError> {
        match self.spare.take() {
            Some(cache) => Ok(Ok(cache)),
            None => answered(request, "opening", self.store.open()),
        }
    }

    /// One token for every running request, the oldest first.
    fn generate(&mut self) -> Result<(), ReplayError> {
        let mut position = 0;
        while let Some(running) = self.running.get_mut(position) {
            match running.grow_by_one(self.store, &mut self.tally)? {
                Ok(()) if self.finish_if_complete(position)? => {} // the next one stands here now
                Ok(()) => position = position.saturating_add(1),
                Err(reason) => self.make_room(reason)?, // then this one again, unless it was the one to go
            }
        }
        Ok(())
    }

    /// Gives back the least that may let an older request grow: the unused cache, or else the
    /// youngest request's, which waits for another turn; if no other runs, it never fits, and is
    /// refused.
    fn make_room(&mut self, reason: String) -> Result<(), ReplayError> {
        if self.spare.is_some() {
            return self.close_spare();
        }
        let Some(youngest) = self.running.pop() else {
            return Ok(());
        };
        let (request, tokens) = (youngest.request, youngest.tokens);
        self.close(youngest)?;
        if self.running.is_empty() {
            self.tally.refuse(request, reason);
        } else {
            self.tally.preempt();
            self.waiting.push_front(Waiting::preempted(request, tokens));
        }
        Ok(())
    }

    /// Whether the request at `position` has all its tokens; it is then gone from the batch.
    fn finish_if_complete(&mut self, position: usize) -> Result<bool, ReplayError> {
        if !self.running.get(position).is_some_and(Running::is_complete) {
            return Ok(false);
        }
        let finished = self.running.remove(position); // moves younger ones down: the order stays
        self.close(finished)?;
        self.tally.complete();
        Ok(true)
    }

    fn close(&mut self, Running { request, cache, tokens }: Running<'run, S::Cache>) -> Result<(), ReplayError> {
        self.tally.footprint.note_peak();
        done(request, "closing", self.store.close(cache, tokens))?;
        self.tally.footprint.remove(tokens);
        Ok(())
    }

    fn close_spare(&mut self) -> Result<(), ReplayError> {
        let Some(cache) = self.spare.take() else {
            return Ok(());
        };
        self.tally.footprint.note_peak();
        self.store.close(cache, 0).map_err(|error| ReplayError::BrokenSpare { reason: error.reason() })
    }
}
