//! Memory and address space run out, and prefixes of others are offered.

use super::start;
use super::world::UNIT;
use crate::setup::{LIMIT, NAMES, host, live, options, used};
use leasehold::{AllocationSpec, BufferSpec, Domain, ErrorKind, Host, PrefixSpec};
use leasehold_plugin_api::BackingError;
use leasehold_tests::cuda::Counts;
use leasehold_tests::fault::creator;

/// Seen elsewhere: the reservations of many buffers passed what there is of addresses, and the error said "out of memory"
/// while memory was free.
#[test]
fn where_address_space_runs_out_the_error_says_so() {
    let simulator = start();
    for name in NAMES {
        let (host, backing) = host(name, &[]);
        simulator.set("address_space", 7 * UNIT);
        for code in [1, 304] {
            simulator.set("address_refusal", code);
            let error = host.buffer_set(&backing, 4, &BufferSpec::new(2 * UNIT)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::AddressSpaceExhausted, "{error}");
        }
        simulator.set("address_refusal", 2);
        let error = host.buffer_set(&backing, 4, &BufferSpec::new(2 * UNIT)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddressSpaceExhausted, "{error}");
        assert!(error.to_string().contains("no address space for 8192 bytes"), "{error}");
        let error = host.allocate(&backing, &AllocationSpec::new(8 * UNIT)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddressSpaceExhausted, "{error}");
        if name == "cuda-pool" {
            let error = host.prefix(&backing, &PrefixSpec::new(8 * UNIT)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::AddressSpaceExhausted, "{error}");
        }
        assert!(!error.is_exhausted(), "giving memory up would not help");
        assert_eq!((used(&host), live(&simulator)), (0, Counts::default()), "{name}");
        simulator.set("address_space", 8 * UNIT);
        drop(host.buffer_set(&backing, 4, &BufferSpec::new(2 * UNIT)).unwrap());
    }
    simulator.finish();
}

/// Seen elsewhere: the driver's "out of memory" was reported as an invalid request, so that nobody tried to make room.
#[test]
fn where_memory_of_the_device_runs_out_room_can_be_made() {
    let simulator = start();
    for name in NAMES {
        let (host, backing) = host(name, &[]);
        simulator.limit_memory(0, 11 * UNIT);
        let mut set = host.buffer_set(&backing, 4, &BufferSpec::new(16 * UNIT)).unwrap();
        let mut other = host.buffer_set(&backing, 1, &BufferSpec::new(16 * UNIT)).unwrap();
        set.grow_to(UNIT).unwrap();
        other.grow_to(4 * UNIT).unwrap();
        let before = (used(&host), live(&simulator), set.committed());
        let error = set.grow_to(2 * UNIT).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
        assert!(error.is_exhausted() && error.to_string().contains("cuMemCreate"), "{error}");
        assert_eq!(error.backing_error().and_then(BackingError::native_code), Some(2));
        assert_eq!((used(&host), live(&simulator), set.committed()), before, "{name}");
        other.shrink_to(0).unwrap();
        set.grow_to(2 * UNIT).unwrap();
        drop((set, other, host, backing));
        simulator.limit_memory(0, LIMIT);
    }
    simulator.finish();
}

/// Seen elsewhere: a prefix from another device, whose cost was reported as zero.
#[test]
fn a_prefix_of_another_pool_or_device_is_refused_before_the_driver_is_asked() {
    let simulator = start();
    let create = |device| creator("cuda-pool", options(&[("device", device)]));
    let builder = Host::builder().limit(Domain::Device(0), LIMIT).limit(Domain::Device(1), LIMIT);
    let builder = builder.with_backing("one", create("0")).with_backing("same", create("0"));
    let host = builder.with_backing("next", create("1")).load().unwrap();
    let backing = |name| host.backing(name).unwrap();
    let prefix = host.prefix(&backing("one"), &PrefixSpec::new(UNIT).planes(2)).unwrap().seal().unwrap();
    for name in ["same", "next"] {
        let mut set = host.buffer_set(&backing(name), 2, &BufferSpec::new(4 * UNIT)).unwrap();
        let before = simulator.books().calls;
        let error = set.mapping_cost(&[prefix.whole()]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ForeignPrefix, "{error}");
        let error = set.map_prefix(&prefix).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ForeignPrefix, "{error}");
        assert_eq!(simulator.books().calls, before, "{name}");
        assert_eq!((set.shared(), prefix.holders()), (0, 1), "{name}");
        set.grow_to(UNIT).unwrap();
    }
    drop((prefix, host));
    simulator.finish();
}
