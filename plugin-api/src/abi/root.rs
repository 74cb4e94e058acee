//! Door 1: the abi_stable root module of every library that links this crate.
//!
//! The module is frozen: abi_stable refuses a library whose root has fewer fields than the host expects, so a second
//! version would be a second root module that the host tries first. Its one function names the tables in its
//! signature, and so abi_stable compares their layouts before anything is called.
//!
//! The symbol stands here rather than in each plugin, so that any number of plugin crates can be linked into one
//! program.

use super::{PluginTable, plugin_side};
use abi_stable::StableAbi;
use abi_stable::export_root_module;
use abi_stable::library::RootModule;
use abi_stable::package_version_strings;
use abi_stable::prefix_type::PrefixTypeTrait;
use abi_stable::sabi_types::VersionStrings;

/// What a library hands to the host.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
#[sabi(kind(Prefix(prefix_ref = PluginRootRef)))]
#[sabi(missing_field(panic))]
pub struct PluginRoot {
    /// Every backing of the library.
    ///
    /// The table is the library's: put together once, never changed, valid for the life of the process. Null where it
    /// could not be put together. Any thread may call, any number of times; it does not block.
    #[sabi(last_prefix_field)]
    pub plugin: extern "C" fn() -> *const PluginTable,
}

impl RootModule for PluginRootRef {
    abi_stable::declare_root_module_statics! {PluginRootRef}

    const BASE_NAME: &'static str = "leasehold_plugin";
    const NAME: &'static str = "leasehold_plugin";
    const VERSION_STRINGS: VersionStrings = package_version_strings!();
}

#[export_root_module]
fn leasehold_root() -> PluginRootRef {
    PluginRoot { plugin: plugin_side::plugin }.leak_into_prefix()
}
