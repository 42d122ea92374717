//! Objects in the program's memory that belong to a library, such as streams: what the library's code leaves
//! there is not logged, and what inline functions of its headers read there is an input.

use crate::access::Place;
use crate::engine::{Engine, Pass};
use crate::heap::PRIVATE;
use crate::memory::MemoryByte;
use crate::value::{Scalar, Value};
use ir::effects::readable;
use rustc_hash::{FxHashMap, FxHashSet};

/// No variable is taken to be larger.
const LARGEST: u64 = 1 << 20;

/// What the names of libc++'s functions for streams have in them, and more than a stream has before the part that all
/// have in common.
const STREAMS: [&str; 2] = ["St3__113basic_istream", "St3__113basic_ostream"];
const LARGEST_STREAM: u64 = 1024;

/// What is known of such objects, by internal address.
#[derive(Default)]
pub(crate) struct Opaque {
    /// How long the object is that begins there.
    sizes: FxHashMap<u64, u64>,
    /// Bytes of shared cells in the stack of the thread that is walked, which hold what a library left there: what
    /// others read and wrote at these addresses was another variable, at another time.
    bytes: FxHashSet<u64>,
}

impl Engine<'_> {
    /// How long the object is that a function of a library changed. A member function of a base class knows of its
    /// own part alone, and what all such classes have in common may lie behind the members of the derived one.
    pub(crate) fn opaque_size(&mut self, internal: u64, size: u64, function: &str) -> u64 {
        let size = self.size_with_base(internal, size, function);
        match self.opaque.sizes.get(&internal) {
            Some(&known) if known > size && !constructs(function) => known,
            _ => {
                self.opaque.sizes.insert(internal, size);
                size
            }
        }
    }

    /// The same of a stream of libc++, whose constructors are the program's own code: up to the end of the part that
    /// all streams have in common, which was made before, and is the next one behind where the stream begins.
    fn size_with_base(&self, internal: u64, size: u64, function: &str) -> u64 {
        if !STREAMS.iter().any(|class| function.contains(class)) {
            return size;
        }
        let inside = internal + 1..internal.saturating_add(LARGEST_STREAM);
        let base = self.opaque.sizes.iter().filter(|(at, _)| inside.contains(at)).min();
        base.map_or(size, |(&at, &length)| size.max((at - internal).saturating_add(length)))
    }

    /// As [`Self::forget`], for memory that belongs to a library: what lies there is an input of
    /// the program, and no gap.
    pub fn renew(&mut self, t: usize, address: u64, length: u64) {
        for at in address..address.saturating_add(length) {
            let shared = match &self.pass {
                Pass::Symbolic(shared) => shared.at(at).is_some(),
                Pass::Survey(_) => false,
            };
            if !shared {
                self.memory.set(at, MemoryByte::Fresh);
            } else if is_in_stack_of(t, at) {
                self.opaque.bytes.insert(at);
            }
        }
    }

    /// Does a place in the thread's own stack hold what a library left there, and nothing that the program wrote since?
    pub(crate) fn is_of_library(&self, t: usize, place: Place) -> bool {
        !self.opaque.bytes.is_empty()
            && is_in_stack_of(t, place.address)
            && (place.address..place.address.saturating_add(place.length))
                .all(|at| self.opaque.bytes.contains(&at))
    }

    /// The program writes there, or a variable of its own begins there.
    pub(crate) fn is_the_programs(&mut self, address: u64, length: u64) {
        if !self.opaque.bytes.is_empty() {
            for at in address..address.saturating_add(length) {
                self.opaque.bytes.remove(&at);
            }
        }
    }

    /// Where two variables of a function share a place in the stack, the compiler says when the one begins.
    pub(crate) fn begin_lifetime(&mut self, t: usize, arguments: &[Value]) {
        if self.opaque.bytes.is_empty() {
            return;
        }
        let scalar = |i: usize| arguments.get(i).and_then(Value::scalar);
        let size = scalar(0).and_then(Scalar::as_const).and_then(|size| u64::try_from(size).ok());
        let address = scalar(1).and_then(|pointer| self.in_recording(pointer));
        let internal = address.and_then(|address| self.lookup(t, address));
        if let (Some(internal), Some(size)) = (internal, size) {
            self.is_the_programs(internal, size.min(LARGEST));
        }
    }
}

/// Is it an address in the stack of the thread?
fn is_in_stack_of(t: usize, internal: u64) -> bool {
    internal < PRIVATE && internal >> 48 == t as u64 + 1
}

/// Is it a constructor of the library's?
fn constructs(function: &str) -> bool {
    let Some(name) = readable(function) else { return false };
    let mut parts = name.rsplit("::");
    let (Some(own), Some(class)) = (parts.next(), parts.next()) else { return false };
    own == class || own.strip_prefix("basic_") == Some(class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constructors_are_told_by_their_names() {
        let ifstream = "_ZNSt14basic_ifstreamIcSt11char_traitsIcEEC1EPKcSt13_Ios_Openmode";
        assert!(constructs(ifstream));
        assert!(constructs("_ZNSt8ios_baseC2Ev"));
        for other in ["_ZNSirsERi", "_ZNSt14basic_ifstreamIcSt11char_traitsIcEED1Ev", "fopen"] {
            assert!(!constructs(other), "{other}");
        }
    }

    #[test]
    fn each_thread_has_a_stack_of_its_own() {
        assert!(is_in_stack_of(0, (1 << 48) + 0x7fff_0000));
        assert!(!is_in_stack_of(0, (2 << 48) + 0x7fff_0000));
        assert!(!is_in_stack_of(0, 0x7fff_0000));
        assert!(!is_in_stack_of(0x5fff, PRIVATE + 8));
    }
}
