//! What the functions that lead to the acquisition of a lock call the lock.
//!
//! The function that takes it has one word for it, `this->mutex_`, and the function that called that one
//! another, `lot.mutex_`. Who is told to hold the lock around two calls needs the second.

use crate::containers::{UNDECLARED, is_of_library};
use crate::engine::Engine;
use crate::naming::{calling, place_of};
use crate::thread::Frame;
use crate::value::{Scalar, Value};
use ir::name::{self, Part};
use model::{Site, Stack};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// What the functions of a stack call something, place by place.
type Called = Arc<[Option<Arc<str>>]>;

/// The stack, which is kept so that no other takes its place, and the words.
struct Known {
    _stack: Stack,
    words: Called,
}

/// By stack and address.
#[derive(Default)]
pub(crate) struct Words(FxHashMap<(usize, u64), Known>);

impl Engine<'_> {
    /// Notes what the functions of its stack call the lock at an address that an event takes.
    pub(crate) fn note_words(&mut self, t: usize, event: u32, address: u64, size: u64) {
        if !self.symbolic() {
            return;
        }
        let stack = self.stack(t);
        let key = (stack.identity(), address);
        let words = match self.words.0.get(&key) {
            Some(known) => Arc::clone(&known.words),
            None => {
                let words = self.words_of(t, &stack, address, size);
                // The stack of an event about a lock may begin further out.
                let inside = stack.len().saturating_sub(self.sync_stack(t).len());
                let words: Called = words.get(inside..).unwrap_or_default().into();
                let known = Known { _stack: stack, words: Arc::clone(&words) };
                self.words.0.insert(key, known);
                words
            }
        };
        if words.iter().all(Option::is_none) {
            return;
        }
        self.out.set_words(t, event, words);
    }

    fn words_of(
        &mut self,
        t: usize,
        stack: &[Site],
        address: u64,
        size: u64,
    ) -> Vec<Option<Arc<str>>> {
        let part = Part::Object(Some(size));
        let mut words: Vec<Option<Arc<str>>> = Vec::new();
        for at in (0..self.threads[t].frames.len()).rev() {
            let frames = &self.threads[t].frames;
            let Some(Frame::Code(frame)) = frames.get(at) else { continue };
            let (info, module, next) = (frame.info, frame.module, frame.next.index());
            let levels = self.chain(place_of(frame)).len();
            let passed = self.passed_on(t, at, address);
            let call = passed.and_then(|passed| Some((passed, calling(info.function, next)?)));
            for level in 0..levels {
                words.push(call.and_then(|(passed, call)| {
                    let key = ((info.module, info.id, call, passed, part), level);
                    let known = self.inlined_names.entry(key).or_insert_with(|| {
                        let place = (call, level);
                        let name =
                            name::argument_part_in(module, info.function, place, passed, part);
                        name.map(Arc::from)
                    });
                    known.clone()
                }));
            }
        }
        // Where frames were joined, nobody knows whose word is whose.
        if words.len() != stack.len() {
            return Vec::new();
        }
        for (word, site) in words.iter_mut().zip(stack) {
            let is_own = |name: &Arc<str>| !site.is_in_library() && !is_of_library(name, None);
            *word = word.take().filter(is_own);
        }
        words
    }

    /// The argument of the call that a frame of code is in, and how far behind it the address lies.
    fn passed_on(&mut self, t: usize, frame: usize, address: u64) -> Option<(usize, u64)> {
        let frames = &self.threads[t].frames;
        let (operands, callee) = match frames.get(frame + 1)? {
            Frame::Code(called) => (&called.arguments, Some((called.module, called.info.function))),
            Frame::External(called) => (&called.call.as_ref()?.arguments, None),
        };
        let arguments: Vec<Option<Scalar>> = operands.iter().map(Value::scalar).collect();
        let size = |argument| match callee {
            Some((module, function)) => name::pointee_size(module, function, argument),
            None => Some(UNDECLARED),
        };
        self.passed(t, &arguments, address, size)
    }
}
