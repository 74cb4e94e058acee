//! The tables that carry the contract across a shared library.
//!
//! Every operation is a function pointer in a C-shaped table, with scalars, caller-owned out-parameters and a `u32`
//! status. Nothing that one side allocated is freed by the other. Detail of a failure goes into a caller-owned
//! [`ErrorRecord`], written only on failure, so that a call that succeeds passes no more than its
//! answer.
//!
//! ```text
//!        host                                    plugin
//!   ImportedBacking ── BackingTable ──►  plugin_side ──► dyn Backing
//!   ServiceContext  ◄── HostServicesTable ── HostServices (what an author holds)
//! ```
//!
//! * `records`: the contract's values as plain data; `access`, `text`, `error_record`, `release` and `creation`: what else is
//!   passed.
//! * `tables`: the operations, with who owns what.
//! * `plugin_side`: a `dyn Backing` behind those tables. Its counterpart is in the host.
//! * `root`: door 1, the abi_stable root module that hands the tables out.

mod access;
mod creation;
mod error_record;
mod plugin_side;
mod records;
mod release;
mod root;
mod tables;
mod text;

pub use access::AccessRecord;
pub use creation::{
    BackingInstance, CreateRequest, LIST_ELEMENT, LIST_EMPTY, LIST_NONE, OPTION_BOOLEAN, OPTION_FLOAT, OPTION_INTEGER,
    OPTION_TEXT, OptionRecord,
};
pub use error_record::{ErrorRecord, MESSAGE_BYTES};
pub use records::{
    AccountingRecord, ChangeRecord, DescriptionRecord, DomainRecord, NAME_BYTES, PrefixRecord, PrefixRequestRecord,
    RegionRecord, RequestRecord, RoleRecord,
};
pub use release::{OutcomeRecord, TargetRecord};
pub use root::{PluginRoot, PluginRootRef};
pub use tables::{
    BackingEntry, BackingTable, HostServicesTable, PluginTable, SharedMappingTable, TransferTable, VirtualBackingTable,
};
pub use text::Text;

/// The operation succeeded and its out-parameter is written.
pub const STATUS_OK: u32 = 0;
/// The operation failed and the error record is written.
pub const STATUS_FAILED: u32 = 1;
/// The plugin's code panicked; the error record holds the panic's message.
pub const STATUS_PANICKED: u32 = 2;

/// All of the target is given back.
pub const OUTCOME_COMPLETE: u32 = 0;
/// Nothing changed; the outcome's reason says why.
pub const OUTCOME_FAILED: u32 = 1;
/// Some of it happened; the outcome's reason says why. A reader takes every number it does not know for this one.
pub const OUTCOME_QUARANTINED: u32 = 2;

/// The version of the tables in this crate.
pub const TABLES_VERSION: u32 = 1;
