//! A backing that fails where it is told to.
