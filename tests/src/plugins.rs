//! Where the plugins are, and registry files that name them.
