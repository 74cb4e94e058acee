//! Failures that a test planned: which call, the how-manieth from now, with which code, once or from then on, and how
//! much of its effect it has before.

use crate::codes::{Answer, Code};

/// Whether a planned failure goes away after it struck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lasting {
    Once,
    ForEver,
}

/// How much of its effect a call has that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    Nothing,
    /// What it does to the first half of the mappings in its range.
    Half,
}

/// The functions that can fail half-way: they act on many mappings in one call.
const DIVISIBLE: [&str; 2] = ["cuMemUnmap", "cuMemSetAccess"];

/// A call that has to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Strike {
    pub(crate) code: Code,
    pub(crate) extent: Extent,
}

#[derive(Debug)]
struct Plan {
    /// A function, or the beginning of some functions' names and a star.
    function: String,
    /// Calls until it strikes; 1 is the next.
    remaining: u64,
    lasting: Lasting,
    strike: Strike,
}

impl Plan {
    fn matches(&self, function: &str) -> bool {
        match self.function.strip_suffix('*') {
            Some(beginning) => function.starts_with(beginning),
            None => function == self.function,
        }
    }
}

/// All planned failures.
#[derive(Debug, Default)]
pub(crate) struct Plans(Vec<Plan>);

impl Plans {
    /// Plans one that does nothing. `nth` counts from 1.
    pub(crate) fn add(&mut self, function: &str, nth: u64, lasting: Lasting, code: Code) {
        self.push(function, nth, lasting, Strike { code, extent: Extent::Nothing });
    }

    /// Plans one that does a half: of a function that can.
    pub(crate) fn add_halfway(&mut self, function: &str, nth: u64, lasting: Lasting, code: Code) -> Answer<()> {
        if !DIVISIBLE.contains(&function) {
            return Err(Code::INVALID_VALUE);
        }
        self.push(function, nth, lasting, Strike { code, extent: Extent::Half });
        Ok(())
    }

    fn push(&mut self, function: &str, nth: u64, lasting: Lasting, strike: Strike) {
        self.0.push(Plan { function: function.to_owned(), remaining: nth.max(1), lasting, strike });
    }

    /// What a text plans: a function, the how-manieth call and a code, for once, or with `on` behind it from then on.
    pub(crate) fn of_text(text: &str) -> Self {
        let mut plans = Self::default();
        let (text, lasting) = match text.strip_suffix(" on") {
            Some(text) => (text, Lasting::ForEver),
            None => (text, Lasting::Once),
        };
        if let [function, nth, code] = text.split_whitespace().collect::<Vec<_>>()[..]
            && let (Ok(nth), Ok(code)) = (nth.parse(), code.parse())
        {
            plans.add(function, nth, lasting, Code(code));
        }
        plans
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Counts a call down, and answers how it has to fail. Where two plans strike at once the older one decides.
    pub(crate) fn strike(&mut self, function: &str) -> Option<Strike> {
        let mut struck = None;
        self.0.retain_mut(|plan| {
            if !plan.matches(function) {
                return true;
            }
            if plan.remaining > 1 {
                plan.remaining -= 1;
                return true;
            }
            struck = struck.or(Some(plan.strike));
            plan.lasting == Lasting::ForEver
        });
        struck
    }
}
