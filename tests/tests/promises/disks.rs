//! Each disk has a domain of its own, whose number the host decides; two backings of one device share its domain.

use leasehold::{AllocationSpec, Domain, ErrorKind, Host};
use leasehold_plugin_api::{
    AllocateRequest, Allocation, Backing, BackingError, Description, DeviceKey, ErrorKind as BackingErrorKind,
    HostServices, MemoryRole, ReleaseOutcome, ReleaseTarget,
};
use leasehold_tests::plugins::{self, Registry};
use std::sync::mpsc;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// An entry for the fixture that is on a disk or device, with these options.
fn placed(registry: Registry, library: &str, name: &str, options: &str) -> Registry {
    registry.backing(name, library, &format!("backing = \"placed\"\n[backing.options]\n{options}"))
}

fn disk(registry: Registry, library: &str, name: &str, options: &str) -> Registry {
    placed(registry, library, name, &format!("tier = \"disk\"\n{options}"))
}

fn limit(host: &Host, domain: Domain) -> u64 {
    host.snapshot().domain(domain).expect("has books").limit_bytes
}

fn used(host: &Host, domain: Domain) -> u64 {
    host.snapshot().domain(domain).expect("has books").used_bytes
}

fn domain_of(host: &Host, name: &str) -> Domain {
    host.backing(name).expect("is ready").domain()
}

fn reason(host: &Host, name: &str) -> String {
    let report = host.backings().into_iter().find(|report| report.name == name).expect("is reported");
    report.state.reason().expect("is not ready").to_owned()
}

fn finding(host: &Host, name: &str) -> String {
    let report = host.backings().into_iter().find(|report| report.name == name).expect("is reported");
    report.stages.last().expect("has stages").finding.clone()
}

#[test]
fn two_disks_have_two_budgets_each_of_its_own_size() {
    for (door, library) in plugins::doors("leasehold_rogue") {
        let registry = disk(Registry::new(), &library, "small", "total_bytes = 1048576");
        let host = disk(registry, &library, "large", "total_bytes = 67108864").host();
        assert_eq!(
            [domain_of(&host, "small"), domain_of(&host, "large")],
            [Domain::Disk(0), Domain::Disk(1)],
            "{door}"
        );
        assert!(limit(&host, Domain::Disk(0)) < MIB, "{door}");
        assert!(limit(&host, Domain::Disk(1)) > 32 * MIB, "{door}");
        let large = host.backing("large").expect("is ready");
        assert_eq!(large.description().device.to_string(), "disk:1", "{door}");
        let held = host.allocate(&large, &AllocationSpec::new(16 * MIB)).expect("fits on the large one");
        assert_eq!([used(&host, Domain::Disk(0)), used(&host, Domain::Disk(1))], [0, 16 * MIB], "{door}");
        let small = host.backing("small").expect("is ready");
        let error = host.allocate(&small, &AllocationSpec::new(2 * MIB)).expect_err("the small one is smaller");
        assert_eq!(error.kind(), ErrorKind::TierExhausted, "{door}: {error}");
        assert!(error.to_string().contains("budget.\"disk:0\""), "{door}: {error}");
        drop(held);
        assert_eq!(used(&host, Domain::Disk(1)), 0, "{door}");
    }
}

#[test]
fn the_option_ordinal_names_the_disk_of_an_entry() {
    let library = plugins::library("leasehold_rogue");
    let library = plugins::text(&library);
    let registry = disk(Registry::new(), &library, "first", "ordinal = 7\ntotal_bytes = 1048576");
    let registry = disk(registry, &library, "second", "total_bytes = 1048576");
    let registry = disk(registry, &library, "third", "total_bytes = 1048576");
    let host = disk(registry, &library, "fourth", "ordinal = 5\ntotal_bytes = 1048576").host();
    let domains = ["first", "second", "third", "fourth"].map(|name| domain_of(&host, name));
    assert_eq!(domains, [7, 1, 2, 5].map(Domain::Disk));
}

#[test]
fn entries_with_one_ordinal_share_one_disk() {
    let library = plugins::text(&plugins::library("leasehold_rogue"));
    let registry = disk(Registry::new(), &library, "first", "ordinal = 4\ntotal_bytes = 8388608");
    let host = disk(registry, &library, "second", "ordinal = 4\ntotal_bytes = 8388608").host();
    assert_eq!(domain_of(&host, "first"), domain_of(&host, "second"));
    let first = host.backing("first").expect("is ready");
    let _held = host.allocate(&first, &AllocationSpec::new(5 * MIB)).expect("fits");
    let second = host.backing("second").expect("is ready");
    let error = host.allocate(&second, &AllocationSpec::new(5 * MIB)).expect_err("the disk is full");
    assert_eq!(error.kind(), ErrorKind::TierExhausted, "{error}");
}

#[test]
fn a_number_that_a_disk_has_by_its_place_is_not_shared() {
    let library = plugins::text(&plugins::library("leasehold_rogue"));
    let registry = disk(Registry::new(), &library, "first", "total_bytes = 1048576");
    let host = disk(registry, &library, "second", "ordinal = 0\ntotal_bytes = 8388608").host();
    assert_eq!(
        reason(&host, "second"),
        "option \"ordinal\" names disk:0, which \"first\" has by its place among the disks; write a number that is free, or \
         the same one in the options of both to share its budget"
    );
    assert!(limit(&host, domain_of(&host, "first")) < MIB, "its size is not the first's");
}

#[test]
fn the_option_ordinal_of_a_device_numbers_no_disk() {
    let library = plugins::text(&plugins::library("leasehold_rogue"));
    let registry = disk(Registry::new(), &library, "first", "total_bytes = 1048576");
    let registry = placed(registry, &library, "device", "tier = \"device\"\nordinal = 1\ntotal_bytes = 1048576");
    let host = disk(registry, &library, "second", "total_bytes = 1048576").host();
    let domains = ["first", "device", "second"].map(|name| domain_of(&host, name));
    assert_eq!(domains, [Domain::Disk(0), Domain::Device(1), Domain::Disk(1)]);
}

#[test]
fn an_ordinal_that_is_no_number_of_a_disk_is_refused() {
    let library = plugins::text(&plugins::library("leasehold_rogue"));
    for wrong in ["-1", "4294967296"] {
        let host = disk(Registry::new(), &library, "wrong", &format!("ordinal = {wrong}")).host();
        assert_eq!(
            reason(&host, "wrong"),
            format!(
                "option \"ordinal\" of a disk not read: seen {wrong}, wanted a number from 0 to 4294967295; correct \
                 [backing.options]"
            )
        );
    }
}

/// A backing that the program brings, at the given place, with the services that it got.
struct Brought {
    device: DeviceKey,
    total_bytes: u64,
}

impl Backing for Brought {
    fn describe(&self) -> Description {
        Description::new(self.device, "brought").with_total_bytes(self.total_bytes)
    }

    fn allocate(&self, _request: &AllocateRequest) -> Result<Allocation, BackingError> {
        Err(BackingError::unsupported("allocate"))
    }

    fn release(&self, _target: ReleaseTarget) -> ReleaseOutcome {
        ReleaseOutcome::Failed(BackingError::unsupported("release"))
    }
}

type Created = Result<Box<dyn Backing>, BackingError>;

fn brought(device: DeviceKey, total_bytes: u64) -> impl FnOnce(HostServices) -> Created {
    move |_| Ok(Box::new(Brought { device, total_bytes }))
}

#[test]
fn disks_that_the_program_brings_come_after_those_of_the_file() {
    let library = plugins::text(&plugins::library("leasehold_rogue"));
    let registry = disk(Registry::new(), &library, "file", "total_bytes = 1048576");
    let builder = registry.builder().limit(Domain::Disk(2), 3 * MIB);
    let builder = builder.with_backing("one", brought(DeviceKey::DISK, 16 * MIB));
    let host = builder.with_backing("two", brought(DeviceKey::DISK, 16 * MIB)).survey().expect("is made");
    let domains = ["file", "one", "two"].map(|name| domain_of(&host, name));
    assert_eq!(domains, [0, 1, 2].map(Domain::Disk));
    assert_eq!((limit(&host, Domain::Disk(1)), limit(&host, Domain::Disk(2))), (15 * MIB, 3 * MIB));
}

#[test]
fn a_budget_of_a_disk_is_read_by_its_number() {
    let library = plugins::text(&plugins::library("leasehold_rogue"));
    // Appended to [budget], which is the last section of a registry without backings.
    let registry = disk(
        Registry::new().budget("disk:0", "\"25%\"").budget("disk:1", "4096"),
        &library,
        "a",
        "total_bytes = 4194304",
    );
    let host = disk(registry, &library, "b", "total_bytes = 4194304").host();
    assert_eq!((limit(&host, Domain::Disk(0)), limit(&host, Domain::Disk(1))), (MIB, 4096));
}

#[test]
fn a_backing_has_the_books_of_one_domain() {
    let (sender, receiver) = mpsc::channel();
    let create = move |services: HostServices| -> Created {
        services.authority(Domain::Device(0))?;
        let others = (1..200).map(|ordinal| services.authority(Domain::Device(ordinal)));
        sender.send(others.collect::<Vec<_>>()).expect("the test waits");
        sender.send(vec![services.authority(Domain::Host)]).expect("the test waits");
        Ok(Box::new(Brought { device: DeviceKey::device(0), total_bytes: MIB }))
    };
    let host = Host::builder().limit(Domain::Host, MIB).with_backing("greedy", create).load().expect("is made");
    for refused in receiver.iter().flatten() {
        let error = refused.expect_err("it has the books of device:0");
        assert_eq!(error.kind(), BackingErrorKind::InvalidRequest, "{error}");
        assert!(error.message().contains("this backing has those of device:0"), "{error}");
    }
    let domains: Vec<_> = host.snapshot().domains.iter().map(|books| books.domain).collect();
    assert_eq!(domains, [Domain::Host, Domain::Device(0)]);
}

#[test]
fn a_backing_charging_an_undescribed_domain_is_rejected() {
    let create = |services: HostServices| -> Created {
        services.charge(Domain::Host, KIB, MemoryRole::Weights)?;
        Ok(Box::new(Brought { device: DeviceKey::device(1), total_bytes: MIB }))
    };
    let host = Host::builder().limit(Domain::Host, MIB).with_backing("other", create).load().expect("is made");
    assert_eq!(
        reason(&host, "other"),
        "it asked for the books of host and describes device:1: a backing has one domain, that of the device it \
         describes; report this to the plugin's author"
    );
    assert_eq!(used(&host, Domain::Host), 0);
    assert!(host.snapshot().domain(Domain::Device(1)).is_none());
}

#[test]
fn a_rejected_disk_takes_no_place() {
    let create = |services: HostServices| -> Created {
        services.authority(Domain::Host)?;
        Ok(Box::new(Brought { device: DeviceKey::DISK, total_bytes: MIB }))
    };
    let builder = Host::builder().limit(Domain::Host, MIB).with_backing("rejected", create);
    let host = builder.with_backing("disk", brought(DeviceKey::DISK, 16 * MIB)).load().expect("is made");
    assert!(reason(&host, "rejected").contains("it asked for the books of host"), "{}", reason(&host, "rejected"));
    assert_eq!(domain_of(&host, "disk"), Domain::Disk(0));
}

#[test]
fn the_largest_size_of_a_device_decides_its_budget_and_is_said() {
    let device = DeviceKey::device(0);
    for sizes in [[MIB, 16 * MIB], [16 * MIB, MIB]] {
        let builder = Host::builder().with_backing("first", brought(device, sizes[0]));
        let host = builder.with_backing("second", brought(device, sizes[1])).load().expect("is made");
        assert_eq!(limit(&host, Domain::Device(0)), 15 * MIB);
        let words = format!(
            "it describes device:0 with {} bytes, \"first\" with {}: the larger size counts",
            sizes[1], sizes[0]
        );
        assert!(finding(&host, "second").contains(&words), "{}", finding(&host, "second"));
        assert!(!finding(&host, "first").contains("counts"));
    }
    let builder = Host::builder().limit(Domain::Device(0), KIB).with_backing("first", brought(device, MIB));
    let host = builder.with_backing("second", brought(device, 16 * MIB)).load().expect("is made");
    assert_eq!(limit(&host, Domain::Device(0)), KIB, "bytes are taken as they are");
}
