//! Byte-addressed memory. A byte is a constant, or a byte of an expression, so that a load of a
//! whole stored value finds the stored expression again.

use crate::heap::HEAP;
use crate::image::Image;
use crate::value::{self, Scalar};
use model::{ExprId, ExprPool};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::collections::BTreeMap;

pub(crate) const PAGE: u64 = 4096;
const PAGE_BYTES: usize = 4096;

/// One byte of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryByte {
    Const(u8),
    /// The byte at this index, from the lowest, of the expression.
    Part(ExprId, u8),
    /// Nothing is known: uninstrumented code may have written it.
    Unknown,
    /// Fresh memory that nobody wrote.
    Fresh,
}

/// A few bytes; most accesses have at most 16.
pub(crate) type Bytes = SmallVec<[MemoryByte; 16]>;

const UNKNOWN: u8 = 0;
const CONST: u8 = 1;
const PART: u8 = 2;
const FRESH: u8 = 3;

struct Page {
    tags: [u8; PAGE_BYTES],
    data: [u8; PAGE_BYTES],
    /// Only where a tag is `PART`; the index is in `data`.
    parts: Option<Box<[ExprId; PAGE_BYTES]>>,
}

impl Page {
    fn new() -> Box<Self> {
        Box::new(Self { tags: [UNKNOWN; PAGE_BYTES], data: [0; PAGE_BYTES], parts: None })
    }

    fn get(&self, at: usize) -> MemoryByte {
        match self.tags[at] {
            CONST => MemoryByte::Const(self.data[at]),
            PART => match &self.parts {
                Some(parts) => MemoryByte::Part(parts[at], self.data[at]),
                None => MemoryByte::Unknown,
            },
            FRESH => MemoryByte::Fresh,
            _ => MemoryByte::Unknown,
        }
    }

    fn set(&mut self, at: usize, byte: MemoryByte) {
        let (tag, data) = match byte {
            MemoryByte::Const(value) => (CONST, value),
            MemoryByte::Part(id, index) => {
                let parts = self.parts.get_or_insert_with(|| Box::new([ExprId(0); PAGE_BYTES]));
                parts[at] = id;
                (PART, index)
            }
            MemoryByte::Unknown => (UNKNOWN, 0),
            MemoryByte::Fresh => (FRESH, 0),
        };
        self.tags[at] = tag;
        self.data[at] = data;
    }
}

/// Bytes whose values are of no moment unless somebody reads one of them before it is written.
#[derive(Default)]
pub(crate) struct Stale {
    pub bytes: FxHashSet<u64>,
    /// One of them was read.
    pub read: bool,
}

/// What has been done to memory of late.
#[derive(Default)]
pub(crate) struct Trail {
    /// The bytes that were written, and what was there before.
    pub written: Vec<(u64, MemoryByte)>,
    /// There were too many of them.
    pub full: bool,
    pub stale: Vec<Stale>,
}

/// A trail has no more bytes.
const LONGEST_TRAIL: usize = 1 << 16;

impl Trail {
    fn write(&mut self, address: u64, old: MemoryByte) {
        self.full |= self.written.len() >= LONGEST_TRAIL;
        if !self.full {
            self.written.push((address, old));
        }
        for stale in &mut self.stale {
            stale.bytes.remove(&address);
        }
    }

    fn read(&mut self, address: u64, length: u64) {
        for stale in self.stale.iter_mut().filter(|stale| !stale.bytes.is_empty()) {
            let mut range = address..address.saturating_add(length);
            stale.read |= range.any(|at| stale.bytes.contains(&at));
        }
    }
}

/// All memory, by internal address (see `address`).
pub(crate) struct Memory<'r> {
    image: &'r Image<'r>,
    pages: FxHashMap<u64, Box<Page>>,
    /// Mappings whose pages are zeros at first: begin and end.
    zeros: BTreeMap<u64, u64>,
    /// While somebody wants to know ([`crate::idle`]).
    pub trail: Option<Box<Trail>>,
}

impl<'r> Memory<'r> {
    pub fn new(image: &'r Image<'r>) -> Self {
        Self { image, pages: FxHashMap::default(), zeros: BTreeMap::new(), trail: None }
    }

    fn note_written(&mut self, address: u64, length: u64) {
        let Some(mut trail) = self.trail.take() else { return };
        for at in address..address.saturating_add(length) {
            if trail.full {
                break;
            }
            let old = self.page(at / PAGE).get((at % PAGE) as usize);
            trail.write(at, old);
        }
        self.trail = Some(trail);
    }

    /// The bytes were written, although with what was there before.
    pub fn rewrite(&mut self, address: u64, length: u64) {
        self.note_written(address, length);
    }

    /// The byte, for a look that is none of the program's.
    pub fn peek(&mut self, address: u64) -> MemoryByte {
        self.page(address / PAGE).get((address % PAGE) as usize)
    }

    /// Whole pages are zeros where nothing is known to be there. Costs nothing for pages that nobody
    /// touches, of which large mappings mostly consist.
    pub fn zero(&mut self, start: u64, length: u64) {
        let end = start.saturating_add(length);
        if length == 0 || self.zeros.insert(start, end) == Some(end) {
            return;
        }
        let zero = |page: &mut Page| {
            for tag in page.tags.iter_mut().filter(|tag| **tag == FRESH) {
                *tag = CONST;
            }
        };
        let numbers = start / PAGE..end / PAGE;
        if numbers.end - numbers.start < self.pages.len() as u64 {
            numbers.for_each(|number| self.pages.get_mut(&number).map_or((), |page| zero(page)));
        } else {
            let inside = self.pages.iter_mut().filter(|(number, _)| numbers.contains(number));
            inside.for_each(|(_, page)| zero(page));
        }
    }

    fn page(&mut self, number: u64) -> &mut Page {
        let (image, zeros) = (self.image, &self.zeros);
        self.pages.entry(number).or_insert_with(|| {
            let mut page = Page::new();
            let base = number.wrapping_mul(PAGE);
            if base >= HEAP {
                let before = zeros.range(..=base).next_back();
                let is_zero = before.is_some_and(|(_, &end)| base < end);
                page.tags.fill(if is_zero { CONST } else { FRESH });
            }
            image.initial_bytes(base, PAGE, &mut |offset, byte| {
                if let Some(at) = usize::try_from(offset).ok().filter(|&at| at < PAGE_BYTES) {
                    page.set(at, byte);
                }
            });
            page
        })
    }

    pub fn get(&mut self, address: u64) -> MemoryByte {
        if let Some(trail) = &mut self.trail {
            trail.read(address, 1);
        }
        self.page(address / PAGE).get((address % PAGE) as usize)
    }

    pub fn set(&mut self, address: u64, byte: MemoryByte) {
        self.note_written(address, 1);
        self.page(address / PAGE).set((address % PAGE) as usize, byte);
    }

    /// The number that a few bytes make, all in one page, where each is a constant and nobody wants to know of it.
    pub fn number(&mut self, address: u64, length: u64) -> Option<u64> {
        let from = (address % PAGE) as usize;
        let bytes = from..from + usize::try_from(length).ok().filter(|length| *length <= 8)?;
        if self.trail.is_some() || bytes.end > PAGE_BYTES {
            return None;
        }
        let page = self.page(address / PAGE);
        let known = page.tags[bytes.clone()].iter().all(|tag| *tag == CONST);
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |n, b| (n << 8) | u64::from(*b));
        known.then(|| number(&page.data[bytes]))
    }

    pub fn read(&mut self, address: u64, length: u64) -> Bytes {
        if let Some(trail) = &mut self.trail {
            trail.read(address, length);
        }
        let mut bytes = Bytes::with_capacity(length as usize);
        let mut at = address;
        let end = address.saturating_add(length);
        while at < end {
            let stop = end.min((at / PAGE + 1).saturating_mul(PAGE));
            let page = self.page(at / PAGE);
            bytes.extend((at..stop).map(|a| page.get((a % PAGE) as usize)));
            at = stop;
        }
        bytes
    }

    pub fn write(&mut self, address: u64, bytes: &[MemoryByte]) {
        self.note_written(address, bytes.len() as u64);
        let mut at = address;
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = (PAGE - at % PAGE) as usize;
            let (now, later) = rest.split_at(room.min(rest.len()));
            let page = self.page(at / PAGE);
            for (i, &byte) in now.iter().enumerate() {
                page.set((at % PAGE) as usize + i, byte);
            }
            at = at.wrapping_add(now.len() as u64);
            rest = later;
        }
    }

    pub fn fill(&mut self, address: u64, length: u64, byte: MemoryByte) {
        self.note_written(address, length);
        let mut at = address;
        let end = address.saturating_add(length);
        while at < end {
            let stop = end.min((at / PAGE + 1).saturating_mul(PAGE));
            let page = self.page(at / PAGE);
            for a in at..stop {
                page.set((a % PAGE) as usize, byte);
            }
            at = stop;
        }
    }
}

/// The value of at most 16 known bytes, lowest first; unknown ones count as zero.
pub(crate) fn compose(pool: &mut ExprPool, bytes: &[MemoryByte]) -> Scalar {
    if let Some(value) = constant_of(bytes) {
        return Scalar::constant(8 * bytes.len() as u32, value);
    }
    let mut result: Option<Scalar> = None;
    let mut at = 0;
    while let Some(&first) = bytes.get(at) {
        let run = run_length(&bytes[at..]);
        let piece = match first {
            MemoryByte::Part(id, index) => {
                let whole = Scalar::expr(pool, id);
                value::extract(pool, whole, 8 * u32::from(index), 8 * run as u32)
            }
            _ => {
                let value = constant_of(&bytes[at..at + run]).unwrap_or(0);
                Scalar::constant(8 * run as u32, value)
            }
        };
        result = Some(match result {
            None => piece,
            Some(low) => value::concat(pool, piece, low),
        });
        at += run;
    }
    result.unwrap_or(Scalar::constant(8, 0))
}

/// How many bytes from the first on are constants, or consecutive bytes of one expression.
fn run_length(bytes: &[MemoryByte]) -> usize {
    let mut length = 1;
    while let (Some(&a), Some(&b)) = (bytes.get(length - 1), bytes.get(length)) {
        let joins = match (a, b) {
            (MemoryByte::Part(x, i), MemoryByte::Part(y, j)) => x == y && j == i + 1,
            (MemoryByte::Part(..), _) | (_, MemoryByte::Part(..)) => false,
            _ => true,
        };
        if !joins {
            break;
        }
        length += 1;
    }
    length
}

fn constant_of(bytes: &[MemoryByte]) -> Option<u128> {
    bytes.iter().rev().try_fold(0u128, |value, byte| match byte {
        MemoryByte::Const(b) => Some((value << 8) | u128::from(*b)),
        MemoryByte::Part(..) => None,
        MemoryByte::Unknown | MemoryByte::Fresh => Some(value << 8),
    })
}

/// The bytes of a scalar, zero-extended to `length` bytes (at most 16).
pub(crate) fn decompose(pool: &mut ExprPool, scalar: Scalar, length: u64) -> Bytes {
    let length = length.min(16) as u32;
    let scalar = value::resize(pool, scalar, 8 * length, false);
    match scalar.as_const() {
        Some(value) => (0..length).map(|i| MemoryByte::Const((value >> (8 * i)) as u8)).collect(),
        None => {
            let id = scalar.to_expr(pool);
            (0..length).map(|i| MemoryByte::Part(id, i as u8)).collect()
        }
    }
}
