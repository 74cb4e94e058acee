//! What an engine is promised, over the built-in backing, the same one loaded from its library, and one that charges by
//! itself; over host-pool and the CUDA backings too.

mod authority;
mod discovery;
mod disks;
mod growth;
