//! What a function keeps of the values at its places, on its stack ([`ir::guesses`]).

use crate::build::Builder;
use crate::hooks::{Callable, Hooks};
use ir::guesses::Guesses;
use ir::types::{InstId, Module, Type, TypeId};
use llvm_sys::prelude::LLVMValueRef;

/// One function's kept values.
pub struct Kept<'p> {
    guesses: &'p Guesses,
    /// Per place: where its value is kept.
    words: Vec<LLVMValueRef>,
}

impl<'p> Kept<'p> {
    /// Makes room on the stack, with zeros in it. The builder must stand behind the entry block's
    /// static objects, in that block.
    pub fn begin(builder: &Builder, guesses: &'p Guesses) -> Self {
        let words: Vec<LLVMValueRef> =
            guesses.places.iter().map(|_| builder.stack_word()).collect();
        for &word in &words {
            builder.store(builder.i64(0), word);
        }
        Self { guesses, words }
    }

    /// Is the load's value guessed?
    pub fn is_guessed(&self, id: InstId) -> bool {
        self.guesses.loads.contains(&id)
    }

    fn word(&self, id: InstId) -> Option<LLVMValueRef> {
        self.words.get(*self.guesses.kept.get(&id)?).copied()
    }

    /// Keeps a value, if the instruction is one of those that do.
    pub fn keep(&self, builder: &Builder, id: InstId, value: LLVMValueRef) {
        if let Some(word) = self.word(id) {
            builder.store(value, word);
        }
    }

    /// Logs whether a load's value was guessed, behind these choices, and gives the choices then;
    /// `None` for a load that is not guessed.
    pub fn guess(
        &self,
        builder: &Builder,
        hooks: &Hooks,
        (module, ty): (&Module, TypeId),
        (id, value): (InstId, LLVMValueRef),
        choices: Option<LLVMValueRef>,
    ) -> Option<LLVMValueRef> {
        let (hook, number): (Callable, LLVMValueRef) = match module.ty(ty) {
            Type::Int(8) => (hooks.guesses[0], value),
            Type::Int(16) => (hooks.guesses[1], value),
            Type::Int(32) => (hooks.guesses[2], value),
            Type::Int(64) => (hooks.guesses[3], value),
            Type::Pointer => (hooks.guesses[3], builder.pointer_to_i64(value)),
            _ => return None,
        };
        let choices = choices.unwrap_or_else(|| builder.i32(1));
        Some(builder.call(hook, &mut [choices, number, self.word(id)?]))
    }
}
