//! Which of the local variables that lay at one address a pointer means that another thread read.
//!
//! A function that is called again has its variables where they were before. Where a thread comes to another one's
//! variable by a pointer that it read from memory, say out of a task that it took from a queue, the store that the pointer
//! came from tells which one is meant: what lay there when the owner stored its address. One walk finds such reads and the
//! stores to their cells, the next one the variables ([`crate::locals`]) at these stores.

use crate::engine::Engine;
use crate::failure::meant::AccessKey;
use crate::value::Scalar;
use model::{CellId, ExprId, Interval, VarId, WritePart};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::Arc;

/// So many stores of addresses are looked at.
const MOST_STORES: usize = 1 << 16;
/// The bits of an address in a cell.
const ADDRESS_BITS: u32 = 64;

/// A store, the same in every walk: the access, and how many time stamps its thread had passed.
type StoreKey = (AccessKey, usize);

/// How threads came to addresses in other threads' stacks, as a walk finds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pointed {
    /// The failing thread.
    pub uses: BTreeMap<AccessKey, Use>,
    stores: Vec<Stored>,
}

/// An access to another thread's stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Use {
    owner: usize,
    pub address: u64,
    /// None where nothing that was read led to it.
    pointer: Option<ExprId>,
    /// When it was.
    pub when: Interval,
}

/// A thread stored an address in its own stack.
#[derive(Clone, Copy, Debug)]
struct Stored {
    key: StoreKey,
    cell: CellId,
    address: u64,
}

/// What another walk is to look at, and what it finds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stores {
    /// The addresses that each of these stores.
    wanted: Arc<FxHashMap<StoreKey, Vec<u64>>>,
    /// The variable, as object of the heap, that lay at the address then.
    found: FxHashMap<(StoreKey, u64), usize>,
}

impl Pointed {
    /// The stores that another walk is to look at.
    pub fn stores(&self) -> Stores {
        let mut wanted: FxHashMap<StoreKey, Vec<u64>> = FxHashMap::default();
        for stored in &self.stores {
            wanted.entry(stored.key).or_default().push(stored.address);
        }
        Stores { wanted: Arc::new(wanted), found: FxHashMap::default() }
    }
}

impl Engine<'_> {
    /// The access that a thread is at to an address in another one's stack.
    pub(crate) fn pointed(
        &self,
        t: usize,
        pointer: Option<Scalar>,
        (owner, address): (usize, u64),
    ) -> Option<(AccessKey, Use)> {
        let pointer = pointer.and_then(|pointer| pointer.as_expr());
        let when = self.happened(t);
        Some((self.access_key(t)?, Use { owner, address, pointer, when }))
    }

    /// A thread writes to cells that others use, too: addresses in its own stack?
    pub(crate) fn note_stored(&mut self, t: usize, parts: &[WritePart]) {
        let Some(stack) = self.learned.stacks.get(t).copied().flatten() else { return };
        if self.lifetime.pointed.stores.len() >= MOST_STORES {
            return;
        }
        for part in parts {
            let value = (self.pool.width(part.value) == ADDRESS_BITS)
                .then(|| self.pool.as_const(part.value))
                .flatten();
            let address = value.and_then(|value| u64::try_from(value).ok());
            let Some(address) = address.filter(|at| (stack.0..stack.1).contains(at)) else {
                continue;
            };
            let Some(key) = self.store_key(t) else { return };
            self.lifetime.pointed.stores.push(Stored { key, cell: part.cell, address });
        }
    }

    /// A thread writes: one of the stores that another walk found?
    pub(crate) fn find_stored(&mut self, t: usize) {
        if self.learned.locals.stores.wanted.is_empty() {
            return;
        }
        let Some(key) = self.store_key(t) else { return };
        let wanted = Arc::clone(&self.learned.locals.stores.wanted);
        for &address in wanted.get(&key).into_iter().flatten() {
            let local = self.in_local(t, address, true);
            let object = local.and_then(|internal| self.learned.heap.at_internal(internal));
            if let Some(object) = object {
                self.learned.locals.stores.found.insert((key, address), object);
            }
        }
    }

    fn store_key(&self, t: usize) -> Option<StoreKey> {
        Some((self.access_key(t)?, self.threads[t].stamps))
    }

    /// The variables, as objects of the heap, that these accesses of an earlier walk meant, by this walk, which knows them. Of
    /// several that a cell led to it is the youngest that was there by then.
    pub(crate) fn pointed_to(
        &self,
        earlier: &Engine<'_>,
        uses: &BTreeMap<AccessKey, Use>,
    ) -> FxHashMap<AccessKey, usize> {
        let pointed = &earlier.lifetime.pointed;
        let variables = |used: &Use| match used.pointer {
            Some(pointer) => earlier.pool.variables(pointer),
            None => Vec::new(),
        };
        let wanted: FxHashSet<VarId> = uses.values().flat_map(variables).collect();
        let events = earlier.out.threads.iter().flat_map(|thread| &thread.events);
        let parts = events.flat_map(|event| event.kind.reads());
        let cells: FxHashMap<VarId, CellId> = parts
            .filter(|part| wanted.contains(&part.var))
            .map(|part| (part.var, part.cell))
            .collect();
        let mut stores: FxHashMap<CellId, Vec<&Stored>> = FxHashMap::default();
        for stored in &pointed.stores {
            stores.entry(stored.cell).or_default().push(stored);
        }
        let meant = |used: &Use| {
            let from = variables(used);
            let from = from.iter().filter_map(|var| cells.get(var));
            let stored = from.filter_map(|cell| stores.get(cell)).flatten();
            let objects =
                stored.filter(|stored| stored.key.0.0 == used.owner).filter_map(|stored| {
                    let object =
                        *self.learned.locals.stores.found.get(&(stored.key, stored.address))?;
                    let known = self.learned.heap.objects.get(object)?;
                    let lies = used.address.wrapping_sub(known.address) < known.size.max(1);
                    (lies && known.birth <= used.when.latest).then_some((known.birth, object))
                });
            objects.max().map(|(_, object)| object)
        };
        uses.iter().filter_map(|(key, used)| Some((*key, meant(used)?))).collect()
    }
}
