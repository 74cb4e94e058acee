//! What the kernel says of this process.
