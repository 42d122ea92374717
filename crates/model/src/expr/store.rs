//! Where a pool keeps its expressions: 17 bytes each and five in the table that finds them again, so
//! that a trace of ten million reads has room for its values.

use super::{Expr, ExprId};
use hashbrown::HashTable;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::fmt;
use std::hash::BuildHasher;

/// An expression with its constant's value elsewhere, by number: 128 bits would make all others wide.
type Stored = Expr<u32>;

/// See the module.
#[derive(Clone, Default)]
pub(super) struct Store {
    nodes: Vec<Stored>,
    /// By expression; widths are at most 128.
    widths: Vec<u8>,
    values: Vec<u128>,
    numbers: FxHashMap<u128, u32>,
    /// Indices of `nodes`.
    table: HashTable<u32>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries((0..self.len()).map(|index| self.get(ExprId(index as u32)))).finish()
    }
}

fn hash(node: &Stored) -> u64 {
    FxBuildHasher.hash_one(node)
}

impl Store {
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn get(&self, id: ExprId) -> Expr {
        self.nodes[id.0 as usize].with_value(|number| self.values[number as usize])
    }

    pub(super) fn width(&self, id: ExprId) -> u32 {
        u32::from(self.widths[id.0 as usize])
    }

    /// The expression's identifier, a new one if need be.
    pub(super) fn intern(&mut self, expr: Expr, width: u32) -> ExprId {
        let node = expr.with_value(|value| {
            let next = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
            *self.numbers.entry(value).or_insert_with(|| {
                self.values.push(value);
                next
            })
        });
        let hash_of = hash(&node);
        let nodes = &self.nodes;
        if let Some(&index) = self.table.find(hash_of, |index| nodes[*index as usize] == node) {
            return ExprId(index);
        }
        let index = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
        self.table.insert_unique(hash_of, index, |index| hash(&nodes[*index as usize]));
        self.nodes.push(node);
        self.widths.push(u8::try_from(width).unwrap_or(u8::MAX));
        ExprId(index)
    }
}

#[cfg(test)]
mod tests {
    use super::Stored;

    #[test]
    fn expressions_are_small() {
        assert!(size_of::<Stored>() <= 16, "{}", size_of::<Stored>());
    }
}
