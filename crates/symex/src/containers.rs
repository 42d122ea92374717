//! The parts of libstdc++'s lists and trees that lie in its shared library: linking, unlinking and
//! balancing. Programs read the links with ordinary loads, so what these functions do to them has
//! to be computed.

use crate::access::{Grain, Place};
use crate::engine::Engine;
use crate::memory::{self, MemoryByte};
use crate::report::GapKind;
use crate::thread::ExternalCall;
use crate::value::{Scalar, Value};
use model::PathConditionKind;

/// Offsets in a list node.
const NEXT: u64 = 0;
const PREVIOUS: u64 = 8;
/// Offsets in a tree node. Of the header, the parent is the root, left and right are the outermost
/// nodes.
const COLOUR: u64 = 0;
const PARENT: u64 = 8;
const LEFT: u64 = 16;
const RIGHT: u64 = 24;
const RED: u64 = 0;
const BLACK: u64 = 1;

/// Longer walks mean that the nodes are not what they are taken for.
const MOST_STEPS: u32 = 1 << 16;

/// Is it a function on the nodes of lists or trees?
pub(crate) fn is_container(name: &str) -> bool {
    name.contains("_List_node_base") || name.contains("_Rb_tree_")
}

impl<'r> Engine<'r> {
    /// Does what the function does; see [`is_container`].
    pub fn model_container(&mut self, t: usize, call: &ExternalCall<'r>) {
        let name = call.name;
        let argument = |i: usize| {
            let scalar = call.arguments.get(i).and_then(Value::scalar)?;
            scalar.as_const().map(|value| value as u64)
        };
        let (a, b, c, d) = (argument(0), argument(1), argument(2), argument(3));
        let mut nodes = Nodes { engine: self, t, steps: MOST_STEPS };
        let done = if name.ends_with("7_M_hookEPS0_") {
            a.zip(b).and_then(|(node, before)| nodes.hook(node, before))
        } else if name.ends_with("9_M_unhookEv") {
            a.and_then(|node| nodes.unhook(node))
        } else if name.contains("11_M_transferE") {
            a.zip(b).zip(c).and_then(|((to, first), last)| nodes.transfer(to, first, last))
        } else if name.ends_with("10_M_reverseEv") {
            a.and_then(|head| nodes.reverse(head))
        } else if name.ends_with("4swapERS0_S1_") {
            a.zip(b).and_then(|(x, y)| nodes.swap(x, y))
        } else if name.contains("_Rb_tree_insert_and_rebalance") {
            let arguments = a.zip(b).zip(c.zip(d));
            arguments.and_then(|((left, x), (p, header))| nodes.insert(left & 1 != 0, x, p, header))
        } else if name.contains("_Rb_tree_rebalance_for_erase") {
            a.zip(b).and_then(|(z, header)| nodes.erase(z, header))
        } else {
            Some(())
        };
        if done.is_none() {
            self.gap(t, GapKind::External(name.to_owned()), "links are not known".to_owned());
        }
    }
}

/// Nodes in the walked thread's memory. `None` when a link is not known.
struct Nodes<'e, 'r> {
    engine: &'e mut Engine<'r>,
    t: usize,
    /// How many more links may be read.
    steps: u32,
}

impl Nodes<'_, '_> {
    fn get(&mut self, node: u64, offset: u64) -> Option<u64> {
        self.read(node, offset, 8)
    }

    fn read(&mut self, node: u64, offset: u64, length: u64) -> Option<u64> {
        self.steps = self.steps.checked_sub(1)?;
        let (engine, t) = (&mut *self.engine, self.t);
        let address = engine.resolve(t, node.checked_add(offset)?)?;
        let bytes = engine.read(t, Place::new(address, length, None), Grain::Access);
        let unknown = |byte: &MemoryByte| matches!(byte, MemoryByte::Unknown | MemoryByte::Fresh);
        if bytes.iter().any(unknown) {
            return None;
        }
        let value = memory::compose(&mut engine.pool, &bytes);
        engine.concretise(t, value, PathConditionKind::Address)
    }

    fn write(&mut self, node: u64, offset: u64, length: u64, value: u64) -> Option<()> {
        let (engine, t) = (&mut *self.engine, self.t);
        let address = engine.resolve(t, node.checked_add(offset)?)?;
        let value = Scalar::constant(8 * length as u32, u128::from(value));
        let bytes = memory::decompose(&mut engine.pool, value, length);
        engine.write(t, Place::new(address, length, None), &bytes, Grain::Access);
        Some(())
    }

    fn set(&mut self, node: u64, offset: u64, value: u64) -> Option<()> {
        self.write(node, offset, 8, value)
    }

    fn colour(&mut self, node: u64) -> Option<u64> {
        self.read(node, COLOUR, 4)
    }

    fn set_colour(&mut self, node: u64, colour: u64) -> Option<()> {
        self.write(node, COLOUR, 4, colour)
    }

    fn is_black(&mut self, node: u64) -> Option<bool> {
        if node == 0 { Some(true) } else { Some(self.colour(node)? != RED) }
    }

    fn hook(&mut self, node: u64, before: u64) -> Option<()> {
        let previous = self.get(before, PREVIOUS)?;
        self.set(node, NEXT, before)?;
        self.set(node, PREVIOUS, previous)?;
        self.set(previous, NEXT, node)?;
        self.set(before, PREVIOUS, node)
    }

    fn unhook(&mut self, node: u64) -> Option<()> {
        let (next, previous) = (self.get(node, NEXT)?, self.get(node, PREVIOUS)?);
        self.set(previous, NEXT, next)?;
        self.set(next, PREVIOUS, previous)
    }

    /// Moves `first..last` before `to`.
    fn transfer(&mut self, to: u64, first: u64, last: u64) -> Option<()> {
        if to == last {
            return Some(());
        }
        let (end, before_first) = (self.get(last, PREVIOUS)?, self.get(first, PREVIOUS)?);
        self.set(end, NEXT, to)?;
        self.set(before_first, NEXT, last)?;
        let before_to = self.get(to, PREVIOUS)?;
        self.set(before_to, NEXT, first)?;
        self.set(to, PREVIOUS, end)?;
        self.set(last, PREVIOUS, before_first)?;
        self.set(first, PREVIOUS, before_to)
    }

    fn reverse(&mut self, head: u64) -> Option<()> {
        let mut node = head;
        loop {
            let (next, previous) = (self.get(node, NEXT)?, self.get(node, PREVIOUS)?);
            self.set(node, NEXT, previous)?;
            self.set(node, PREVIOUS, next)?;
            node = next;
            if node == head {
                return Some(());
            }
        }
    }

    /// Exchanges what two list heads hold; an empty one points to itself.
    fn swap(&mut self, x: u64, y: u64) -> Option<()> {
        let (x_next, x_previous) = (self.get(x, NEXT)?, self.get(x, PREVIOUS)?);
        let (y_next, y_previous) = (self.get(y, NEXT)?, self.get(y, PREVIOUS)?);
        self.hang(x, (y, y_next, y_previous))?;
        self.hang(y, (x, x_next, x_previous))
    }

    /// Gives a list head what hung at another one.
    fn hang(&mut self, head: u64, (other, next, previous): (u64, u64, u64)) -> Option<()> {
        if next == other {
            self.set(head, NEXT, head)?;
            return self.set(head, PREVIOUS, head);
        }
        self.set(head, NEXT, next)?;
        self.set(head, PREVIOUS, previous)?;
        self.set(next, PREVIOUS, head)?;
        self.set(previous, NEXT, head)
    }

    /// Turns the node down to `side`; its child on the other side takes its place.
    fn rotate(&mut self, node: u64, side: u64, header: u64) -> Option<()> {
        let other = opposite(side);
        let child = self.get(node, other)?;
        let inner = self.get(child, side)?;
        self.set(node, other, inner)?;
        if inner != 0 {
            self.set(inner, PARENT, node)?;
        }
        self.replace(node, child, header)?;
        self.set(child, side, node)?;
        self.set(node, PARENT, child)
    }

    /// Puts `new` where `old` hangs, and tells it its parent.
    fn replace(&mut self, old: u64, new: u64, header: u64) -> Option<()> {
        let parent = self.get(old, PARENT)?;
        if new != 0 {
            self.set(new, PARENT, parent)?;
        }
        if self.get(header, PARENT)? == old {
            self.set(header, PARENT, new)
        } else if self.get(parent, LEFT)? == old {
            self.set(parent, LEFT, new)
        } else {
            self.set(parent, RIGHT, new)
        }
    }

    fn insert(&mut self, left: bool, node: u64, parent: u64, header: u64) -> Option<()> {
        self.set(node, PARENT, parent)?;
        self.set(node, LEFT, 0)?;
        self.set(node, RIGHT, 0)?;
        self.set_colour(node, RED)?;
        let side = if left { LEFT } else { RIGHT };
        let outermost = self.get(header, side)?;
        self.set(parent, side, node)?;
        if left && parent == header {
            self.set(header, PARENT, node)?;
            self.set(header, RIGHT, node)?;
        } else if parent == outermost {
            self.set(header, side, node)?;
        }
        self.balance_insert(node, header)
    }

    fn balance_insert(&mut self, node: u64, header: u64) -> Option<()> {
        let mut x = node;
        while x != self.get(header, PARENT)? {
            let mut parent = self.get(x, PARENT)?;
            if self.is_black(parent)? {
                break;
            }
            let above = self.get(parent, PARENT)?;
            let side = if self.get(above, LEFT)? == parent { LEFT } else { RIGHT };
            let uncle = self.get(above, opposite(side))?;
            if !self.is_black(uncle)? {
                self.set_colour(parent, BLACK)?;
                self.set_colour(uncle, BLACK)?;
                self.set_colour(above, RED)?;
                x = above;
                continue;
            }
            if self.get(parent, opposite(side))? == x {
                x = parent;
                self.rotate(x, side, header)?;
                parent = self.get(x, PARENT)?;
            }
            self.set_colour(parent, BLACK)?;
            self.set_colour(above, RED)?;
            self.rotate(above, opposite(side), header)?;
        }
        let root = self.get(header, PARENT)?;
        self.set_colour(root, BLACK)
    }

    /// The outermost node of a subtree.
    fn outermost(&mut self, node: u64, side: u64) -> Option<u64> {
        let mut node = node;
        loop {
            match self.get(node, side)? {
                0 => return Some(node),
                next => node = next,
            }
        }
    }

    fn erase(&mut self, z: u64, header: u64) -> Option<()> {
        let (left, right) = (self.get(z, LEFT)?, self.get(z, RIGHT)?);
        let (x, x_parent, removed_colour);
        if left != 0 && right != 0 {
            // The successor takes the node's place and colour.
            let y = self.outermost(right, LEFT)?;
            x = self.get(y, RIGHT)?;
            removed_colour = self.colour(y)?;
            self.set(left, PARENT, y)?;
            self.set(y, LEFT, left)?;
            if y == right {
                x_parent = y;
            } else {
                x_parent = self.get(y, PARENT)?;
                if x != 0 {
                    self.set(x, PARENT, x_parent)?;
                }
                self.set(x_parent, LEFT, x)?;
                self.set(y, RIGHT, right)?;
                self.set(right, PARENT, y)?;
            }
            self.replace(z, y, header)?;
            let colour = self.colour(z)?;
            self.set_colour(y, colour)?;
            self.set_colour(z, removed_colour)?;
        } else {
            x = if left == 0 { right } else { left };
            x_parent = self.get(z, PARENT)?;
            removed_colour = self.colour(z)?;
            self.replace(z, x, header)?;
            for side in [LEFT, RIGHT] {
                if self.get(header, side)? == z {
                    let next = if x == 0 { x_parent } else { self.outermost(x, side)? };
                    self.set(header, side, next)?;
                }
            }
        }
        if removed_colour == RED { Some(()) } else { self.balance_erase(x, x_parent, header) }
    }

    fn balance_erase(&mut self, x: u64, x_parent: u64, header: u64) -> Option<()> {
        let (mut x, mut parent) = (x, x_parent);
        while x != self.get(header, PARENT)? && self.is_black(x)? {
            let side = if self.get(parent, LEFT)? == x { LEFT } else { RIGHT };
            let other = opposite(side);
            let mut sibling = self.get(parent, other)?;
            if !self.is_black(sibling)? {
                self.set_colour(sibling, BLACK)?;
                self.set_colour(parent, RED)?;
                self.rotate(parent, side, header)?;
                sibling = self.get(parent, other)?;
            }
            let (near, far) = (self.get(sibling, side)?, self.get(sibling, other)?);
            if self.is_black(near)? && self.is_black(far)? {
                self.set_colour(sibling, RED)?;
                x = parent;
                parent = self.get(parent, PARENT)?;
                continue;
            }
            if self.is_black(far)? {
                self.set_colour(near, BLACK)?;
                self.set_colour(sibling, RED)?;
                self.rotate(sibling, other, header)?;
                sibling = self.get(parent, other)?;
            }
            let colour = self.colour(parent)?;
            self.set_colour(sibling, colour)?;
            self.set_colour(parent, BLACK)?;
            let far = self.get(sibling, other)?;
            if far != 0 {
                self.set_colour(far, BLACK)?;
            }
            self.rotate(parent, side, header)?;
            break;
        }
        if x != 0 { self.set_colour(x, BLACK) } else { Some(()) }
    }
}

fn opposite(side: u64) -> u64 {
    if side == LEFT { RIGHT } else { LEFT }
}
