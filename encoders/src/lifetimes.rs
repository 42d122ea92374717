//! When threads live: of those that one thread creates and joins, which can run at the same time, and which run one after the
//! other in every schedule.
//!
//! A program that makes a thread for each request has thousands of them, of which few live at a time.

use model::{EventKind, EventTrace};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The life of a thread that its creator joins: from one to the other of the creator's events, by their indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Life {
    creator: usize,
    forked: u32,
    joined: u32,
}

/// The lives of a trace's threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lifetimes {
    /// By thread; none for one that its creator does not join.
    lives: Vec<Option<Life>>,
}

impl Lifetimes {
    pub(crate) fn of(trace: &EventTrace) -> Self {
        let mut forked: Vec<Option<(usize, u32)>> = vec![None; trace.threads.len()];
        let mut lives = vec![None; trace.threads.len()];
        for event in trace.threads.iter().flat_map(|thread| &thread.events) {
            let event = trace.event(*event);
            let thread = event.thread.index();
            match event.kind {
                EventKind::Fork { child } => {
                    if let Some(slot) = forked.get_mut(child.index()) {
                        *slot = Some((thread, event.index));
                    }
                }
                EventKind::Join { child } => {
                    let begun = forked.get(child.index()).copied().flatten();
                    let begun =
                        begun.filter(|(creator, at)| *creator == thread && *at < event.index);
                    if let (Some((creator, forked)), Some(slot)) =
                        (begun, lives.get_mut(child.index()))
                    {
                        *slot = Some(Life { creator, forked, joined: event.index });
                    }
                }
                _ => {}
            }
        }
        Self { lives }
    }

    /// May the two threads run at the same time? What is not known is taken to be so.
    pub(crate) fn overlap(&self, one: usize, two: usize) -> bool {
        let life = |thread: usize| self.lives.get(thread).copied().flatten();
        match (life(one), life(two)) {
            (Some(one), Some(two)) if one.creator == two.creator => {
                one.forked < two.joined && two.forked < one.joined
            }
            _ => true,
        }
    }

    /// All threads in rows: in each, one is joined before the next one is created. Most rows have one thread.
    pub(crate) fn rows(&self) -> Vec<Vec<usize>> {
        let mut rows: Vec<Vec<usize>> = Vec::new();
        let mut by_begin: Vec<(Life, usize)> = Vec::new();
        for (thread, life) in self.lives.iter().enumerate() {
            match life {
                Some(life) => by_begin.push((*life, thread)),
                None => rows.push(vec![thread]),
            }
        }
        by_begin.sort_unstable_by_key(|(life, thread)| (life.creator, life.forked, *thread));
        // Of the creator at hand: rows by when their last thread was joined.
        let mut open: BinaryHeap<Reverse<(u32, usize)>> = BinaryHeap::new();
        let mut creator = None;
        for (life, thread) in by_begin {
            if creator != Some(life.creator) {
                open.clear();
                creator = Some(life.creator);
            }
            let free = open.peek().filter(|Reverse((joined, _))| *joined < life.forked);
            let row = match free.map(|Reverse((_, row))| *row) {
                Some(row) => {
                    open.pop();
                    row
                }
                None => {
                    rows.push(Vec::new());
                    rows.len() - 1
                }
            };
            rows[row].push(thread);
            open.push(Reverse((life.joined, row)));
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dsl::parse;

    fn lifetimes(text: &str) -> Lifetimes {
        Lifetimes::of(&parse(text).expect("the text is a trace").trace)
    }

    #[test]
    fn threads_that_are_joined_before_others_begin_share_a_row() {
        let text = "
            cell x 8 = 0
            m: fork a
            m: fork b
            m: join a
            m: fork c
            m: join b
            m: join c
            m: fork d
            a: W x 1
            b: W x 2
            c: W x 3
            d: W x 4
        ";
        let found = lifetimes(text);
        let [m, a, b, c, d] = [0, 1, 2, 3, 4];
        assert_eq!(found.rows(), [vec![m], vec![d], vec![a, c], vec![b]]);
        assert!(found.overlap(a, b) && found.overlap(b, c) && !found.overlap(a, c));
        // It is not known when one ends that nobody joins, nor are a creator and its threads told apart.
        assert!(found.overlap(a, d) && found.overlap(m, a));
    }

    #[test]
    fn who_is_joined_by_another_thread_has_a_row_of_its_own() {
        let text = "
            cell x 8 = 0
            m: fork a
            m: fork b
            m: join b
            m: fork c
            m: join c
            a: W x 1
            b: join a
            c: W x 3
        ";
        assert_eq!(lifetimes(text).rows(), [vec![0], vec![1], vec![2, 3]]);
    }
}
