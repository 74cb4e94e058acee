//! The file that a report is written to: opened before the replay, so that a path which can't be written is refused
//! while nothing is lost by it.
//!
//! What the file holds stays until the report replaces it. It is written in place, not renamed over: the path may be a
//! device or a link.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// See the module.
#[derive(Debug)]
pub(crate) struct ReportFile {
    path: PathBuf,
    file: File,
}

/// A report that can't be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReportError {
    #[error("report {path:?}: can't be opened: {error}; name a file that may be written, in a folder that is there")]
    Unopened { path: PathBuf, error: io::Error },
    #[error("report {path:?}: is read by this very replay; name another file")]
    IsRead { path: PathBuf },
    #[error("report {path:?}: not written whole: {error}; make room or name another file, then run again")]
    Unwritten { path: PathBuf, error: io::Error },
}

impl ReportFile {
    /// Opens the file, or makes it; none of those that are read: trace, registry file, libraries.
    ///
    /// # Errors
    /// When it can't be written, or is one of those.
    pub(crate) fn open(path: &Path, read: &[PathBuf]) -> Result<Self, ReportError> {
        let refuse = |error| ReportError::Unopened { path: path.to_owned(), error };
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path).map_err(refuse)?;
        let own = file.metadata().map_err(refuse)?;
        let is_own = |other: &PathBuf| {
            let other = other.metadata();
            own.is_file() && other.is_ok_and(|other| (own.dev(), own.ino()) == (other.dev(), other.ino()))
        };
        if read.iter().any(is_own) {
            return Err(ReportError::IsRead { path: path.to_owned() });
        }
        Ok(Self { path: path.to_owned(), file })
    }

    /// Puts the page in the place of what the file held; answers its path.
    ///
    /// # Errors
    /// When it can't be written: it then holds a part.
    pub(crate) fn write(mut self, page: &str) -> Result<PathBuf, ReportError> {
        let written = self.replace(page);
        let Self { path, .. } = self;
        match written {
            Ok(()) => Ok(path),
            Err(error) => Err(ReportError::Unwritten { path, error }),
        }
    }

    fn replace(&mut self, page: &str) -> io::Result<()> {
        if self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        self.file.write_all(page.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_longer_report_is_replaced_whole_and_only_when_the_new_one_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        fs::write(&path, "an old and long report").unwrap();
        let report = ReportFile::open(&path, &[]).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "an old and long report");
        assert_eq!(report.write("new").unwrap(), path);
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }

    #[test]
    fn what_is_read_is_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let (trace, link) = (folder.path().join("trace.csv"), folder.path().join("link.csv"));
        fs::write(&trace, "requests").unwrap();
        fs::hard_link(&trace, &link).unwrap();
        let text = ReportFile::open(&link, &[folder.path().join("none"), trace.clone()]).unwrap_err().to_string();
        assert_eq!(text, format!("report {link:?}: is read by this very replay; name another file"));
        assert_eq!(fs::read_to_string(&trace).unwrap(), "requests");
    }

    #[test]
    fn a_path_that_cannot_be_written_is_named_with_the_reason() {
        let text = ReportFile::open(Path::new("/nonexistent/report.html"), &[]).unwrap_err().to_string();
        assert_eq!(
            text,
            "report \"/nonexistent/report.html\": can't be opened: No such file or directory (os error 2); name a file \
             that may be written, in a folder that is there"
        );
    }

    #[test]
    fn a_device_without_room_is_an_error_and_no_panic() {
        let full = ReportFile::open(Path::new("/dev/full"), &[]).unwrap();
        assert!(full.write("page").unwrap_err().to_string().contains("not written whole"));
    }
}
