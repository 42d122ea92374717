//! Loads whose values the program guessed while it was recorded (`ir::guesses`): the walk keeps the same
//! values, and so knows what was guessed.

use crate::engine::Engine;
use crate::thread::{Entry, Guess, Stop, contradiction};
use crate::value::{Scalar, Value};
use ir::types::{InstId, TypeId};

impl Engine<'_> {
    /// Reads whether the value of the load that comes next was guessed, if it is one of those.
    pub fn read_guess(&mut self, t: usize) -> Result<(), Stop> {
        let Some((info, id)) = self.current(t) else { return Ok(()) };
        if !info.marks(id).is_guessed() {
            return Ok(());
        }
        let entry = self.next_entry(t)?;
        if entry != Entry::Choice {
            let name = &info.function.name;
            return contradiction(format!("{entry:?} where {name} {id} is a load that is guessed"));
        }
        let wrong = self.threads[t].choose(1)? != 0;
        if let Some(frame) = self.threads[t].code_mut() {
            let kept = frame.kept_of(info.marks(id).kept());
            frame.guess = match (wrong, kept) {
                (true, _) => Guess::Logged,
                (false, Some(value)) => Guess::Right(value),
                (false, None) => Guess::Unknown,
            };
        }
        Ok(())
    }

    /// The value of the current load, which is guessed or comes next in the log; it stays.
    pub fn peek_guess(&mut self, t: usize, ty: TypeId) -> Option<Value> {
        match self.threads[t].code().map(|frame| frame.guess) {
            Some(Guess::Right(value)) => Some(self.kept_value(t, ty, value)),
            Some(Guess::Unknown) => None,
            _ => self.peek_value(t, ty),
        }
    }

    /// The current instruction's value, guessed or from the log; none where it is not known.
    pub fn take_guess(&mut self, t: usize, id: InstId, ty: TypeId) -> Result<Option<Value>, Stop> {
        let frame = self.threads[t].code_mut();
        let guess =
            frame.map_or(Guess::Logged, |it| std::mem::replace(&mut it.guess, Guess::Logged));
        let value = match guess {
            Guess::Right(value) => self.kept_value(t, ty, value),
            Guess::Unknown => return Ok(None),
            Guess::Logged => self.take_value(t, ty)?,
        };
        let number = value.scalar().and_then(Scalar::as_const);
        self.keep(t, id, number.map(|number| number as u64));
        Ok(Some(value))
    }

    fn kept_value(&self, t: usize, ty: TypeId, value: u64) -> Value {
        let bits = self.module(t).scalar_bits(ty).unwrap_or(64);
        Value::constant(bits, u128::from(value))
    }

    /// Keeps what the instruction stored, as the recorded run had it.
    pub fn keep_stored(&mut self, t: usize, id: InstId, value: &Value) {
        let Some((info, _)) = self.current(t) else { return };
        if info.marks(id).kept().is_none() {
            return;
        }
        let recorded = match value.scalar().map(|scalar| (scalar.as_const(), scalar.as_expr())) {
            Some((Some(known), _)) => Some(known),
            Some((None, Some(expr))) => self.recorded_value(expr),
            _ => None,
        };
        self.keep(t, id, recorded.map(|value| value as u64));
    }

    /// The place that goes with the instruction, if one does, has this value now.
    pub(crate) fn keep(&mut self, t: usize, id: InstId, value: Option<u64>) {
        let Some((info, _)) = self.current(t) else { return };
        let place = info.marks(id).kept();
        if let Some(frame) = self.threads[t].code_mut()
            && let Some(kept) = place.and_then(|place| frame.kept.get_mut(place))
        {
            *kept = value;
        }
    }
}
