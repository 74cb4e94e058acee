//! The simulated CUDA driver, through cudarc's bindings: what is called by its name there is here, with the same parameters.
#![expect(unsafe_code, reason = "calls the driver's functions as the bindings declare them")]

use cudarc::driver::sys;
use leasehold_tests::cuda::Simulator;
use std::ffi::{CStr, c_char};
use std::ptr::{null, null_mut};

/// Calls a function of the bindings, and answers its code as a number.
macro_rules! code {
    ($function:ident($($argument:expr),* $(,)?)) => {{
        // SAFETY: the simulator's function, which answers codes that the bindings list, with pointers to locals that
        // live, or null, which it refuses.
        let result = unsafe { sys::$function($($argument),*) };
        result as u32
    }};
}

/// The same, where it has to succeed.
macro_rules! call {
    ($($call:tt)*) => {
        assert_eq!(code!($($call)*), 0)
    };
}

const GRANULE: usize = 2 << 20;

fn start() -> Simulator {
    let simulator = Simulator::start();
    call!(cuInit(0));
    simulator
}

fn prop(device: i32) -> sys::CUmemAllocationProp {
    sys::CUmemAllocationProp {
        type_: sys::CUmemAllocationType_enum::CU_MEM_ALLOCATION_TYPE_PINNED,
        requestedHandleTypes: sys::CUmemAllocationHandleType_enum(0),
        location: location(device),
        win32HandleMetaData: null_mut(),
        allocFlags: sys::CUmemAllocationProp_st__bindgen_ty_1 {
            compressionType: 0,
            gpuDirectRDMACapable: 0,
            usage: 0,
            reserved: [0; 4],
        },
    }
}

fn location(id: i32) -> sys::CUmemLocation {
    sys::CUmemLocation { type_: sys::CUmemLocationType_enum::CU_MEM_LOCATION_TYPE_DEVICE, id }
}

#[test]
fn every_function_is_where_the_bindings_look_for_it() {
    let simulator = Simulator::start();
    let names = "cuInit cuDriverGetVersion cuDeviceGetCount cuDeviceGet cuDeviceGetName cuDeviceTotalMem_v2 \
        cuDeviceGetAttribute cuDeviceGetUuid_v2 cuDeviceCanAccessPeer cuDevicePrimaryCtxRetain \
        cuDevicePrimaryCtxRelease_v2 cuDevicePrimaryCtxReset_v2 cuDevicePrimaryCtxGetState cuCtxSetCurrent \
        cuCtxGetCurrent cuCtxGetDevice cuCtxGetId cuPointerGetAttribute cuCtxSynchronize cuCtxPushCurrent_v2 cuCtxPopCurrent_v2 cuMemGetInfo_v2 \
        cuMemGetAllocationGranularity cuMemAddressReserve cuMemAddressFree cuMemCreate cuMemRelease \
        cuMemRetainAllocationHandle cuMemMap cuMemUnmap cuMemSetAccess cuMemGetAccess cuMemAlloc_v2 cuMemFree_v2 \
        cuMemcpyHtoD_v2 cuMemcpyDtoH_v2 cuMemcpyDtoD_v2 cuMemsetD8_v2 cuMemcpyHtoDAsync_v2 cuMemcpyDtoHAsync_v2 \
        cuMemcpyDtoDAsync_v2 cuMemsetD8Async cuStreamCreate cuStreamSynchronize cuStreamDestroy_v2 \
        cuThreadExchangeStreamCaptureMode cuGetErrorName cuGetErrorString";
    // SAFETY: the simulator was opened, so a library of that name is there.
    let library = unsafe { sys::culib() };
    for name in names.split_whitespace() {
        // SAFETY: it is only looked up.
        assert!(unsafe { library.get::<*const ()>(name.as_bytes()) }.is_ok(), "{name}");
    }
    simulator.finish();
}

#[test]
fn memory_goes_round_through_the_bindings() {
    let simulator = start();
    let (mut context, mut base, mut handle, mut again) = (null_mut(), 0, 0, 0);
    call!(cuDevicePrimaryCtxRetain(&mut context, 0));
    call!(cuCtxPushCurrent_v2(context));
    call!(cuMemAddressReserve(&mut base, GRANULE, 0, 0, 0));
    call!(cuMemCreate(&mut handle, GRANULE, &prop(0), 0));
    call!(cuMemMap(base, GRANULE, 0, handle, 0));
    let access = sys::CUmemAccessDesc {
        location: location(0),
        flags: sys::CUmemAccess_flags_enum::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };
    call!(cuMemSetAccess(base, GRANULE, &access, 1));
    let mut flags = 0;
    call!(cuMemGetAccess(&mut flags, &location(0), base));
    assert_eq!(flags, 3);
    call!(cuMemRetainAllocationHandle(&mut again, base as *mut _));
    assert_eq!(again, handle);

    let mut read = [0_u8; 4];
    let under_way = || simulator.books().under_way;
    call!(cuMemsetD8_v2(base, 7, GRANULE));
    assert_eq!(under_way(), 1, "a fill is asynchronous though it names no stream");
    call!(cuMemcpyHtoD_v2(base + 1, [8_u8, 9].as_ptr().cast(), 2));
    assert_eq!(under_way(), 1, "the copy is staged, and waited for the fill");
    call!(cuMemcpyDtoD_v2(base + 64, base, 4));
    assert_eq!(under_way(), 3, "it reads and writes");
    call!(cuMemcpyDtoH_v2(read.as_mut_ptr().cast(), base + 64, 4));
    assert_eq!((read, under_way()), ([7, 8, 9, 7], 0), "the host has the bytes");
    assert_eq!(simulator.counts().handle_references, 2);

    call!(cuMemUnmap(base, GRANULE));
    call!(cuMemRelease(handle));
    call!(cuMemRelease(again));
    call!(cuMemAddressFree(base, GRANULE));
    let mut popped = null_mut();
    call!(cuCtxPopCurrent_v2(&mut popped));
    assert_eq!(popped, context);
    call!(cuDevicePrimaryCtxRelease_v2(0));
    simulator.finish();
}

#[test]
fn devices_contexts_and_streams_answer_through_the_bindings() {
    let simulator = start();
    let (mut flags, mut active, mut device, mut context, mut stream) = (9, 9, 9, null_mut(), null_mut());
    call!(cuDevicePrimaryCtxGetState(1, &mut flags, &mut active));
    assert_eq!((flags, active), (0, 0));
    call!(cuDevicePrimaryCtxRetain(&mut context, 1));
    call!(cuDevicePrimaryCtxGetState(1, &mut flags, &mut active));
    assert_eq!(active, 1);
    assert_eq!(code!(cuCtxGetDevice(&mut device)), 201, "none is current");
    call!(cuCtxSetCurrent(context));
    call!(cuCtxGetDevice(&mut device));
    assert_eq!(device, 1);

    let mut uuid = sys::CUuuid { bytes: [0; 16] };
    call!(cuDeviceGetUuid_v2(&mut uuid, 1));
    assert_eq!(uuid.bytes.map(|byte| byte as u8), *b"leasehold-sim-01");

    let mut mode = sys::CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_RELAXED;
    call!(cuThreadExchangeStreamCaptureMode(&mut mode));
    assert_eq!(mode, sys::CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_GLOBAL);

    call!(cuStreamCreate(&mut stream, 1));
    let (mut base, mut read) = (0, [9_u8; 4]);
    call!(cuMemAlloc_v2(&mut base, 8));
    call!(cuMemsetD8Async(base, 7, 8, stream));
    call!(cuMemcpyDtoDAsync_v2(base + 4, base, 2, stream));
    call!(cuMemcpyHtoDAsync_v2(base, [8_u8].as_ptr().cast(), 1, stream));
    call!(cuMemcpyDtoHAsync_v2(read.as_mut_ptr().cast(), base, 4, stream));
    call!(cuStreamSynchronize(stream));
    assert_eq!(read, [8, 7, 7, 7]);
    call!(cuMemFree_v2(base));
    call!(cuStreamSynchronize(null_mut()));
    call!(cuStreamDestroy_v2(stream));
    assert_eq!(simulator.counts().violations, 0);
    assert_eq!(code!(cuStreamSynchronize(stream)), 400, "it is dead");
    assert_eq!(simulator.books().violations.len(), 1);

    call!(cuCtxSetCurrent(null_mut()));
    call!(cuDevicePrimaryCtxRelease_v2(1));
    simulator.reset();
    simulator.finish();
}

#[test]
fn null_pointers_are_invalid_values() {
    let simulator = start();
    let current = simulator.enter(0);
    assert_eq!(code!(cuDriverGetVersion(null_mut())), 1);
    assert_eq!(code!(cuDeviceGetName(null_mut(), 8, 0)), 1);
    assert_eq!(code!(cuMemAddressReserve(null_mut(), GRANULE, 0, 0, 0)), 1);
    assert_eq!(code!(cuMemCreate(null_mut(), GRANULE, &prop(0), 0)), 1);
    assert_eq!(code!(cuMemCreate(&mut 0, GRANULE, null(), 0)), 1);
    assert_eq!(code!(cuMemSetAccess(0, GRANULE, null(), 1)), 1);
    assert_eq!(code!(cuMemcpyHtoD_v2(0, null(), 1)), 1);
    assert_eq!(code!(cuMemAlloc_v2(null_mut(), 1)), 1);
    assert_eq!(code!(cuStreamCreate(null_mut(), 0)), 1);
    drop(current);
    simulator.finish();
}

#[test]
fn a_code_has_its_name_before_initialising() {
    let simulator = Simulator::start();
    let mut name: *const c_char = null();
    call!(cuGetErrorName(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY, &mut name));
    // SAFETY: the simulator answered a string that lives for ever.
    assert_eq!(unsafe { CStr::from_ptr(name) }, c"CUDA_ERROR_OUT_OF_MEMORY");
    assert_eq!(code!(cuDeviceGetCount(&mut 0)), 3);
    simulator.finish();
}
