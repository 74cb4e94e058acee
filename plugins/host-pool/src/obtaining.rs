//! How a pool finds the frames of a call: what is parked first, then holes that are charged before they are taken.
//!
//! Every run that serves a need is a mapping of the kernel for as long as the need lives, and those are scarce. So only
//! as many parked runs serve as they are as `piece_bound.rs` allows the region. Other parked frames are exchanged: their
//! memory is given back, and as many holes that lie side by side are taken for them, from the region's headroom. What is
//! owned stays the same, so nothing is charged for that.

use crate::frames::{Frames, Need};
use crate::parked::Parcel;
use crate::piece_bound::PieceBound;
use crate::pool::Pool;
use crate::run::Run;
use crate::supply::{Piece, Supply, frames_in};
use leasehold_host_memory::Fault;
use leasehold_plugin_api::{BackingError, ErrorKind, HolderId, MemoryRole};

const SCARCE_FRAMES: &str = "free memory, or let the process have more files or larger ones (ulimit -n, -f)";

impl Pool {
    /// Frames for every need, or for none.
    pub(crate) fn obtain(&self, needs: &[Need]) -> Result<Supply<'_>, BackingError> {
        let mut supply = Supply::new(self, needs.len());
        self.take_parked(needs, &mut supply, |_| true);
        for role in roles_of(needs) {
            self.charge_for_rest(needs, role, &mut supply)?;
        }
        self.exchange_fragments(&mut supply);
        self.take_fresh(needs, &mut supply).map_err(|fault| {
            let bytes = supply.charged_bytes;
            let what = format!("no memory for {bytes} bytes");
            fault.into_error(ErrorKind::OutOfMemory, what, SCARCE_FRAMES).with_requested(bytes)
        })?;
        Ok(supply)
    }

    /// Takes what is parked for the needs that are to be served, as far as they lack it. What continues a region goes to
    /// that region before any other need is looked at. Runs within the region's bound come next, in the order of the file,
    /// which makes the fewest mappings. What is taken beyond the bound are fragments. Returns the frames taken.
    fn take_parked(&self, needs: &[Need], supply: &mut Supply<'_>, serves: impl Fn(&Need) -> bool) -> u64 {
        let before = supply.frames();
        let mut frames = self.lock();
        let pieces = |parcels: Vec<Parcel>| parcels.into_iter().map(Piece::parked).collect::<Vec<_>>();
        for (index, need) in needs.iter().enumerate().filter(|(_, need)| serves(need)) {
            let lacking = supply.lacking(index, need);
            let Some(part) = supply.parts.get_mut(index) else { continue };
            let after = part.last().map_or(need.after, |piece| Some(piece.run.end()));
            part.append(&mut pieces(frames.take_continuing(&Need { frames: lacking, after, ..*need })));
        }
        let mut bound = PieceBound::default();
        for (index, need) in needs.iter().enumerate() {
            let most_runs = bound.left(need, supply.runs(index));
            if !serves(need) {
                continue;
            }
            let lacking = supply.lacking(index, need);
            let mut serving = pieces(frames.take_parked(need, lacking, most_runs));
            serving.sort_unstable_by_key(|piece| piece.run);
            bound.add(serving.len());
            let fragments = pieces(frames.take_fragments(lacking.saturating_sub(frames_in(&serving))));
            supply.add(index, serving, fragments);
        }
        supply.frames().saturating_sub(before)
    }

    /// Gives fragments back for holes that will be taken in their place. What the kernel keeps serves as it is.
    fn exchange_fragments(&self, supply: &mut Supply<'_>) {
        let Supply { parts, fragments, exchanged_frames, .. } = supply;
        for (part, fragments) in parts.iter_mut().zip(fragments) {
            for fragment in fragments.drain(..) {
                match self.store.punch(fragment.run) {
                    Err(_) => part.push(fragment),
                    Ok(()) => {
                        self.lock().insert_hole(fragment.run);
                        *exchanged_frames = exchanged_frames.saturating_add(fragment.run.frames);
                    }
                }
            }
        }
    }

    /// Charges for what parked frames don't serve of the needs of one role. No lock is held. Whoever is asked for room
    /// meanwhile may shrink what is in this very pool: then it is parked, and charged still. So after a refusal that is
    /// taken, and the charge is for the rest, as long as there is something to take.
    fn charge_for_rest(&self, needs: &[Need], role: MemoryRole, supply: &mut Supply<'_>) -> Result<(), BackingError> {
        loop {
            let of_role = needs.iter().enumerate().filter(|(_, need)| need.role == role);
            let lacking = of_role.fold(0_u64, |sum, (index, need)| sum.saturating_add(supply.lacking(index, need)));
            let bytes = self.bytes(lacking);
            if bytes == 0 {
                return Ok(());
            }
            let Err(refused) = self.books.charge(bytes, role) else {
                supply.charged_bytes = supply.charged_bytes.saturating_add(bytes);
                return Ok(());
            };
            let is_of_the_budget = refused.kind() == ErrorKind::BudgetRefused;
            if !is_of_the_budget || self.take_parked(needs, supply, |need| need.role == role) == 0 {
                return Err(refused);
            }
        }
    }

    fn take_fresh(&self, needs: &[Need], supply: &mut Supply<'_>) -> Result<(), Fault> {
        let mut frames = self.lock();
        for (need, pieces) in needs.iter().zip(&mut supply.parts) {
            let mut left = need.frames.saturating_sub(frames_in(pieces));
            while left > 0 {
                let after = pieces.last().map_or(need.after, |piece| Some(piece.run.end()));
                let run = self.fresh_run(&mut frames, need, left, after)?;
                left = left.saturating_sub(run.frames);
                pieces.push(Piece::fresh(run));
            }
        }
        Ok(())
    }

    fn fresh_run(&self, frames: &mut Frames, need: &Need, most: u64, after: Option<u64>) -> Result<Run, Fault> {
        loop {
            if let Some(run) = frames.take_fresh(need, most, after) {
                return Ok(run);
            }
            match self.store.open_another() {
                Ok(()) => frames.add_segment(),
                // Without another segment there is no headroom, but there may be frames.
                Err(fault) => return frames.take_anywhere(most).ok_or(fault),
            }
        }
    }

    /// What a supply had that nobody kept: parked frames are parked again, and so is a part of the holes as large as
    /// what was exchanged for them. The other holes are holes again; what was charged for them is refunded.
    pub(crate) fn take_back(&self, pieces: impl Iterator<Item = Piece>, charged_bytes: u64, exchanged_frames: u64) {
        let mut owed = exchanged_frames;
        let mut excess = Vec::new();
        let mut frames = self.lock();
        for Piece { run, former } in pieces {
            let (holder, age) = former.unwrap_or((HolderId::NOBODY, 0));
            let (parked, hole) = if former.is_some() { (run, Run::new(run.end(), 0)) } else { run.split(owed) };
            if former.is_none() {
                owed = owed.saturating_sub(parked.frames);
            }
            let parcel = Parcel { run: parked, holder, age };
            excess.push(Parcel { run: frames.park_within(self.settings.park_frames, parcel), ..parcel });
            frames.insert_hole(hole);
        }
        drop(frames);
        self.refund(charged_bytes.saturating_add(self.bytes(owed)));
        self.give_back(excess);
    }
}

/// What the needs are for, each once.
fn roles_of(needs: &[Need]) -> Vec<MemoryRole> {
    let mut roles: Vec<MemoryRole> = Vec::new();
    for need in needs {
        if !roles.contains(&need.role) {
            roles.push(need.role);
        }
    }
    roles
}
