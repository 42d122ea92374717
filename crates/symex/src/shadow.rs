//! The address pass's view of memory: which bytes two threads touch, one of them writing, without
//! an order between them by thread creation and joining (FastTrack over fork/join alone), and
//! where accesses begin and end.

use crate::clock::VectorClock;
use crate::memory::PAGE;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::BTreeMap;

const PAGE_BYTES: usize = 4096;
/// In `read`: the rest is an index into `read_sets` rather than an epoch.
const SET: u32 = 1 << 31;
const CUT: u8 = 1;
const SHARED: u8 = 2;

struct ShadowPage {
    /// The last write's epoch plus one; 0 for none.
    write: [u32; PAGE_BYTES],
    /// The last read's epoch plus one, or a set of them; 0 for none.
    read: [u32; PAGE_BYTES],
    flags: [u8; PAGE_BYTES],
}

/// A moment of one thread between two creations or joins.
#[derive(Clone, Copy)]
struct Epoch {
    thread: usize,
    clock: u32,
}

/// Per byte, the threads whose own instructions wrote it: 0 for none, the thread plus one, or
/// [`SEVERAL`].
#[derive(Clone, Default)]
pub(crate) struct Writers {
    pages: FxHashMap<u64, Box<[u16; PAGE_BYTES]>>,
}

const SEVERAL: u16 = u16::MAX;

impl Writers {
    /// Notes a write of `thread`.
    pub fn note(&mut self, thread: usize, address: u64, length: u64) {
        let me = writer(thread);
        let end = address.saturating_add(length);
        let mut at = address;
        while at < end {
            let stop = end.min((at / PAGE + 1).saturating_mul(PAGE));
            let page = self.pages.entry(at / PAGE).or_insert_with(|| Box::new([0; PAGE_BYTES]));
            for a in at..stop {
                let seen = &mut page[(a % PAGE) as usize];
                *seen = if *seen == 0 || *seen == me { me } else { SEVERAL };
            }
            at = stop;
        }
    }

    /// Did a thread other than this one write the byte?
    pub fn other_than(&self, thread: usize, address: u64) -> bool {
        let page = self.pages.get(&(address / PAGE));
        let seen = page.map_or(0, |page| page[(address % PAGE) as usize]);
        seen != 0 && seen != writer(thread)
    }
}

/// Threads beyond the numbers that fit count as several.
fn writer(thread: usize) -> u16 {
    u16::try_from(thread + 1).unwrap_or(SEVERAL)
}

/// See the module.
#[derive(Default)]
pub(crate) struct Shadow {
    pages: FxHashMap<u64, Box<ShadowPage>>,
    epochs: Vec<Epoch>,
    current: FxHashMap<(usize, u32), u32>,
    /// Who certainly wrote.
    pub writers: Writers,
    read_sets: Vec<SmallVec<[u32; 4]>>,
    /// What threads touch in an order counts, too.
    ordered: bool,
}

impl Shadow {
    /// Bytes that two threads touch are shared also where creating and joining threads keeps these accesses in order, if
    /// `ordered`.
    pub fn new(ordered: bool) -> Self {
        Self { ordered, ..Self::default() }
    }

    fn epoch(&mut self, thread: usize, clock: u32) -> u32 {
        let epochs = &mut self.epochs;
        *self.current.entry((thread, clock)).or_insert_with(|| {
            epochs.push(Epoch { thread, clock });
            epochs.len() as u32
        })
    }

    /// Notes an access of `thread`, whose clock is `clock`.
    pub fn access(
        &mut self,
        thread: usize,
        clock: &VectorClock,
        address: u64,
        length: u64,
        write: bool,
    ) {
        let now = self.epoch(thread, clock.get(thread));
        self.cut(address);
        let end = address.saturating_add(length);
        self.cut(end);
        let mut at = address;
        while at < end {
            let stop = end.min((at / PAGE + 1).saturating_mul(PAGE));
            let page = self.pages.entry(at / PAGE).or_insert_with(new_page);
            for a in at..stop {
                let byte = Byte { page, at: (a % PAGE) as usize };
                let (epochs, ordered) = (&self.epochs, self.ordered);
                let before = |epoch: u32| {
                    epochs.get(epoch as usize - 1).is_none_or(|epoch| {
                        epoch.thread == thread
                            || (!ordered && epoch.clock <= clock.get(epoch.thread))
                    })
                };
                touch(byte, now, write, &before, &mut self.read_sets);
            }
            at = stop;
        }
    }

    fn cut(&mut self, address: u64) {
        let page = self.pages.entry(address / PAGE).or_insert_with(new_page);
        page.flags[(address % PAGE) as usize] |= CUT;
    }

    /// The shared bytes as cells: (internal address, length), sorted. Cut at every access's
    /// boundaries and at multiples of 8.
    pub fn cells(&self) -> Vec<(u64, u32)> {
        let sorted: BTreeMap<u64, &ShadowPage> =
            self.pages.iter().map(|(&number, page)| (number, &**page)).collect();
        let mut cells: Vec<(u64, u32)> = Vec::new();
        for (number, page) in sorted {
            for (offset, &flags) in page.flags.iter().enumerate() {
                if flags & SHARED == 0 {
                    continue;
                }
                let address = number.wrapping_mul(PAGE).wrapping_add(offset as u64);
                match cells.last_mut() {
                    Some((start, length))
                        if *start + u64::from(*length) == address
                            && flags & CUT == 0
                            && address % 8 != 0 =>
                    {
                        *length += 1;
                    }
                    _ => cells.push((address, 1)),
                }
            }
        }
        cells
    }
}

fn new_page() -> Box<ShadowPage> {
    Box::new(ShadowPage { write: [0; PAGE_BYTES], read: [0; PAGE_BYTES], flags: [0; PAGE_BYTES] })
}

struct Byte<'p> {
    page: &'p mut ShadowPage,
    at: usize,
}

fn touch(
    byte: Byte<'_>,
    now: u32,
    write: bool,
    ordered: &dyn Fn(u32) -> bool,
    sets: &mut Vec<SmallVec<[u32; 4]>>,
) {
    let (page, at) = (byte.page, byte.at);
    let (last_write, last_read) = (page.write[at], page.read[at]);
    if last_write == now || (!write && last_read == now) {
        // Nothing is new, or the thread itself wrote last in this epoch: a write then ordered
        // everything before, and a read adds nothing that this write does not.
        if last_read == 0 || !write {
            return;
        }
    }
    let mut race = last_write != 0 && !ordered(last_write);
    if write {
        race |= match last_read {
            0 => false,
            set if set & SET != 0 => {
                sets[(set & !SET) as usize].iter().any(|&epoch| !ordered(epoch))
            }
            epoch => !ordered(epoch),
        };
        page.write[at] = now;
        if !race {
            page.read[at] = 0;
        }
    } else {
        page.read[at] = merge_read(last_read, now, ordered, sets);
    }
    if race {
        page.flags[at] |= SHARED;
    }
}

/// The reads that matter after one more: those that are not ordered before it.
fn merge_read(
    last: u32,
    now: u32,
    ordered: &dyn Fn(u32) -> bool,
    sets: &mut Vec<SmallVec<[u32; 4]>>,
) -> u32 {
    if last == 0 || (last & SET == 0 && ordered(last)) {
        return now;
    }
    if last & SET != 0 {
        let set = &mut sets[(last & !SET) as usize];
        if !set.contains(&now) {
            set.retain(|epoch| !ordered(*epoch));
            set.push(now);
        }
        return last;
    }
    sets.push(SmallVec::from_slice(&[last, now]));
    (sets.len() as u32 - 1) | SET
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clocks() -> (VectorClock, VectorClock, VectorClock) {
        let mut main = VectorClock::default();
        main.tick(0);
        let before = main.clone();
        let mut child = main.clone();
        child.tick(1);
        main.tick(0);
        (before, main, child)
    }

    #[test]
    fn writers_are_told_apart() {
        let mut writers = Writers::default();
        writers.note(1, 0xfff, 2);
        assert!(writers.other_than(0, 0xfff) && writers.other_than(0, 0x1000));
        assert!(!writers.other_than(1, 0x1000) && !writers.other_than(0, 0x1001));
        writers.note(2, 0x1000, 1);
        assert!(writers.other_than(1, 0x1000) && writers.other_than(2, 0x1000));
    }

    #[test]
    fn accesses_before_the_fork_are_ordered() {
        let (before, _, child) = clocks();
        let mut shadow = Shadow::default();
        shadow.access(0, &before, 0x100, 4, true);
        shadow.access(1, &child, 0x100, 4, true);
        assert_eq!(shadow.cells(), []);
    }

    #[test]
    fn ordered_accesses_are_shared_where_they_are_asked_for() {
        let (before, main, child) = clocks();
        let mut shadow = Shadow::new(true);
        shadow.access(0, &before, 0x100, 4, true);
        shadow.access(1, &child, 0x102, 1, false);
        // What only one thread touches, or only reads, stays what it is.
        shadow.access(0, &before, 0x200, 4, true);
        shadow.access(0, &main, 0x200, 4, false);
        shadow.access(0, &before, 0x300, 4, false);
        shadow.access(1, &child, 0x300, 4, false);
        assert_eq!(shadow.cells(), [(0x102, 1)]);
        shadow.access(0, &main, 0x302, 2, true);
        assert_eq!(shadow.cells(), [(0x102, 1), (0x302, 2)]);
    }

    #[test]
    fn concurrent_reads_are_not_shared_but_a_write_makes_them() {
        let (_, main, child) = clocks();
        let mut shadow = Shadow::default();
        shadow.access(0, &main, 0x100, 8, false);
        shadow.access(1, &child, 0x100, 8, false);
        assert_eq!(shadow.cells(), []);
        shadow.access(0, &main, 0x102, 2, true);
        assert_eq!(shadow.cells(), [(0x102, 2)]);
    }

    #[test]
    fn cells_are_cut_where_accesses_begin_and_end() {
        let (before, main, child) = clocks();
        let mut shadow = Shadow::default();
        shadow.access(0, &before, 0x100, 1, true);
        shadow.access(0, &main, 0x100, 16, true);
        shadow.access(1, &child, 0x104, 4, false);
        shadow.access(1, &child, 0x100, 16, false);
        assert_eq!(shadow.cells(), [(0x100, 1), (0x101, 3), (0x104, 4), (0x108, 8)]);
    }
}
