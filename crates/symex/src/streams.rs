//! A thread's streams as they are walked: what is needed of them at the moment is in memory.

use trace_format::{Pieces, TraceError};

/// The part of a stream that is in memory: what comes next, if anything does.
///
/// Invariant: it is empty only at the stream's end, or before [`Self::open`].
pub(crate) struct Window<T> {
    pieces: Option<Pieces<T>>,
    items: Vec<T>,
    /// The first one that was not passed.
    at: usize,
    /// Where to go back to, while somebody may want that.
    mark: Option<usize>,
    /// Why the stream could not be read to its end.
    error: Option<TraceError>,
}

impl<T> Default for Window<T> {
    fn default() -> Self {
        Self { pieces: None, items: Vec::new(), at: 0, mark: None, error: None }
    }
}

/// So much is kept behind a mark.
const LONGEST_WAY_BACK: usize = 1 << 18;

impl<T: Copy> Window<T> {
    /// A stream that cannot be opened is empty, and has an error.
    pub fn open(pieces: Result<Pieces<T>, TraceError>) -> Self {
        let mut window = Self::default();
        match pieces {
            Ok(pieces) => window.pieces = Some(pieces),
            Err(error) => window.error = Some(error),
        }
        window.fill(1);
        window
    }

    /// What comes next, which stays.
    pub fn first(&self) -> Option<T> {
        self.items.get(self.at).copied()
    }

    pub fn is_over(&self) -> bool {
        self.at >= self.items.len()
    }

    /// What comes next, at least so much of it unless the stream ends before; it stays.
    pub fn ahead(&mut self, count: usize) -> &[T] {
        self.fill(count);
        self.items.get(self.at..).unwrap_or_default()
    }

    /// Moves on, by what is ready at most ([`ahead`](Self::ahead)).
    pub fn pass(&mut self, count: usize) {
        self.at = self.at.saturating_add(count).min(self.items.len());
        self.fill(1);
    }

    /// Marks the place, in place of the one that was marked before.
    pub fn mark(&mut self) {
        self.mark = Some(self.at);
    }

    /// Nobody goes back.
    pub fn unmark(&mut self) {
        self.mark = None;
    }

    /// How far the marked place is behind; none when there is none, or it is too far.
    pub fn since_mark(&self) -> Option<usize> {
        self.mark.map(|mark| self.at - mark)
    }

    /// Goes back to the marked place, which stays marked.
    pub fn go_back(&mut self) {
        self.at = self.mark.unwrap_or(self.at);
    }

    /// Reads the rest, which nobody needs; gives its length. Damage in it is found all the same.
    pub fn skip_rest(&mut self) -> usize {
        let mut length = 0;
        self.mark = None;
        while !self.is_over() {
            let ready = self.items.len() - self.at;
            length += ready;
            self.pass(ready);
        }
        *self = Self { error: self.error.take(), ..Self::default() };
        length
    }

    /// The error that ended the stream before its end.
    pub fn take_error(&mut self) -> Option<TraceError> {
        self.error.take()
    }

    fn fill(&mut self, count: usize) {
        while self.items.len() - self.at < count
            && let Some(pieces) = &mut self.pieces
        {
            self.mark = self.mark.filter(|mark| self.at - mark <= LONGEST_WAY_BACK);
            let done = self.mark.unwrap_or(self.at);
            self.items.drain(..done);
            self.at -= done;
            self.mark = self.mark.map(|_| 0);
            match pieces(&mut self.items) {
                Ok(true) => {}
                Ok(false) => self.pieces = None,
                Err(error) => {
                    self.pieces = None;
                    self.error = Some(error);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace_format::{InMemory, Streams};

    fn window(piece: usize) -> Window<u32> {
        Window::open(InMemory { path: (0..100).collect(), piece, ..InMemory::default() }.path())
    }

    #[test]
    fn pieces_of_any_length_give_the_same_stream() {
        for piece in [0, 1, 3, 100, 101] {
            let mut window = window(piece);
            for next in 0..100 {
                assert!(!window.is_over(), "{next} in pieces of {piece}");
                assert_eq!(window.first(), Some(next));
                assert_eq!(window.ahead(7).first(), Some(&next));
                assert_eq!(window.ahead(7).len() < 7, next > 93);
                window.pass(1);
            }
            assert!(window.is_over() && window.first().is_none() && window.ahead(1).is_empty());
        }
    }

    #[test]
    fn a_stream_goes_back_to_its_mark() {
        for piece in [0, 1, 3, 100] {
            let mut window = window(piece);
            assert_eq!(window.since_mark(), None);
            // Only what is ready can be passed.
            assert!(window.ahead(7).len() >= 7, "in pieces of {piece}");
            window.pass(7);
            window.mark();
            for _ in 0..3 {
                assert_eq!(window.ahead(20)[..2], [7, 8], "in pieces of {piece}");
                window.pass(20);
                assert_eq!((window.first(), window.since_mark()), (Some(27), Some(20)));
                window.go_back();
            }
            window.unmark();
            window.pass(1);
            assert_eq!((window.first(), window.since_mark()), (Some(8), None));
        }
    }

    #[test]
    fn not_everything_is_kept() {
        let most = 1 << 20;
        let mut next = 0;
        let mut window = Window::open(Ok(Box::new(move |to: &mut Vec<u32>| {
            to.extend(next..next + 1000);
            next += 1000;
            Ok(next < most)
        })));
        window.mark();
        for _ in 0..1000 {
            window.pass(1000);
            assert!(window.items.len() <= super::LONGEST_WAY_BACK + 2000);
        }
        assert_eq!((window.first(), window.since_mark()), (Some(1_000_000), None));
    }

    #[test]
    fn the_rest_is_counted() {
        for piece in [0, 1, 3] {
            let mut window = window(piece);
            window.pass(1);
            assert_eq!(window.skip_rest(), 99);
            assert!(window.is_over());
            assert_eq!(window.skip_rest(), 0);
        }
    }

    #[test]
    fn an_error_ends_the_stream_and_is_kept() {
        let broken = || TraceError::NotATrace { path: "broken".into() };
        let mut left = 2;
        let mut window = Window::open(Ok(Box::new(move |to: &mut Vec<u32>| {
            to.push(left);
            left -= 1;
            if left == 0 { Err(broken()) } else { Ok(true) }
        })));
        assert_eq!(window.ahead(5), [2, 1], "what came before the damage is there");
        window.pass(2);
        assert!(window.is_over());
        assert!(window.take_error().is_some() && window.take_error().is_none());
        let mut closed = Window::<u8>::open(Err(broken()));
        assert!(closed.is_over() && closed.take_error().is_some());
    }
}
