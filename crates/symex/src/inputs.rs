//! What calls of the recorded run gave that a replay cannot compute anew: process ids, times and
//! random numbers. The log has the results of all calls out of instrumented code; those that a
//! schedule can give back ([`INPUT_FUNCTIONS`]) are collected here, thread by thread.
//!
//! Only what the log says is collected, nothing of the walks beyond its end.

use crate::engine::Engine;
use crate::thread::ExternalCall;
use crate::value::{Scalar, Value};
use std::collections::BTreeMap;
use trace_format::layout::{INPUT_FUNCTIONS, InputWrites, input_function};

/// The most words of one execution. A program that asks for more (random numbers, for the most
/// part) would get a schedule of megabytes.
const MOST_WORDS: usize = 65_536;
/// Bytes of a `struct timespec` or `struct timeval`.
const TIME: u64 = 16;

/// What the calls of one function gave in one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// The thread's name, such as `t0.1`.
    pub thread: String,
    /// The function's name as a symbol.
    pub function: String,
    /// In the order of the calls, for each its result and what it wrote
    /// ([`trace_format::layout::InputWrites`]).
    pub words: Vec<u64>,
}

/// The calls of one function in one thread.
#[derive(Default)]
struct Calls {
    words: Vec<u64>,
    /// The log does not tell what one of them gave, or there are too many words. What came before
    /// is good; what comes behind has no place.
    broken: bool,
}

/// What all threads got, by the thread's index and the function's number.
#[derive(Default)]
pub(crate) struct Collected {
    calls: BTreeMap<(usize, usize), Calls>,
    /// The functions called of late and how many words each call gave, while somebody wants to know
    /// ([`crate::idle`]).
    pub recent: Option<Vec<(usize, usize)>>,
}

impl Collected {
    fn add(&mut self, t: usize, function: usize, words: Option<Vec<u64>>) {
        let calls = self.calls.entry((t, function)).or_default();
        let before = calls.words.len();
        match words {
            _ if calls.broken => {}
            Some(words) => calls.words.extend(words),
            None => calls.broken = true,
        }
        // One word too many makes `finish` leave the function out.
        if calls.words.len() > MOST_WORDS {
            calls.words.truncate(MOST_WORDS + 1);
            calls.broken = true;
        }
        if let Some(recent) = &mut self.recent {
            recent.push((function, calls.words.len() - before));
        }
    }

    /// Takes what calls of a thread gave out: those of `gone`, which came right before those of
    /// `last`, the thread's last ones.
    pub fn remove(&mut self, t: usize, gone: &[(usize, usize)], last: &[(usize, usize)]) {
        let mut functions: Vec<usize> = gone.iter().map(|(function, _)| *function).collect();
        functions.sort_unstable();
        functions.dedup();
        for function in functions {
            let words = |calls: &[(usize, usize)]| {
                let own = calls.iter().filter(|call| call.0 == function);
                own.map(|call| call.1).sum::<usize>()
            };
            let Some(calls) = self.calls.get_mut(&(t, function)) else { continue };
            let end = calls.words.len().saturating_sub(words(last));
            calls.words.drain(end.saturating_sub(words(gone))..end);
        }
    }

    /// The inputs by thread and function; `names` are the threads' names. Functions are left out,
    /// those with the most words first, until there are not too many words; their names come second.
    pub fn finish(mut self, names: &[&str]) -> (Vec<Input>, Vec<String>) {
        let mut left_out = Vec::new();
        loop {
            let mut words = vec![0usize; INPUT_FUNCTIONS.len()];
            for ((_, function), calls) in &self.calls {
                words[*function] += calls.words.len();
            }
            if words.iter().sum::<usize>() <= MOST_WORDS {
                break;
            }
            let Some(most) = (0..words.len()).max_by_key(|&function| words[function]) else {
                break;
            };
            self.calls.retain(|(_, function), _| *function != most);
            left_out.push(INPUT_FUNCTIONS[most].name.to_owned());
        }
        let input = |((t, function), calls): ((usize, usize), Calls)| {
            let thread = (*names.get(t)?).to_owned();
            let function = INPUT_FUNCTIONS.get(function)?.name.to_owned();
            (!calls.words.is_empty()).then_some(Input { thread, function, words: calls.words })
        };
        (self.calls.into_iter().filter_map(input).collect(), left_out)
    }
}

impl<'r> Engine<'r> {
    /// A call of uninstrumented code has returned.
    pub fn collect_input(&mut self, t: usize, call: &ExternalCall<'r>, result: &Value) {
        if !self.symbolic() {
            return;
        }
        let Some(number) = input_function(call.name.as_bytes()) else { return };
        self.collected.add(t, number, words(INPUT_FUNCTIONS[number].writes, call, result));
    }

    /// A call whose result is not in the log: what the ones behind it give has no place.
    pub fn miss_input(&mut self, t: usize, name: &str) {
        if let Some(number) = input_function(name.as_bytes()).filter(|_| self.symbolic()) {
            self.collected.add(t, number, None);
        }
    }
}

/// The words of a call; none when the log does not have them.
fn words(writes: InputWrites, call: &ExternalCall<'_>, result: &Value) -> Option<Vec<u64>> {
    let result = result.scalar().and_then(Scalar::as_const)? as u64;
    let (length, written): (u64, &[u8]) = match &call.written {
        Some((length, bytes)) => (*length, bytes),
        None => (0, &[]),
    };
    // How much of what was written counts, in bytes.
    let wanted = match writes {
        InputWrites::Nothing => 0,
        // The pointer was null, or else all of it is there.
        InputWrites::Time => length.min(TIME),
        InputWrites::ResultBytes => u64::try_from(result.cast_signed()).unwrap_or(0),
        InputWrites::ArgumentBytes => {
            let bytes = call.arguments.get(1).and_then(Value::scalar).and_then(Scalar::as_const)?;
            u64::try_from(bytes).ok()?
        }
    };
    let whole = writes != InputWrites::Time || matches!(wanted, 0 | TIME);
    if !whole || wanted > length {
        return None;
    }
    let written = written.get(..usize::try_from(wanted.next_multiple_of(8)).ok()?)?;
    let mut words = vec![result];
    let whole = written.chunks_exact(8).filter_map(|word| word.first_chunk());
    words.extend(whole.map(|word| u64::from_le_bytes(*word)));
    // What was written behind the bytes that count is no input.
    if let (Some(last), Some(rest)) = (words.last_mut(), wanted.checked_rem(8).filter(|&r| r > 0)) {
        *last &= (1 << (8 * rest)) - 1;
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call<'r>(name: &'r str, arguments: &[u128], written: Option<&[u8]>) -> ExternalCall<'r> {
        ExternalCall {
            name,
            address: None,
            arguments: arguments.iter().map(|&value| Value::constant(64, value)).collect(),
            operands: Vec::new(),
            result: ir::types::TypeId(0),
            reallocated: None,
            walked: false,
            walked_result: None,
            performed: false,
            created: None,
            allocated: None,
            written: written.map(|bytes| (bytes.len() as u64, bytes.into())),
            measured: smallvec::SmallVec::new(),
            doubted: false,
            read: false,
            text_read: None,
            went_in: Vec::new(),
            text: None,
            assembly: None,
            tail: false,
            stamp: 0,
            reading: None,
            at_work: false,
            passed: None,
            allocations: 0,
        }
    }

    fn of(
        name: &str,
        arguments: &[u128],
        written: Option<&[u64]>,
        result: u128,
    ) -> Option<Vec<u64>> {
        let number = input_function(name.as_bytes()).expect("a function with inputs");
        let result = Value::constant(64, result);
        let bytes: Option<Vec<u8>> =
            written.map(|words| words.iter().flat_map(|word| word.to_le_bytes()).collect());
        words(INPUT_FUNCTIONS[number].writes, &call(name, arguments, bytes.as_deref()), &result)
    }

    #[test]
    fn a_call_gives_its_result_and_what_it_wrote() {
        assert_eq!(of("getpid", &[], None, 4711), Some(vec![4711]));
        assert_eq!(
            of("time", &[1], Some(&[12]), 12),
            Some(vec![12]),
            "what it writes is its result"
        );
        assert_eq!(of("clock_gettime", &[1, 9], Some(&[5, 6]), 0), Some(vec![0, 5, 6]));
        assert_eq!(of("gettimeofday", &[0, 0], None, 0), Some(vec![0]), "nothing to write to");
        assert_eq!(of("gettimeofday", &[0, 9], Some(&[7]), 0), None, "only the time zone");
        assert_eq!(of("getrandom", &[9, 16], Some(&[1, 2]), 10), Some(vec![10, 1, 2]));
        assert_eq!(
            of("getrandom", &[9, 16], Some(&[1, u64::MAX]), 10),
            Some(vec![10, 1, 0xffff]),
            "no byte more than there are"
        );
        let failed = u128::from(u64::MAX);
        assert_eq!(of("getrandom", &[9, 16], Some(&[1, 2]), failed), Some(vec![u64::MAX]));
        assert_eq!(of("getrandom", &[9, 40], Some(&[1, 2]), 40), None, "the log was cut");
        assert_eq!(of("getentropy", &[9, 16], Some(&[1, 2]), 0), Some(vec![0, 1, 2]));
    }

    #[test]
    fn inputs_come_by_thread_and_function() {
        let mut collected = Collected::default();
        let [pid, random] = [b"getpid" as &[u8], b"rand"].map(|name| input_function(name).unwrap());
        collected.add(1, random, Some(vec![1]));
        collected.add(0, pid, Some(vec![4711]));
        collected.add(1, random, Some(vec![2]));
        collected.add(0, random, None);
        collected.add(0, random, Some(vec![3]));
        let (inputs, left_out) = collected.finish(&["t0", "t0.1"]);
        let input = |thread: &str, function: &str, words: &[u64]| Input {
            thread: thread.to_owned(),
            function: function.to_owned(),
            words: words.to_vec(),
        };
        assert_eq!(inputs, [input("t0", "getpid", &[4711]), input("t0.1", "rand", &[1, 2])]);
        assert!(left_out.is_empty());
    }

    #[test]
    fn a_function_with_too_many_results_is_left_out() {
        let mut collected = Collected::default();
        let [pid, random] = [b"getpid" as &[u8], b"rand"].map(|name| input_function(name).unwrap());
        collected.add(0, pid, Some(vec![4711]));
        for t in 0..2 {
            (0..MOST_WORDS as u64 * 2).for_each(|n| collected.add(t, random, Some(vec![n])));
            assert!(collected.calls[&(t, random)].words.len() <= MOST_WORDS + 1);
        }
        let (inputs, left_out) = collected.finish(&["t0", "t0.1"]);
        assert_eq!(inputs.iter().map(|i| i.function.as_str()).collect::<Vec<_>>(), ["getpid"]);
        assert_eq!(left_out, ["rand"]);
    }
}
