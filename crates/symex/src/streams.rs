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
    /// Why the stream could not be read to its end.
    error: Option<TraceError>,
}

impl<T> Default for Window<T> {
    fn default() -> Self {
        Self { pieces: None, items: Vec::new(), at: 0, error: None }
    }
}

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

    /// Moves on.
    pub fn pass(&mut self, count: usize) {
        self.at = self.at.saturating_add(count).min(self.items.len());
        self.fill(1);
    }

    /// Reads the rest, which nobody needs; gives its length. Damage in it is found all the same.
    pub fn skip_rest(&mut self) -> usize {
        let mut length = 0;
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
            self.items.drain(..self.at);
            self.at = 0;
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
