//! What can be done, and how it is drawn.

use super::{CAPACITY, LIMIT, PAGE, SLOTS};
use crate::fault::{Call, Strikes};
use leasehold::GrowthPolicy;
use proptest::prelude::*;

/// One operation. Slots are of sets, of allocations, or of prefixes, as the name says.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "each is named as the library names it")]
pub enum Operation {
    New { slot: usize, planes: usize, policy: GrowthPolicy },
    Grow { slot: usize, len: u64 },
    Shrink { slot: usize, len: u64 },
    Write { slot: usize, plane: usize, at: u64, mark: u8 },
    Clear { slot: usize },
    Drop { slot: usize },
    Close { slot: usize },
    Allocate { slot: usize, bytes: u64 },
    Release { slot: usize },
    CreatePrefix { slot: usize, planes: usize, granules: u64 },
    WritePrefix { slot: usize, plane: usize, at: u64, mark: u8 },
    Seal { slot: usize },
    Share { from: usize, to: usize },
    Map { slot: usize, parts: Vec<Piece> },
    DropPrefix { slot: usize },
    ClosePrefix { slot: usize },
    Serve { slot: usize, blocks: Vec<u8>, rest: Rest },
    Evict { bytes: u64 },
    Trim { bytes: u64 },
    Fail { call: Call, nth: u64, strikes: Strikes, half: Half },
    Heal,
    Reap,
    SetLimit { bytes: u64 },
}

/// A part of the prefix in a slot; figures beyond it wrap round.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// The prefix.
    pub slot: usize,
    /// The first granule.
    pub first: usize,
    /// How many; 0 for the whole prefix.
    pub granules: usize,
}

/// What becomes of the blocks that a cache does not know.
#[derive(Clone, Copy, Debug)]
pub enum Rest {
    /// They are not made.
    LeftOut,
    /// A prefix of them is made and added.
    Made,
}

/// How much a failing call does.
#[derive(Clone, Copy, Debug)]
pub enum Half {
    /// It refuses.
    Nothing,
    /// Half of what was asked for, where it can.
    Half,
}

fn policies() -> impl Strategy<Value = GrowthPolicy> {
    prop_oneof![Just(GrowthPolicy::Exact), (1..12 * PAGE).prop_map(GrowthPolicy::Step), Just(GrowthPolicy::Geometric),]
}

/// Lengths around the edges of granules, and now and then past the capacity.
fn lengths() -> impl Strategy<Value = u64> {
    (0..=CAPACITY / PAGE + 1, 0..3_u64).prop_map(|(granules, off)| (granules * PAGE + off).saturating_sub(1))
}

/// What an engine does that shares nothing.
pub fn sound() -> impl Strategy<Value = Operation> {
    let slot = 0..SLOTS;
    prop_oneof![
        4 => (slot.clone(), 1..4_usize, policies())
            .prop_map(|(slot, planes, policy)| Operation::New { slot, planes, policy }),
        12 => (slot.clone(), lengths()).prop_map(|(slot, len)| Operation::Grow { slot, len }),
        8 => (slot.clone(), lengths()).prop_map(|(slot, len)| Operation::Shrink { slot, len }),
        12 => (slot.clone(), 0..4_usize, 0..CAPACITY, any::<u8>())
            .prop_map(|(slot, plane, at, mark)| Operation::Write { slot, plane, at, mark }),
        1 => slot.clone().prop_map(|slot| Operation::Clear { slot }),
        1 => slot.clone().prop_map(|slot| Operation::Drop { slot }),
        1 => slot.clone().prop_map(|slot| Operation::Close { slot }),
        2 => (slot.clone(), 1..8 * PAGE).prop_map(|(slot, bytes)| Operation::Allocate { slot, bytes }),
        1 => slot.prop_map(|slot| Operation::Release { slot }),
        1 => (0..2 * LIMIT).prop_map(|bytes| Operation::SetLimit { bytes }),
        1 => Just(Operation::Reap),
    ]
}

/// The number of planes: mostly as many as the cache has, so that a prefix can be added to it.
fn planes() -> impl Strategy<Value = usize> {
    prop_oneof![7 => Just(super::CACHE_PLANES), 1 => 1..4_usize]
}

fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    let piece = (0..SLOTS, 0..4_usize, 0..4_usize);
    let piece = piece.prop_map(|(slot, first, granules)| Piece { slot, first, granules });
    prop_oneof![2 => prop::collection::vec(piece.clone(), 1), 1 => prop::collection::vec(piece, 0..9)]
}

fn maps(slot: usize) -> impl Strategy<Value = Operation> {
    prop_oneof![
        1 => pieces().prop_map(move |parts| Operation::Map { slot, parts }),
        1 => (prop::collection::vec(0..3_u8, 1..5), prop_oneof![1 => Just(Rest::LeftOut), 3 => Just(Rest::Made)])
            .prop_map(move |(blocks, rest)| Operation::Serve { slot, blocks, rest }),
    ]
}

fn creates(slot: usize) -> impl Strategy<Value = Operation> {
    (planes(), 1..5_u64).prop_map(move |(planes, granules)| Operation::CreatePrefix { slot, planes, granules })
}

/// What is done with prefixes and the cache, one at a time.
fn shared(slot: usize) -> impl Strategy<Value = Operation> {
    prop_oneof![
        2 => (planes(), policies()).prop_map(move |(planes, policy)| Operation::New { slot, planes, policy }),
        2 => creates(slot),
        4 => (0..4_usize, 0..4 * PAGE, any::<u8>())
            .prop_map(move |(plane, at, mark)| Operation::WritePrefix { slot, plane, at, mark }),
        2 => Just(Operation::Seal { slot }),
        1 => (0..SLOTS).prop_map(move |to| Operation::Share { from: slot, to }),
        6 => maps(slot),
        3 => Just(Operation::Clear { slot }),
        1 => Just(Operation::DropPrefix { slot }),
        1 => Just(Operation::ClosePrefix { slot }),
        1 => (0..LIMIT).prop_map(|bytes| Operation::Evict { bytes }),
        1 => prop_oneof![0..LIMIT, Just(u64::MAX)].prop_map(|bytes| Operation::Trim { bytes }),
    ]
}

/// What an engine does that shares; now and then what makes sense only in this order.
pub fn sharing() -> impl Strategy<Value = Vec<Operation>> {
    prop_oneof![
        8 => sound().prop_map(|operation| vec![operation]),
        8 => (0..SLOTS).prop_flat_map(shared).prop_map(|operation| vec![operation]),
        4 => (0..SLOTS).prop_flat_map(sealed),
        4 => (0..SLOTS).prop_flat_map(mapped),
    ]
}

fn sealed(slot: usize) -> impl Strategy<Value = Vec<Operation>> {
    (creates(slot), 0..4_usize, any::<u8>()).prop_map(move |(create, plane, mark)| {
        vec![create, Operation::WritePrefix { slot, plane, at: 0, mark }, Operation::Seal { slot }]
    })
}

fn mapped(slot: usize) -> impl Strategy<Value = Vec<Operation>> {
    let new = (planes(), policies()).prop_map(move |(planes, policy)| Operation::New { slot, planes, policy });
    let empty = prop_oneof![Just(Operation::Clear { slot }), new];
    (empty, maps(slot), lengths(), 0..4_usize, any::<u8>()).prop_map(move |(empty, map, len, plane, mark)| {
        let write = Operation::Write { slot, plane, at: 0, mark };
        vec![empty, map, Operation::Grow { slot, len }, write]
    })
}

fn fails(call: impl Strategy<Value = Call>) -> impl Strategy<Value = Operation> {
    let strikes = prop_oneof![3 => Just(Strikes::Once), 1 => Just(Strikes::Always)];
    let half = prop_oneof![Just(Half::Nothing), Just(Half::Half)];
    (call, 0..2_u64, strikes, half).prop_map(|(call, nth, strikes, half)| Operation::Fail { call, nth, strikes, half })
}

/// The same while the backing fails now and then.
pub fn broken(operations: impl Strategy<Value = Operation>) -> impl Strategy<Value = Operation> {
    let calls = prop_oneof![Just(Call::Decommit), prop::sample::select(Call::FALLIBLE.as_slice())];
    prop_oneof![14 => operations, 1 => fails(calls), 1 => Just(Operation::Heal)]
}

/// The same with operations that share; now and then a fault is planned right before the call that it is to strike.
pub fn broken_sharing() -> impl Strategy<Value = Vec<Operation>> {
    let calls = Call::FALLIBLE.into_iter().chain(Call::SHARING).chain([Call::Trim]);
    let some = prop::sample::select(calls.collect::<Vec<_>>());
    prop_oneof![
        14 => sharing(),
        1 => fails(some).prop_map(|fail| vec![fail]),
        1 => Just(vec![Operation::Heal]),
        2 => (0..SLOTS).prop_flat_map(failing),
    ]
}

/// A call of sharing that fails where it matters.
fn failing(slot: usize) -> impl Strategy<Value = Vec<Operation>> {
    let calls = [Call::MapPrefix, Call::Unmap, Call::Release, Call::ReleasePrefix, Call::Seal, Call::Decommit];
    let fail = fails(prop::sample::select(calls.to_vec()));
    (mapped(slot), sealed(slot), fail, any::<bool>()).prop_map(move |(mapped, sealed, fail, heals)| {
        let Operation::Fail { call, .. } = fail else { return Vec::new() };
        let (mut before, after) = match call {
            Call::MapPrefix => (mapped[..1].to_vec(), mapped[1..].to_vec()),
            Call::Unmap | Call::Decommit => (mapped, vec![Operation::Clear { slot }]),
            Call::Release => (mapped, vec![Operation::Close { slot }, Operation::Evict { bytes: LIMIT }]),
            Call::ReleasePrefix => (sealed, vec![Operation::ClosePrefix { slot }, Operation::Evict { bytes: PAGE }]),
            _ => (sealed[..2].to_vec(), vec![Operation::Seal { slot }]),
        };
        before.push(fail);
        before.extend(after);
        before.extend(heals.then_some(Operation::Heal));
        before
    })
}
