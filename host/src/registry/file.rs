//! Turns the text of `registry.toml` into a [`RegistryFile`]: what was written, checked by itself.
//!
//! Input: a path or a text. Output: every section with its defaults, or every problem with its line and column.
//! It looks at nothing that the file names: which library a name leads to is for `Manifest` to say.

use super::backing_entry::BackingEntry;
use super::budget::BudgetSpec;
use super::error::RegistryError;
use super::reader::Reader;
use leasehold_plugin_api::Domain;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use toml::de::DeTable;

const BYTE_ORDER_MARK: char = '\u{feff}';

/// A registry file, as written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RegistryFile {
    /// The path by which the file was named.
    pub(crate) path: PathBuf,
    /// The folder that relative paths in the file start from: the real file's own, so that a symbolic link to a
    /// registry means what the registry means.
    pub(crate) folder: PathBuf,
    /// Where bare library names are looked for, in this order.
    pub(crate) search: Vec<PathBuf>,
    /// The domains that were named.
    pub(crate) budgets: BTreeMap<Domain, BudgetSpec>,
    /// In the order in which they were written; no two have one name.
    pub(crate) backings: Vec<BackingEntry>,
}

impl RegistryFile {
    /// Reads the file at `path`, following symbolic links once, so that text and folder are the same file's.
    ///
    /// # Errors
    ///
    /// The file can't be read, or what [`parse`](Self::parse) refuses.
    pub(crate) fn read(path: &Path) -> Result<Self, RegistryError> {
        let io_error = |error: io::Error| RegistryError::from_io(path, error);
        let real = fs::canonicalize(path).map_err(io_error)?;
        if let Some(seen) = not_a_file(&real).map_err(io_error)? {
            return Err(RegistryError::not_a_file(path, seen));
        }
        let bytes = read_file(&real).map_err(io_error)?;
        let mut file = Self::parse(decode(&bytes, path)?, path)?;
        if let Some(folder) = real.parent() {
            file.folder = folder.to_owned();
        }
        Ok(file)
    }

    /// Reads a text, as that of the file at `path`; a leading byte order mark is skipped.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it; when it is no TOML, only where it first stops being so, and when its format
    /// is not read here, only that.
    pub(crate) fn parse(text: &str, path: &Path) -> Result<Self, RegistryError> {
        let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        let mut reader = Reader::new(text);
        let mut file = Self::empty(path);
        match DeTable::parse(text) {
            Ok(table) => reader.sections(table.get_ref(), &mut file),
            Err(error) => reader.report(
                reader.at_offset(error.span().map_or(0, |span| span.start)),
                "no valid TOML",
                error.message().replace('\n', " "),
                "correct it here",
            ),
        }
        reader.finish(file, path)
    }

    fn empty(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            folder: path.parent().unwrap_or(Path::new("")).to_owned(),
            search: Vec::new(),
            budgets: BTreeMap::new(),
            backings: Vec::new(),
        }
    }
}

/// The bytes of a file. Those that the kernel makes up say that they are empty, and reading one may wait for ever.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    match fs::metadata(path)?.len() {
        0 => Ok(Vec::new()),
        _ => fs::read(path),
    }
}

/// What `path` is, in words, when it is no file; opening a pipe or a device could wait for ever.
fn not_a_file(path: &Path) -> io::Result<Option<&'static str>> {
    let kind = fs::metadata(path)?.file_type();
    Ok(match () {
        () if kind.is_file() => None,
        () if kind.is_dir() => Some("a directory"),
        () => Some("a pipe, socket or device"),
    })
}

fn decode<'b>(bytes: &'b [u8], path: &Path) -> Result<&'b str, RegistryError> {
    let Err(error) = std::str::from_utf8(bytes) else {
        return Ok(std::str::from_utf8(bytes).unwrap_or_default());
    };
    let (valid, rest) = bytes.split_at(error.valid_up_to());
    let valid = String::from_utf8_lossy(valid);
    let mut reader = Reader::new(valid.trim_start_matches(BYTE_ORDER_MARK));
    let why = format!("seen the byte {:#04x}, wanted UTF-8", rest.first().copied().unwrap_or(0));
    reader.report(reader.at_offset(usize::MAX), "no text", why, "save the file as UTF-8");
    reader.finish("", path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    /// The refusal of a file with these bytes, its folder cut off.
    fn refusal(bytes: &[u8]) -> String {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("registry.toml");
        fs::write(&path, bytes).unwrap();
        without(&folder, &RegistryFile::read(&path).unwrap_err())
    }

    fn without(folder: &TempDir, error: &RegistryError) -> String {
        error.to_string().replace(&format!("{}/", folder.path().display()), "")
    }

    #[test]
    fn a_missing_file_is_refused() {
        let folder = TempDir::new().unwrap();
        let error = RegistryFile::read(&folder.path().join("registry.toml")).unwrap_err();
        assert_eq!(
            without(&folder, &error),
            "registry.toml: not read: No such file or directory (os error 2); name an existing file"
        );
        assert!(std::error::Error::source(&error).is_some());
    }

    #[test]
    fn a_directory_is_refused() {
        let folder = TempDir::new().unwrap();
        fs::create_dir(folder.path().join("registry.toml")).unwrap();
        let error = RegistryFile::read(&folder.path().join("registry.toml")).unwrap_err();
        assert_eq!(
            without(&folder, &error),
            "registry.toml: not read: seen a directory, wanted a file; name the registry file itself"
        );
    }

    #[test]
    fn a_device_is_refused_without_reading_it() {
        let error = RegistryFile::read(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "/dev/zero: not read: seen a pipe, socket or device, wanted a file; name the registry file itself"
        );
    }

    #[test]
    fn bytes_that_are_no_utf_8_are_refused_at_their_place() {
        assert_eq!(
            refusal(b"format = 1\n# caf\xe9\n"),
            "registry.toml:2:6: no text: seen the byte 0xe9, wanted UTF-8; save the file as UTF-8"
        );
        assert_eq!(
            refusal(b"\xff\xfef\0"),
            "registry.toml:1:1: no text: seen the byte 0xff, wanted UTF-8; save the file as UTF-8"
        );
    }

    #[test]
    fn an_empty_file_is_refused() {
        assert!(refusal(b"").starts_with("registry.toml:1:1: format missing: "));
    }

    #[test]
    fn a_file_behind_a_symbolic_link_keeps_its_own_folder() {
        let folder = TempDir::new().unwrap();
        let real = folder.path().join("real");
        fs::create_dir(&real).unwrap();
        fs::write(real.join("registry.toml"), "format = 1").unwrap();
        symlink(real.join("registry.toml"), folder.path().join("link.toml")).unwrap();
        let file = RegistryFile::read(&folder.path().join("link.toml")).unwrap();
        assert_eq!(file.path, folder.path().join("link.toml"));
        assert_eq!(file.folder, fs::canonicalize(real).unwrap());
    }
}
