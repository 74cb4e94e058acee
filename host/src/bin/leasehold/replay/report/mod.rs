//! `leasehold replay --report`: one page that shows what a replay found.
//!
//! ```text
//! Setup, Runs ──► page (HTML) ◄── charts (SVG of one Timeline) ◄── timeline (recorded on the way)
//!                  │
//!                  ▼
//!                 file (opened before the replay, written after it)
//! ```
//!
//! The page stands alone: no script, and nothing that is fetched. All text that comes from outside is escaped in `page`;
//! charts hold figures only.

mod charts;
mod file;
mod mark;
mod page;

pub(super) use file::ReportFile;
pub(super) use page::page;
