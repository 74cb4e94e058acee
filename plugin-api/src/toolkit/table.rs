//! Which objects are live: identity → object, looked up by many threads at once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::{Arc, PoisonError, RwLock};

/// The live objects of one kind. Its lock is held for a look-up, never over a system call.
///
/// The host mints each identity once, so a dead one needs no mark: it is simply not found.
#[derive(Debug)]
pub struct Table<Id, T> {
    live: RwLock<HashMap<Id, Arc<T>, BuildHasherDefault<NumberHasher>>>,
}

/// Spreads numbers that the host counts up: Fibonacci hashing, Knuth, The Art of Computer Programming 3, 6.4. Nobody
/// chooses them to collide.
#[derive(Debug, Default)]
struct NumberHasher {
    hash: u64,
}

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        self.hash = (self.hash ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }

    fn finish(&self) -> u64 {
        self.hash
    }
}

impl<Id: Copy + Eq + Hash, T> Default for Table<Id, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<Id: Copy + Eq + Hash, T> Table<Id, T> {
    /// Nothing is live.
    #[must_use]
    pub fn new() -> Self {
        Self { live: RwLock::new(HashMap::default()) }
    }

    /// The object of that identity, where it is live.
    pub fn find(&self, id: Id) -> Option<Arc<T>> {
        self.live.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    /// The objects that are as wanted. It looks at all of them under the lock of the table: `is_wanted` takes none itself.
    pub fn all_where(&self, is_wanted: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        let live = self.live.read().unwrap_or_else(PoisonError::into_inner);
        live.values().filter(|object| is_wanted(object)).cloned().collect()
    }

    /// Adds an object.
    ///
    /// # Errors
    ///
    /// The object itself when the identity is live.
    pub fn insert(&self, id: Id, object: T) -> Result<(), T> {
        match self.live.write().unwrap_or_else(PoisonError::into_inner).entry(id) {
            Entry::Occupied(_) => Err(object),
            Entry::Vacant(entry) => {
                entry.insert(Arc::new(object));
                Ok(())
            }
        }
    }

    /// Forgets an identity.
    pub fn remove(&self, id: Id) {
        self.live.write().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    /// Takes everything out.
    pub fn drain(&mut self) -> Vec<(Id, Arc<T>)> {
        self.live.get_mut().unwrap_or_else(PoisonError::into_inner).drain().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_found_while_it_is_live_and_given_out_once() {
        let table = Table::new();
        assert_eq!(table.insert(7, "first"), Ok(()));
        assert_eq!(table.insert(7, "second"), Err("second"));
        assert_eq!(table.find(7).as_deref(), Some(&"first"));
        table.remove(7);
        assert_eq!(table.find(7), None);
    }
}
