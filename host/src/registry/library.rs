//! Turns the `library` of a backing into the file that it names.
//!
//! `"builtin"` is linked in. A text with a slash is a path. Any other is a bare name, `lib{NAME}.so` in one of the
//! search folders; for a name with hyphens the file may have underscores instead, as Cargo writes it.
//!
//! The first file that is not plainly absent is taken, whatever it is: one that may not be looked at or is no library
//! is for the loader to reject, and never a reason to load another one from a later folder.

use std::io;
use std::path::{Path, PathBuf};

const BUILTIN: &str = "builtin";

/// Where a backing's code is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LibrarySource {
    /// Linked into the host.
    Builtin,
    /// This file. Links within the path are kept, so that messages show what was written.
    File(PathBuf),
    /// No file. These were looked at, in this order; none when a bare name has no folder to be looked for in.
    Missing { tried: Vec<PathBuf> },
}

impl LibrarySource {
    /// What `library` names, in a registry file that is in `folder` and has these search folders.
    pub(super) fn find(library: &str, folder: &Path, search: &[PathBuf]) -> Self {
        if library == BUILTIN {
            return Self::Builtin;
        }
        let tried = candidates(library, folder, search);
        match tried.iter().find(|path| !is_absent(path)) {
            Some(found) => Self::File(found.clone()),
            None => Self::Missing { tried },
        }
    }
}

/// The paths that `library` may stand for, the first choice first.
fn candidates(library: &str, folder: &Path, search: &[PathBuf]) -> Vec<PathBuf> {
    if library.contains('/') {
        return vec![folder.join(library)];
    }
    let mut names = vec![format!("lib{library}.so")];
    if library.contains('-') {
        names.push(format!("lib{}.so", library.replace('-', "_")));
    }
    search.iter().flat_map(|below| names.iter().map(move |name| folder.join(below).join(name))).collect()
}

fn is_absent(path: &Path) -> bool {
    path.metadata().is_err_and(|error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    /// A folder with these files.
    fn folder(files: &[&str]) -> TempDir {
        let root = TempDir::new().unwrap();
        for file in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        root
    }

    fn search(folders: &[&str]) -> Vec<PathBuf> {
        folders.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn builtin_is_no_file() {
        let root = folder(&["a/libbuiltin.so"]);
        assert_eq!(LibrarySource::find("builtin", root.path(), &search(&["a"])), LibrarySource::Builtin);
    }

    #[test]
    fn a_bare_name_is_looked_for_in_each_folder_in_order() {
        let root = folder(&["b/libvendor.so", "c/libvendor.so"]);
        let found = LibrarySource::find("vendor", root.path(), &search(&["a", "b", "c"]));
        assert_eq!(found, LibrarySource::File(root.path().join("b/libvendor.so")));
    }

    #[test]
    fn an_absolute_search_folder_is_taken_as_it_is() {
        let (root, other) = (folder(&[]), folder(&["libvendor.so"]));
        let found = LibrarySource::find("vendor", root.path(), &[other.path().to_owned()]);
        assert_eq!(found, LibrarySource::File(other.path().join("libvendor.so")));
    }

    #[test]
    fn hyphens_may_be_underscores_in_the_file() {
        let root = folder(&["a/libhost_mmap.so", "b/libhost-mmap.so"]);
        let find = |folders: &[&str]| LibrarySource::find("host-mmap", root.path(), &search(folders));
        assert_eq!(find(&["a", "b"]), LibrarySource::File(root.path().join("a/libhost_mmap.so")));
        assert_eq!(find(&["b", "a"]), LibrarySource::File(root.path().join("b/libhost-mmap.so")));
    }

    #[test]
    fn a_path_starts_from_the_folder_of_the_file() {
        let root = folder(&["conf/x", "lib/vendor.so"]);
        let (conf, absolute) = (root.path().join("conf"), root.path().join("lib/vendor.so"));
        let relative = LibrarySource::find("../lib/vendor.so", &conf, &[]);
        assert_eq!(relative, LibrarySource::File(conf.join("../lib/vendor.so")));
        let found = LibrarySource::find(absolute.to_str().unwrap(), &conf, &[]);
        assert_eq!(found, LibrarySource::File(absolute));
    }

    #[test]
    fn a_path_is_not_looked_for_in_search_folders() {
        let root = folder(&["a/x/libvendor.so"]);
        let found = LibrarySource::find("x/libvendor.so", root.path(), &search(&["a"]));
        assert_eq!(found, LibrarySource::Missing { tried: vec![root.path().join("x/libvendor.so")] });
    }

    #[test]
    fn the_working_directory_is_not_looked_in() {
        // The tests of a package run in its own folder, where this file is.
        assert!(Path::new("Cargo.toml").exists());
        let root = folder(&[]);
        let found = LibrarySource::find("./Cargo.toml", root.path(), &[]);
        assert_eq!(found, LibrarySource::Missing { tried: vec![root.path().join("./Cargo.toml")] });
    }

    #[test]
    fn what_is_not_found_tells_every_path_that_was_tried() {
        let root = folder(&["b"]);
        let at = |path: &str| root.path().join(path);
        assert_eq!(
            LibrarySource::find("x-y", root.path(), &search(&["a", "b"])),
            LibrarySource::Missing {
                tried: vec![at("a/libx-y.so"), at("a/libx_y.so"), at("b/libx-y.so"), at("b/libx_y.so")]
            }
        );
        assert_eq!(LibrarySource::find("x", root.path(), &[]), LibrarySource::Missing { tried: vec![] });
    }

    #[test]
    fn what_is_there_and_is_no_library_is_left_to_the_loader() {
        let root = folder(&["a/libvendor.so/inner", "b/libvendor.so"]);
        let found = LibrarySource::find("vendor", root.path(), &search(&["a", "b"]));
        assert_eq!(found, LibrarySource::File(root.path().join("a/libvendor.so")));
        let long = "x".repeat(300);
        assert!(matches!(LibrarySource::find(&long, root.path(), &search(&["a"])), LibrarySource::File(_)));
    }

    #[test]
    fn a_link_that_leads_nowhere_is_absent() {
        let root = folder(&["a/x", "b/libvendor.so"]);
        std::os::unix::fs::symlink("gone.so", root.path().join("a/libvendor.so")).unwrap();
        let found = LibrarySource::find("vendor", root.path(), &search(&["a", "b"]));
        assert_eq!(found, LibrarySource::File(root.path().join("b/libvendor.so")));
    }
}
