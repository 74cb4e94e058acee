//! Registrations that begin and end, also while somebody is asked.

use crate::{MIB, PAGE, faulty, governor, lease, miser};
use leasehold::{BufferSpec, Domain, Host, Reclaim, ReclaimOrder, Shortfall};
use leasehold_tests::asked::{Answer, Asked};
use leasehold_tests::fault::Books;
use std::sync::{Arc, Mutex};

#[test]
fn dropping_a_registration_ends_it() {
    let governor = governor(10);
    let asked = Asked::default();
    let _all = lease(&governor, 10).unwrap();
    let reclaimer: Arc<dyn Reclaim> = {
        let asked = asked.clone();
        Arc::new(Answer(move |shortfall: &Shortfall| {
            asked.note("asked", shortfall);
            0
        }))
    };
    let twice = || governor.on_pressure(Domain::Host, ReclaimOrder::new(), Arc::clone(&reclaimer)).unwrap();
    let (one, other) = (twice(), twice());
    for (registered, asks) in [(Some(one), 2), (Some(other), 1), (None, 0)] {
        lease(&governor, 1).unwrap_err();
        assert_eq!(asked.take().len(), asks, "whoever else holds the reclaimer");
        drop(registered);
    }
}

#[test]
fn an_answer_may_register_somebody_and_end_the_registration_of_somebody() {
    let governor = governor(10);
    let asked = Asked::default();
    let _all = lease(&governor, 10).unwrap();
    let later = Arc::new(Mutex::new(None));
    let (books, noting, ending) = (governor.clone(), asked.clone(), Arc::clone(&later));
    let _first = asked.register(&governor, "first", ReclaimOrder::new().priority(1), move |_| {
        let before = ending.lock().unwrap().replace(miser(&noting, &books, "new", ReclaimOrder::new()));
        drop(before);
        0
    });
    *later.lock().unwrap() = Some(miser(&asked, &governor, "old", ReclaimOrder::new()));
    lease(&governor, 1).unwrap_err();
    assert_eq!(asked.names(), ["first"], "the old one has ended, the new one came after the request");
    let _held = later.lock().unwrap().take();
    lease(&governor, 1).unwrap_err();
    assert_eq!(asked.names(), ["first", "new"]);
}

#[test]
fn a_reclaimer_that_holds_its_host_keeps_nothing_alive_once_its_registration_is_gone() {
    struct HoldsItsHost(Arc<Host>, #[expect(dead_code, reason = "is only held")] Arc<()>);
    impl Reclaim for HoldsItsHost {
        fn reclaim(&self, _shortfall: &Shortfall) -> u64 {
            self.0.snapshot().domains.len().try_into().unwrap()
        }
    }
    let alive = Arc::new(());
    let (_, host, backing) = faulty(PAGE, Books::OfItsHost);
    let host = Arc::new(host);
    let reclaimer = Arc::new(HoldsItsHost(Arc::clone(&host), Arc::clone(&alive)));
    let registration = host.governor().on_pressure(Domain::Host, ReclaimOrder::new(), reclaimer).unwrap();
    let host_is_alive = Arc::downgrade(&host);
    let mut buffer = host.buffer(&backing, &BufferSpec::new(MIB)).unwrap();
    buffer.grow_to(2 * PAGE).unwrap_err();
    drop((host, backing, buffer));
    assert!(host_is_alive.upgrade().is_some(), "the registration holds its reclaimer, and that its host");
    drop(registration);
    assert_eq!((Arc::strong_count(&alive), host_is_alive.strong_count()), (1, 0));
}
