//! The books of a region against a plain model.

use super::*;
use proptest::prelude::*;

const HOLDER: HolderId = HolderId::new(7);
const GRANULES: u64 = 24;

#[derive(Clone, Debug)]
enum Step {
    Private(Range<u64>),
    Residue(Range<u64>),
    Part(Range<u64>),
    Leave(Range<u64>),
    LeavePrivate(Range<u64>),
    Remove(Range<u64>),
}

fn range() -> impl Strategy<Value = Range<u64>> {
    (0..GRANULES, 1..6_u64).prop_map(|(start, granules)| start..(start + granules).min(GRANULES))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => range().prop_map(Step::Private),
        1 => range().prop_map(Step::Residue),
        1 => range().prop_map(Step::Part),
        1 => range().prop_map(Step::Leave),
        1 => range().prop_map(Step::LeavePrivate),
        3 => range().prop_map(Step::Remove),
    ]
}

/// A part whose memory has a handle for each granule, named as the granule that it is mapped at.
fn part(range: &Range<u64>) -> Part<u64> {
    let memory = PrefixMemory { id: PrefixId::new(1), holder: HOLDER, handles: range.clone().collect() };
    Part { memory: Arc::new(memory), source: 0..range.end - range.start }
}

/// What is at a granule, in the model.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Is {
    Private,
    Residue,
    Prefix,
    Former,
}

type Model = BTreeMap<u64, Is>;

fn fill(model: &mut Model, range: &Range<u64>, is: Is) {
    model.extend(range.clone().map(|granule| (granule, is)));
}

fn where_is(model: &Model, kinds: &[Is]) -> Vec<u64> {
    model.iter().filter(|(_, is)| kinds.contains(is)).map(|(granule, _)| *granule).collect()
}

fn count(model: &Model, kinds: &[Is]) -> u64 {
    u64::try_from(where_is(model, kinds).len()).unwrap()
}

/// The granules of the region that parts are mapped at, each found by its handle too.
fn granules_of_parts(contents: &Contents<u64>) -> Vec<u64> {
    let mut granules = Vec::new();
    for (start, Part { memory, source }) in &contents.parts {
        for (granule, handle) in (*start..).zip(source.clone()) {
            assert_eq!(memory.handles[usize::try_from(handle).unwrap()], granule);
            granules.push(granule);
        }
    }
    granules
}

/// Does a step to both. What is inserted where something is, no caller does.
fn apply(contents: &mut Contents<u64>, model: &mut Model, step: Step) {
    match step {
        Step::Private(range) | Step::Residue(range) | Step::Part(range) if model.range(range.clone()).count() > 0 => {}
        Step::Private(range) => {
            contents.insert_private(range.start, range.clone());
            fill(model, &range, Is::Private);
        }
        Step::Residue(range) => {
            contents.insert_residue(range.start, range.clone());
            fill(model, &range, Is::Residue);
        }
        Step::Part(range) => {
            contents.insert_part(range.start, part(&range));
            fill(model, &range, Is::Prefix);
        }
        Step::Leave(range) => {
            contents.leave_prefixes(&range);
            let prefixes = model.range_mut(range).filter(|(_, is)| **is == Is::Prefix);
            prefixes.for_each(|(_, is)| *is = Is::Former);
        }
        Step::LeavePrivate(range) => {
            contents.leave_private(&range);
            let private = model.range_mut(range).filter(|(_, is)| **is == Is::Private);
            private.for_each(|(_, is)| *is = Is::Residue);
        }
        Step::Remove(range) => {
            contents.remove_parts(&range);
            let removed = model.extract_if(range.clone(), |_, _| true).filter_map(|(granule, is)| match is {
                Is::Private => Some((granule, HOLDER)),
                Is::Residue => Some((granule, HolderId::NOBODY)),
                Is::Prefix | Is::Former => None,
            });
            let removed: Vec<_> = removed.collect();
            assert_eq!(contents.remove(&range, HOLDER), removed);
        }
    }
}

proptest! {
    #[test]
    fn the_books_agree_with_a_model(steps in prop::collection::vec(step(), 0..60)) {
        let (mut contents, mut model) = (Contents::default(), Model::new());
        for step in steps {
            apply(&mut contents, &mut model, step);
            prop_assert_eq!(contents.private_granules(), count(&model, &[Is::Private]));
            prop_assert_eq!(contents.left, count(&model, &[Is::Residue, Is::Former]));
            prop_assert_eq!(contents.owned_granules(), count(&model, &[Is::Private, Is::Residue]));
            let granules = |runs: Vec<Range<u64>>| runs.into_iter().flatten().collect::<Vec<_>>();
            prop_assert_eq!(granules(contents.runs_left()), where_is(&model, &[Is::Residue, Is::Former]));
            prop_assert_eq!(granules_of_parts(&contents), where_is(&model, &[Is::Prefix, Is::Former]));
            prop_assert_eq!(granules(contents.runs()), model.keys().copied().collect::<Vec<_>>());
            for start in 0..GRANULES {
                let range = start..start + 3;
                let all = |kinds: &[Is]| model.range(range.clone()).all(|(_, is)| kinds.contains(is));
                let is_full = model.range(range.clone()).count() == 3;
                prop_assert_eq!(contents.is_private(&range), is_full && all(&[Is::Private]));
                prop_assert_eq!(contents.is_there(&range), is_full && all(&[Is::Private, Is::Prefix]));
                prop_assert_eq!(contents.is_free(&range), all(&[Is::Residue, Is::Former]));
            }
        }
    }
}

#[test]
fn a_part_of_which_the_middle_goes_is_two_and_holds_its_memory_until_both_are_gone() {
    let mut contents = Contents::default();
    contents.insert_part(4, part(&(4..10)));
    let taken = [contents.remove_parts(&(6..7)), contents.remove_parts(&(0..6))];
    assert_eq!(taken.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1]);
    let left: Vec<_> = contents.parts.iter().map(|(start, part)| (*start, part.source.clone())).collect();
    assert_eq!(left, [(7, 3..6)]);
    drop(taken);
    let last = contents.remove_parts(&(7..10)).into_iter().filter_map(Arc::into_inner).next().unwrap();
    assert_eq!(last.handles, [4, 5, 6, 7, 8, 9]);
}

#[test]
fn handles_that_are_shared_leave_their_granules_mapped() {
    let mut contents = Contents::default();
    contents.insert_private(0, 0..3);
    assert_eq!(contents.take_handles(), [0, 1, 2]);
    assert_eq!((contents.private_granules(), contents.runs().first()), (3, Some(&(0..3))));
    assert_eq!(contents.remove(&(0..3), HOLDER), []);
}
