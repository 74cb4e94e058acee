//! Looks at a file before the dynamic linker does.
//!
//! The linker maps what the program headers promise: a file that was cut short would end the process with SIGBUS, a
//! FIFO would block it, and a library for another machine is reported as "no such file". So: a regular file, an ELF
//! shared object of this machine, whose loaded parts and section headers lie within it, and the bytes that a pin asks
//! for.
//!
//! Only the headers are read, unless there is a pin. A file that is replaced between this look and the opening is not
//! noticed.

use super::error::{LoadError, LoadStage};
use object::elf;
use object::read::elf::{FileHeader, ProgramHeader};
use object::{ReadCache, ReadRef};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::path::Path;

type Header = elf::FileHeader64<object::LittleEndian>;

/// Refuses a file that could not be opened safely, or that is not the one that was pinned.
pub(super) fn inspect(path: &Path, pin: Option<[u8; 32]>) -> Result<(), LoadError> {
    check_file(path, pin).map_err(|error| error.at(path))
}

fn check_file(path: &Path, pin: Option<[u8; 32]>) -> Result<(), LoadError> {
    check_kind(path)?;
    let Some(pin) = pin else {
        let file = File::open(path).map_err(|error| unreadable(&error))?;
        return check_elf(&ReadCache::new(file));
    };
    let bytes = fs::read(path).map_err(|error| unreadable(&error))?;
    check_elf(&*bytes)?;
    check_pin(&bytes, pin)
}

fn refused(why: impl Into<String>, todo: &str) -> LoadError {
    LoadError::new(LoadStage::Inspect, why, todo)
}

fn unreadable(error: &std::io::Error) -> LoadError {
    refused(format!("can't be read ({error})"), "check its path and permissions")
}

/// Opening anything but a file may block.
fn check_kind(path: &Path) -> Result<(), LoadError> {
    let metadata = fs::metadata(path).map_err(|error| unreadable(&error))?;
    if !metadata.is_file() {
        return Err(refused("is not a regular file", "name the library itself"));
    }
    // Files that the kernel makes up say that they are empty, and reading one may wait for ever.
    if metadata.len() == 0 {
        return Err(refused("is empty", "build or copy it again"));
    }
    Ok(())
}

fn check_elf<'data>(file: impl ReadRef<'data>) -> Result<(), LoadError> {
    const REBUILD: &str = "name a shared library built for this machine";
    const MAGIC_BYTES: u64 = 4;
    let have = file.len().map_err(|()| refused("has no length", "name the library itself"))?;
    if have == 0 {
        return Err(refused("is empty", "build or copy it again"));
    }
    if file.read_bytes_at(0, MAGIC_BYTES) != Ok(&elf::ELFMAG[..]) {
        return Err(refused("is not an ELF file", REBUILD));
    }
    let header = Header::parse(file)
        .map_err(|error| refused(format!("is not a 64-bit little-endian ELF file that is whole ({error})"), REBUILD))?;
    let endian = header.endian().map_err(|error| refused(format!("has no byte order ({error})"), REBUILD))?;
    let machine = header.e_machine(endian);
    if Some(machine) != this_machine() {
        return Err(refused(format!("is for another machine (ELF machine {})", machine.0), REBUILD));
    }
    if header.e_type(endian) != elf::ET_DYN {
        return Err(refused("is not a shared object", "link it as a shared library (crate-type cdylib, or -shared)"));
    }
    check_extent(header, endian, file, have)
}

fn this_machine() -> Option<elf::Machine> {
    match std::env::consts::ARCH {
        "x86_64" => Some(elf::EM_X86_64),
        "aarch64" => Some(elf::EM_AARCH64),
        "riscv64" => Some(elf::EM_RISCV),
        _ => None,
    }
}

fn check_extent<'data>(
    header: &Header,
    endian: object::LittleEndian,
    file: impl ReadRef<'data>,
    have: u64,
) -> Result<(), LoadError> {
    let truncated = |wanted: &str| refused(format!("is cut short: {wanted}"), "build or copy it again");
    let segments = header
        .program_headers(endian, file)
        .map_err(|error| truncated(&format!("its program headers are not within it ({error})")))?;
    for segment in segments {
        let end = segment.p_offset(endian).saturating_add(segment.p_filesz(endian));
        if end > have {
            return Err(truncated(&format!("{have} bytes, where its segments reach to {end}")));
        }
    }
    // The linker does without them, and they are the last thing in the file: a copy that broke off lacks them.
    let sections = header.section_headers(endian, file);
    sections.map(|_| ()).map_err(|error| truncated(&format!("its section headers are not within it ({error})")))
}

fn check_pin(bytes: &[u8], pin: [u8; 32]) -> Result<(), LoadError> {
    let seen: [u8; 32] = Sha256::digest(bytes).into();
    if seen == pin {
        return Ok(());
    }
    let why = format!("has sha256 {}, pinned is {}", hex(&seen), hex(&pin));
    Err(refused(why, "restore the pinned file, or correct sha256 in registry.toml after checking the new one"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own_program() -> Vec<u8> {
        fs::read(std::env::current_exe().expect("is known")).expect("can be read")
    }

    fn refusal(bytes: &[u8]) -> String {
        check_elf(bytes).expect_err("is refused").to_string()
    }

    #[test]
    fn a_whole_shared_object_of_this_machine_passes() {
        // A position-independent program is a shared object to the ELF header.
        assert_eq!(check_elf(&*own_program()), Ok(()));
    }

    #[test]
    fn the_headers_alone_are_read_of_a_file_without_a_pin() {
        let program = File::open(std::env::current_exe().expect("is known")).expect("can be read");
        assert_eq!(check_elf(&ReadCache::new(program)), Ok(()));
    }

    #[test]
    fn a_library_that_is_cut_short_is_refused_before_it_is_opened() {
        let bytes = own_program();
        for len in [bytes.len() / 100, bytes.len() / 2, bytes.len() - 1] {
            let cut = bytes.get(..len).expect("a part");
            assert!(refusal(cut).contains("cut short"), "{len}: {}", refusal(cut));
        }
        assert!(refusal(&bytes[..40]).contains("is whole"));
    }

    #[test]
    fn a_library_for_another_machine_or_class_is_refused() {
        let mut other = own_program();
        other[18] = 8;
        assert!(refusal(&other).contains("another machine (ELF machine 8)"));
        let mut class = own_program();
        class[4] = 1;
        assert!(refusal(&class).contains("64-bit"));
    }

    #[test]
    fn what_is_no_library_is_named() {
        assert!(refusal(b"").contains("is empty"));
        assert!(refusal(b"#!/bin/sh\n").contains("is not an ELF file"));
        let folder = std::env::temp_dir();
        assert!(inspect(&folder, None).expect_err("is refused").to_string().contains("not a regular file"));
    }

    #[test]
    fn a_pin_that_does_not_match_shows_both_hashes() {
        let error = check_pin(b"abc", [0x11; 32]).expect_err("is refused").to_string();
        // The digest of "abc" is the example of FIPS 180-4.
        assert!(error.contains("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"), "{error}");
        assert!(error.contains(&"11".repeat(32)), "{error}");
    }
}
