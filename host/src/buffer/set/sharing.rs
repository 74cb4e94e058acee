//! Prefixes in front of what the planes own.
//!
//! A prefix is mapped into all planes in one call, or into none. Nothing private may lie where it goes, so prefixes come
//! first, one behind the other, and the private part grows behind them. The set holds what it maps.

use super::BufferSet;
use crate::error::{Error, Operation, PrefixError};
use crate::prefix::{PrefixPart, SharedPrefix};
use leasehold_plugin_api::{Change, PrefixMapping};
use std::sync::Arc;

impl BufferSet {
    /// Bytes of each plane that prefixes take, in front.
    #[must_use]
    pub fn shared(&self) -> u64 {
        self.shared
    }

    /// Maps a prefix behind those that are mapped already: plane k of the prefix into plane k of the set, all or none.
    /// Nothing is owned for it. The length is then the end of the prefix, and growth goes on behind it.
    ///
    /// # Errors
    ///
    /// [`ForeignPrefix`](crate::ErrorKind::ForeignPrefix) when another backing made it,
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) when it has another number of planes,
    /// [`WrongState`](crate::ErrorKind::WrongState) when private bytes are in the way,
    /// [`CapacityExceeded`](crate::ErrorKind::CapacityExceeded), and what the backing reports. Nothing is mapped then, and
    /// the set can still grow without it; but where the backing broke off in the middle, it may be mapped still: the set
    /// holds it until it is dropped.
    pub fn map_prefix(&mut self, prefix: &SharedPrefix) -> Result<(), Error> {
        self.map_prefixes(&[prefix.whole()])
    }

    /// Maps parts of prefixes one behind the other, all or none, in one call; see [`map_prefix`](Self::map_prefix).
    ///
    /// # Errors
    ///
    /// As [`map_prefix`](Self::map_prefix).
    pub fn map_prefixes(&mut self, parts: &[PrefixPart]) -> Result<(), Error> {
        parts.iter().try_for_each(|part| self.check_part(part))?;
        if parts.is_empty() {
            return Ok(()); // as after a search that found nothing
        }
        self.backing.check_process(Operation::MapPrefix)?;
        self.resolve_doubts()?;
        // After a shrink that failed half-way one plane has more than another.
        let committed = self.planes.iter().map(super::Plane::owned).max().unwrap_or(0);
        if committed > 0 {
            let shared = self.shared;
            return Err(PrefixError::PrivateInTheWay { backing: self.name(), committed, shared }.into());
        }
        let bytes = parts.iter().fold(0_u64, |sum, part| sum.saturating_add(part.plane_bytes()));
        self.check_capacity(self.shared.saturating_add(bytes))?;
        if let Err(fault) = self.backing.map_prefix(&self.mappings(self.shared, parts)) {
            if fault.leaves_doubt() {
                self.doubtful_parts.extend_from_slice(parts);
            }
            return Err(fault.into());
        }
        self.parts.extend_from_slice(parts);
        self.shared = self.shared.saturating_add(bytes);
        self.planes.iter_mut().for_each(|plane| plane.map(bytes));
        self.note_committed();
        self.len = self.shared;
        Ok(())
    }

    /// What mapping the parts would newly map and newly own, without doing it.
    ///
    /// # Errors
    ///
    /// [`ForeignPrefix`](crate::ErrorKind::ForeignPrefix) before any cost is told,
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest), and what the backing reports.
    pub fn mapping_cost(&self, parts: &[PrefixPart]) -> Result<Change, Error> {
        parts.iter().try_for_each(|part| self.check_part(part))?;
        let planes = u64::try_from(self.planes.len()).unwrap_or(u64::MAX);
        let mut cost = Change::default();
        for part in parts {
            let owned = part.prefix().incremental_owned_bytes()?;
            cost.owned_bytes = cost.owned_bytes.saturating_add(owned);
            cost.mapped_bytes = cost.mapped_bytes.saturating_add(part.plane_bytes().saturating_mul(planes));
        }
        Ok(cost)
    }

    /// Gives everything in it back: private bytes are decommitted, prefixes unmapped and let go. The planes stay where they
    /// are, and can grow anew.
    ///
    /// # Errors
    ///
    /// What the backing reports. Private bytes are as [`shrink_to`](Self::shrink_to) leaves them: lost, but for what
    /// failed to be given back. Of prefixes all are mapped still, or, where the backing broke off in the middle, none
    /// is lent out any more, and what may be mapped still is in the way of growing.
    pub fn clear(&mut self) -> Result<(), Error> {
        self.shrink_to(0)?;
        if self.shared == 0 {
            return Ok(());
        }
        let unmapped = self.backing.unmap(&self.mappings(0, &self.parts));
        if let Err(fault) = &unmapped {
            if !fault.leaves_doubt() {
                return Ok(unmapped?);
            }
            // They may be mapped still: the backing refuses what would come in their place, and the set holds them.
            self.doubtful_parts.append(&mut self.parts);
        }
        self.parts.clear();
        (self.shared, self.len) = (0, 0);
        self.planes.iter_mut().for_each(super::Plane::clear);
        self.note_committed();
        Ok(unmapped?)
    }

    fn check_part(&self, part: &PrefixPart) -> Result<(), PrefixError> {
        let (prefix, buffer) = (part.prefix().planes(), self.planes.len());
        part.prefix().check_made_by(&self.backing)?;
        if prefix != buffer {
            return Err(PrefixError::Planes { backing: self.name(), prefix, buffer });
        }
        Ok(())
    }

    /// Where the parts go: plane by plane, one behind the other from `begin` on.
    fn mappings(&self, begin: u64, parts: &[PrefixPart]) -> Vec<PrefixMapping> {
        let mut mappings = Vec::with_capacity(self.planes.len().saturating_mul(parts.len()));
        for (index, plane) in (0..).zip(&self.planes) {
            let mut offset = begin;
            for part in parts {
                mappings.push(part.mapping(index, plane.id(), offset));
                offset = offset.saturating_add(part.plane_bytes());
            }
        }
        mappings
    }

    fn name(&self) -> Arc<str> {
        Arc::clone(self.backing.name())
    }
}
