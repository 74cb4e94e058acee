//! The documents and the code say the same.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Every Rust file of the project, relative to its root.
fn rust_files() -> BTreeSet<String> {
    let mut files = BTreeSet::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !name.starts_with('.') && !name.starts_with("target") {
                folders.push(path);
            } else if name.ends_with(".rs") {
                files.insert(path.strip_prefix(root()).unwrap().to_string_lossy().into_owned());
            }
        }
    }
    files
}

/// The first cells of a document's table that are in backticks.
fn listed(document: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join(document)).unwrap();
    let cells = text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    cells.map(|(cell, _)| cell.to_owned()).collect()
}

fn opens_unsafe_code(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("#![expect(unsafe_code"))
}

#[test]
fn unsafe_code_is_where_the_document_says() {
    let opened: BTreeSet<_> = rust_files()
        .into_iter()
        .filter(|file| opens_unsafe_code(&fs::read_to_string(root().join(file)).unwrap()))
        .collect();
    assert_eq!(opened, listed("docs/unsafe.md"));
}

#[test]
fn every_link_between_documents_leads_somewhere() {
    let mut documents: Vec<_> = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    documents.push(root().join("README.md"));
    for document in documents.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "md")) {
        let text = fs::read_to_string(&document).unwrap();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target) {
            if !target.starts_with("http") {
                let path = document.parent().unwrap().join(target);
                assert!(path.exists(), "{} links to {target}", document.display());
            }
        }
    }
}
