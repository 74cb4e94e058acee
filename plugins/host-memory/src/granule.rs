//! Whether a granule that someone wrote can serve.

use leasehold_plugin_api::{BackingError, ByteSize};

/// The granule that an option asks for, or `default` bytes.
///
/// # Errors
///
/// [`InvalidRequest`](leasehold_plugin_api::ErrorKind::InvalidRequest) where it is no power of two, or less than a
/// page.
pub fn resolve(written: Option<ByteSize>, default: u64, page: u64) -> Result<u64, BackingError> {
    let granule = written.map_or(default, |ByteSize(granule)| granule);
    if !granule.is_power_of_two() {
        return Err(wrong(granule, page, "is not a power of two"));
    }
    if granule < page {
        return Err(wrong(granule, page, &format!("is less than a page of {page} bytes")));
    }
    Ok(granule)
}

fn wrong(granule: u64, page: u64, why: &str) -> BackingError {
    BackingError::invalid(format!(
        "option `granule` refused: {granule} bytes {why}; write a power of two from {page} up, such as \
         granule = \"2 MiB\""
    ))
}
