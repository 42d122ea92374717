//! The functions of libatomic: what objects are accessed with for which the processor has no
//! instruction, as far as the compiler knows (16 bytes without `-mcx16`, structures).

use crate::access::{Grain, Place};
use crate::engine::Engine;
use crate::memory::{self, Bytes};
use crate::report::GapKind;
use crate::thread::ExternalCall;
use crate::value::{self, Scalar, Value};
use model::{BinOp, CmpOp};

/// The largest object whose updates are computed, in bytes.
const LARGEST: u64 = 16;

/// Is this one of the functions for objects of any size?
pub(crate) fn is_atomic(name: &str) -> bool {
    matches!(
        name,
        "__atomic_load" | "__atomic_store" | "__atomic_exchange" | "__atomic_compare_exchange"
    ) || sized(name).is_some()
}

/// The operation and the number of bytes of a function for one size, `__atomic_fetch_add_4`. Those for less than 16 bytes are
/// called where an object need not be aligned.
fn sized(name: &str) -> Option<(&str, u64)> {
    let (operation, size) = name.strip_prefix("__atomic_")?.rsplit_once('_')?;
    let size = match size {
        "1" | "2" | "4" | "8" | "16" => size.parse().ok()?,
        _ => return None,
    };
    let known = matches!(
        operation,
        "load"
            | "store"
            | "exchange"
            | "fetch_add"
            | "fetch_sub"
            | "fetch_and"
            | "fetch_or"
            | "fetch_xor"
            | "fetch_nand"
            | "compare_exchange"
    );
    known.then_some((operation, size))
}

impl<'r> Engine<'r> {
    /// Performs such a call; gives its result.
    pub fn model_atomic(&mut self, t: usize, call: &ExternalCall<'r>, logged: Value) -> Value {
        let argument = |i: usize| call.arguments.get(i).and_then(Value::scalar);
        let operand = |i: usize| call.operands.get(i).copied();
        if let Some((operation, size)) = sized(call.name) {
            let Some(address) = self.address(t, argument(0)) else { return logged };
            let place = Place::new(address, size, operand(0));
            let value = self.value_of(size, argument(1), argument(2));
            return self.sized_atomic(t, operation, place, value, call, logged);
        }
        let Some(size) = self.length(t, argument(0)).filter(|size| *size > 0) else {
            return logged;
        };
        let Some(object) = self.address(t, argument(1)) else { return logged };
        let place = Place::new(object, size, operand(1));
        let Some(second) = self.address(t, argument(2)) else { return logged };
        let second = Place::new(second, size, operand(2));
        match call.name {
            "__atomic_load" => {
                let bytes = self.read(t, place, Grain::Access);
                self.write(t, second, &bytes, Grain::Access);
            }
            "__atomic_store" => {
                let bytes = self.read(t, second, Grain::Access);
                self.write(t, place, &bytes, Grain::Access);
            }
            _ if size > LARGEST => self.gap(
                t,
                GapKind::External(call.name.to_owned()),
                format!("an object of {size} bytes"),
            ),
            "__atomic_exchange" => {
                let new = self.compose_at(t, second);
                let Some(result) = self.address(t, argument(3)) else { return logged };
                let old = self.update(t, place, &mut |_, _| new);
                let bytes = memory::decompose(&mut self.pool, old, size);
                self.write(t, Place::new(result, size, operand(3)), &bytes, Grain::Access);
            }
            _ => {
                let Some(desired) = self.address(t, argument(3)) else { return logged };
                let new = self.compose_at(t, Place::new(desired, size, operand(3)));
                return self.compare_exchange(t, place, second, new, &logged);
            }
        }
        logged
    }

    fn sized_atomic(
        &mut self,
        t: usize,
        operation: &str,
        place: Place,
        value: Option<Scalar>,
        call: &ExternalCall<'r>,
        logged: Value,
    ) -> Value {
        let bin = match operation {
            "load" => {
                let value = self.compose_at(t, place);
                return self.as_logged(value, logged);
            }
            "compare_exchange" => {
                let argument = |i: usize| call.arguments.get(i).and_then(Value::scalar);
                let expected = self.address(t, argument(1));
                let new = self.value_of(place.length, argument(2), argument(3));
                let (Some(expected), Some(new)) = (expected, new) else { return logged };
                let expected = Place::new(expected, place.length, call.operands.get(1).copied());
                return self.compare_exchange(t, place, expected, new, &logged);
            }
            "fetch_add" => Some(BinOp::Add),
            "fetch_sub" => Some(BinOp::Sub),
            "fetch_and" | "fetch_nand" => Some(BinOp::And),
            "fetch_or" => Some(BinOp::Or),
            "fetch_xor" => Some(BinOp::Xor),
            _ => None,
        };
        let Some(value) = value else {
            self.gap(t, GapKind::External(call.name.to_owned()), "unknown value".to_owned());
            return logged;
        };
        if operation == "store" {
            let bytes = memory::decompose(&mut self.pool, value, place.length);
            self.write(t, place, &bytes, Grain::Access);
            return logged;
        }
        let inverted = operation == "fetch_nand";
        let old = self.update(t, place, &mut |engine, old| match bin {
            Some(bin) => {
                let new = value::bin(&mut engine.pool, bin, old, value);
                if inverted { value::not(&mut engine.pool, new) } else { new }
            }
            None => value,
        });
        self.as_logged(old, logged)
    }

    /// Writes `new` if the object is what `expected` holds, and what it is to `expected` if not.
    fn compare_exchange(
        &mut self,
        t: usize,
        place: Place,
        expected: Place,
        new: Scalar,
        logged: &Value,
    ) -> Value {
        let wanted = self.compose_at(t, expected);
        let mut success = Scalar::boolean(false);
        let old = self.update(t, place, &mut |engine, old| {
            success = value::cmp(&mut engine.pool, CmpOp::Eq, old, wanted);
            value::ite(&mut engine.pool, success, new, old)
        });
        let found = memory::decompose(&mut self.pool, old, place.length);
        self.write(t, expected, &found, Grain::Access);
        let width = logged.scalar().map_or(1, |logged| logged.width);
        let result = value::resize(&mut self.pool, success, width, false);
        self.merge(t, &result.into(), logged, "call")
    }

    fn update(
        &mut self,
        t: usize,
        place: Place,
        change: &mut dyn FnMut(&mut Self, Scalar) -> Scalar,
    ) -> Scalar {
        self.read_modify_write(t, place, 8 * place.length as u32, change)
    }

    fn compose_at(&mut self, t: usize, place: Place) -> Scalar {
        let bytes: Bytes = self.read(t, place, Grain::Access);
        memory::compose(&mut self.pool, &bytes)
    }

    /// A value that is passed as one argument or, of 16 bytes, as two.
    fn value_of(&mut self, size: u64, low: Option<Scalar>, high: Option<Scalar>) -> Option<Scalar> {
        let low = low?;
        if size < LARGEST || low.width == 128 {
            return Some(value::resize(&mut self.pool, low, 8 * size as u32, false));
        }
        let mut bytes = memory::decompose(&mut self.pool, low, 8);
        bytes.extend(memory::decompose(&mut self.pool, high?, 8));
        Some(memory::compose(&mut self.pool, &bytes))
    }

    /// A result in the form that the log has: one of 16 bytes may be two words.
    fn as_logged(&mut self, value: Scalar, logged: Value) -> Value {
        if let Some(logged) = logged.scalar() {
            return value::resize(&mut self.pool, value, logged.width, false).into();
        }
        let bytes = memory::decompose(&mut self.pool, value, LARGEST);
        match bytes.split_at_checked(8) {
            Some((low, high)) => {
                let low = memory::compose(&mut self.pool, low);
                let high = memory::compose(&mut self.pool, high);
                Value::aggregate(vec![low.into(), high.into()])
            }
            None => logged,
        }
    }
}
