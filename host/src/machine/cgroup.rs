//! Turns the files of the control groups that this process is in into memory limits.
//!
//! A limit of any group on the way from the process's own to the root binds it, so all are read. A file that is
//! missing or unclear limits nothing: inside a container the upper groups are not to be seen, and what is seen as the
//! root is the container's own group, limits and all.
//!
//! Sources: the kernel's `admin-guide/cgroup-v2.rst` and `admin-guide/cgroup-v1/memory.rst`, cgroups(7).

use std::fs;
use std::path::{Component, Path, PathBuf};

/// Where the groups are mounted (cgroups(7)); `memory` below it is the memory controller of version 1.
const MOUNT: &str = "/sys/fs/cgroup";

/// What one group may use, and what it uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemoryLimit {
    pub(super) limit_bytes: u64,
    /// Without the file pages that the kernel would drop first.
    pub(super) used_bytes: u64,
}

/// The names that the files of one version have.
#[derive(Clone, Copy, Debug)]
struct Files {
    /// The lowest of these binds. Version 2 throttles a group at `memory.high`, which is as good as full.
    limits: &'static [&'static str],
    usage: &'static str,
    /// The key in `memory.stat` of file pages that were not used lately, with those of groups below.
    inactive_file: &'static str,
}

const VERSION_2: Files =
    Files { limits: &["memory.max", "memory.high"], usage: "memory.current", inactive_file: "inactive_file" };
const VERSION_1: Files =
    Files { limits: &["memory.limit_in_bytes"], usage: "memory.usage_in_bytes", inactive_file: "total_inactive_file" };

/// The limits that bind this process.
pub(super) fn memory_limits() -> Vec<MemoryLimit> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    limits_below(Path::new(MOUNT), &own)
}

/// The limits of the groups that `own`, the text of `/proc/self/cgroup`, names.
fn limits_below(mount: &Path, own: &str) -> Vec<MemoryLimit> {
    let groups = own.lines().filter_map(parse_membership).flat_map(|(files, group)| {
        let root = if files.usage == VERSION_2.usage { mount.to_owned() } else { mount.join("memory") };
        groups_up_to(&root, group).into_iter().map(move |folder| (files, folder))
    });
    groups.filter_map(|(files, folder)| read_limit(files, &folder)).collect()
}

/// The version and the group in a line `hierarchy:controllers:group`, when that group has to do with memory.
fn parse_membership(line: &str) -> Option<(Files, &str)> {
    let mut fields = line.splitn(3, ':');
    let (hierarchy, controllers, group) = (fields.next()?, fields.next()?, fields.next()?);
    match (hierarchy, controllers) {
        ("0", "") => Some((VERSION_2, group)),
        _ => controllers.split(',').any(|controller| controller == "memory").then_some((VERSION_1, group)),
    }
}

/// The folders of a group and of all above it, the lowest first. A group outside of what is mounted (`/../other`)
/// is looked at as the root alone.
fn groups_up_to(root: &Path, group: &str) -> Vec<PathBuf> {
    let names: Option<Vec<_>> = Path::new(group)
        .components()
        .filter(|component| *component != Component::RootDir)
        .map(|component| if let Component::Normal(name) = component { Some(name) } else { None })
        .collect();
    let mut folders = vec![root.to_owned()];
    for name in names.unwrap_or_default() {
        let below = folders.last().map(|folder| folder.join(name));
        folders.extend(below);
    }
    folders.reverse();
    folders
}

fn read_limit(files: Files, folder: &Path) -> Option<MemoryLimit> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let limit_bytes = files.limits.iter().filter_map(|name| parse_bytes(&read(name)?)).min()?;
    let usage = read(files.usage).and_then(|text| parse_bytes(&text)).unwrap_or(0);
    let inactive = read("memory.stat").and_then(|text| parse_stat(&text, files.inactive_file)).unwrap_or(0);
    Some(MemoryLimit { limit_bytes, used_bytes: usage.saturating_sub(inactive) })
}

/// A number of bytes; `max`, which is no limit, is none.
fn parse_bytes(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// The value of a line `key value`.
fn parse_stat(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))?;
    parse_bytes(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    /// A mounted tree with these files.
    fn tree(files: &[(&str, &str)]) -> TempDir {
        let root = TempDir::new().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    fn limits(files: &[(&str, &str)], own: &str) -> Vec<(u64, u64)> {
        let limits = limits_below(tree(files).path(), own);
        limits.iter().map(|limit| (limit.limit_bytes, limit.used_bytes)).collect()
    }

    #[test]
    fn every_group_up_to_the_root_binds() {
        let files = [
            ("a/b/memory.max", "300\n"),
            ("a/b/memory.current", "100\n"),
            ("a/memory.max", "200\n"),
            ("a/memory.current", "150\n"),
            ("memory.max", "900\n"),
            ("memory.current", "10\n"),
        ];
        assert_eq!(limits(&files, "0::/a/b\n"), [(300, 100), (200, 150), (900, 10)]);
        assert_eq!(limits(&files, "0::/a\n"), [(200, 150), (900, 10)]);
    }

    #[test]
    fn file_pages_out_of_use_do_not_count_as_used() {
        let files = [
            ("memory.max", "1000"),
            ("memory.current", "700"),
            ("memory.stat", "anon 200\ninactive_file_x 9\ninactive_file 450\nactive_file 50\n"),
        ];
        assert_eq!(limits(&files, "0::/"), [(1000, 250)]);
    }

    #[test]
    fn the_lower_of_the_two_limits_of_version_2_binds() {
        let files = [("memory.max", "1000"), ("memory.high", "800"), ("memory.current", "1")];
        assert_eq!(limits(&files, "0::/"), [(800, 1)]);
        let files = [("memory.max", "1000"), ("memory.high", "max"), ("memory.current", "1")];
        assert_eq!(limits(&files, "0::/"), [(1000, 1)]);
    }

    #[test]
    fn version_1_is_read_from_its_memory_hierarchy() {
        let files = [
            ("memory/job/memory.limit_in_bytes", "500\n"),
            ("memory/job/memory.usage_in_bytes", "120\n"),
            ("memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file 20\n"),
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ];
        let own = "5:cpu,cpuacct:/elsewhere\n4:hugetlb,memory:/job\n1:name=systemd:/\n0::/\n";
        assert_eq!(limits(&files, own), [(500, 100), (9_223_372_036_854_771_712, 0)]);
    }

    #[test]
    fn what_is_missing_or_unclear_limits_nothing() {
        assert_eq!(limits(&[], "0::/a/b\n4:memory:/a\n"), []);
        assert_eq!(limits(&[("memory.max", "max\n"), ("memory.current", "5")], "0::/"), []);
        assert_eq!(limits(&[("memory.max", "many"), ("memory.current", "5")], "0::/"), []);
        assert_eq!(limits(&[("memory.max", "7")], ""), []);
    }

    #[test]
    fn a_group_outside_of_what_is_mounted_is_the_root() {
        let files = [("memory.max", "7"), ("other/memory.max", "3")];
        assert_eq!(limits(&files, "0::/../other"), [(7, 0)]);
    }

    #[test]
    fn a_group_with_a_colon_in_its_name_is_read_whole() {
        assert_eq!(limits(&[("a:b/memory.max", "7")], "0::/a:b"), [(7, 0)]);
    }
}
