//! The schedule to follow, parsed from its text (docs/schedule-format.md).

use crate::layout::{SCHEDULE_HEAD, input_function, site_hash};
use crate::memory::{self, List};

/// Where a turn ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// At a passage of a site.
    Site {
        /// [`site_hash`] of its name.
        hash: u64,
        /// The thread's so-manieth passage, from 1.
        occurrence: u64,
    },
    /// `$`: the thread's end.
    End,
    /// `!`: the process's end by its failure.
    Failure,
}

/// A turn of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Its line in the text, from 1.
    pub line: u32,
    /// [`thread_hash`] of the thread's name.
    pub thread: u64,
    /// Where it ends.
    pub target: Target,
    /// `+`: at the first scheduling point behind the target rather than before it.
    pub past: bool,
}

/// A place that is announced when it is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its number.
    pub number: u64,
    /// [`thread_hash`] of the thread's name.
    pub thread: u64,
    /// [`site_hash`] of the site's name.
    pub hash: u64,
    /// The thread's so-manieth passage, from 1.
    pub occurrence: u64,
}

/// A value that calls of a function get back, so many times in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Input {
    /// [`thread_hash`] of the thread's name.
    pub thread: u64,
    /// The function's place in `layout::INPUT_FUNCTIONS`.
    pub function: usize,
    /// Its place among all values of the text.
    pub order: usize,
    /// The value.
    pub value: u64,
    /// How often it comes.
    pub count: u64,
}

/// Why a text is no schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1.
    pub line: u32,
    /// What is wrong with it.
    pub what: &'static str,
}

/// A schedule. Its memory is never given back.
#[derive(Debug)]
pub struct Script {
    turns: List<Turn>,
    marks: List<Mark>,
    /// Sorted, that is by thread, function and order.
    inputs: List<Input>,
    /// [`thread_hash`] of the threads that may poll for ever.
    polls: List<u64>,
    waits: List<u64>,
    /// Names behind hashes, those of threads and those of sites, sorted by hash.
    names: List<(u64, &'static [u8])>,
    /// The hashes of the sites, sorted.
    anchors: List<u64>,
    hold: bool,
    lines: u32,
}

impl Script {
    /// Parses a schedule's text.
    ///
    /// # Errors
    ///
    /// The first line that is wrong, and why.
    pub fn parse(text: &'static [u8]) -> Result<Self, Problem> {
        let lines = text.split(|&byte| byte == b'\n').count();
        let values = text.split(|&byte| byte == b'\n').map(values_of_line).sum();
        let no_memory = Problem { line: 1, what: "there is no memory for the schedule" };
        let mut script = Self {
            turns: List::with_room(lines).ok_or(no_memory)?,
            marks: List::with_room(lines).ok_or(no_memory)?,
            inputs: List::with_room(values).ok_or(no_memory)?,
            polls: List::with_room(lines).ok_or(no_memory)?,
            waits: List::with_room(lines).ok_or(no_memory)?,
            names: List::with_room(2 * lines).ok_or(no_memory)?,
            anchors: List::with_room(lines).ok_or(no_memory)?,
            hold: false,
            lines: 0,
        };
        let mut state = Reading::default();
        for line in text.split(|&byte| byte == b'\n') {
            state.line = state.line.saturating_add(1);
            script.line(&mut state, line).map_err(|what| Problem { line: state.line, what })?;
        }
        script.lines = state.line;
        script.anchors.as_mut_slice().sort_unstable();
        script.inputs.as_mut_slice().sort_unstable();
        script.names.as_mut_slice().sort_unstable_by_key(|(hash, _)| *hash);
        Ok(script)
    }

    fn line(&mut self, state: &mut Reading, line: &'static [u8]) -> Result<(), &'static str> {
        let mut words = Words(without_comment(line));
        let Some(first) = words.next() else {
            return if state.line == 1 { Err(NO_HEAD) } else { Ok(()) };
        };
        if state.line == 1 {
            let mut head = Words(SCHEDULE_HEAD.as_bytes());
            let right = head.next() == Some(first) && head.next() == words.next();
            return if right && words.next().is_none() { Ok(()) } else { Err(NO_HEAD) };
        }
        match first {
            b"end" => self.end(state, words),
            b"mark" => self.mark(words),
            b"input" => self.input(words),
            b"polls" => {
                let thread = self.only_thread(words, "`polls THREAD` expected")?;
                self.polls.push(thread);
                Ok(())
            }
            b"waits" => {
                let thread = self.only_thread(words, "`waits THREAD` expected")?;
                self.waits.push(thread);
                Ok(())
            }
            _ => self.turn(state, first, words),
        }
    }

    fn end(&mut self, state: &mut Reading, mut words: Words) -> Result<(), &'static str> {
        if !self.turns.as_slice().is_empty() {
            return Err("directives stand before the turns");
        }
        if state.ended {
            return Err("a second `end`");
        }
        state.ended = true;
        match (words.next(), words.next()) {
            (Some(b"hold"), None) => self.hold = true,
            (Some(b"run"), None) => {}
            _ => return Err("`end hold` or `end run` expected"),
        }
        Ok(())
    }

    fn mark(&mut self, mut words: Words) -> Result<(), &'static str> {
        const FORM: &str = "`mark N THREAD SITE [@K]` expected";
        if !self.turns.as_slice().is_empty() {
            return Err("directives stand before the turns");
        }
        let number = words.next().and_then(number).ok_or(FORM)?;
        let thread = self.thread(words.next().ok_or(FORM)?)?;
        let hash = self.site(words.next().ok_or(FORM)?)?;
        let occurrence = match words.next() {
            None => 1,
            Some(word) => occurrence(word).ok_or(FORM)?,
        };
        if words.next().is_some() {
            return Err(FORM);
        }
        self.marks.push(Mark { number, thread, hash, occurrence });
        Ok(())
    }

    /// The thread of a directive that has nothing else.
    fn only_thread(&mut self, mut words: Words, form: &'static str) -> Result<u64, &'static str> {
        if !self.turns.as_slice().is_empty() {
            return Err("directives stand before the turns");
        }
        let thread = self.thread(words.next().ok_or(form)?)?;
        if words.next().is_some() { Err(form) } else { Ok(thread) }
    }

    /// Functions that are not known were added to the format later.
    fn input(&mut self, mut words: Words) -> Result<(), &'static str> {
        const FORM: &str = "`input THREAD FUNCTION VALUE...` expected";
        if !self.turns.as_slice().is_empty() {
            return Err("directives stand before the turns");
        }
        let thread = self.thread(words.next().ok_or(FORM)?)?;
        let function = input_function(words.next().ok_or(FORM)?);
        let mut any = false;
        for word in words {
            let (value, count) = run(word).ok_or("a value such as 7, 0x7 or 7x100 expected")?;
            any = true;
            if let Some(function) = function {
                let order = self.inputs.as_slice().len();
                self.inputs.push(Input { thread, function, order, value, count });
            }
        }
        if any { Ok(()) } else { Err(FORM) }
    }

    fn turn(
        &mut self,
        state: &Reading,
        thread: &'static [u8],
        mut words: Words,
    ) -> Result<(), &'static str> {
        const FORM: &str = "`THREAD > SITE [@K] [+]`, `THREAD > $` or `THREAD !` expected";
        if self.turns.as_slice().last().is_some_and(|turn| turn.target == Target::Failure) {
            return Err("nothing follows the turn `THREAD !`");
        }
        let thread = self.thread(thread)?;
        let (mut target, mut past) = (Target::Failure, false);
        match words.next() {
            Some(b"!") => {}
            Some(b">") => match words.next().ok_or(FORM)? {
                b"$" => target = Target::End,
                site => {
                    let hash = self.site(site)?;
                    let mut next = words.next();
                    let mut passage = 1;
                    if let Some(number) = next.and_then(occurrence) {
                        passage = number;
                        next = words.next();
                    }
                    target = Target::Site { hash, occurrence: passage };
                    match next {
                        None => {}
                        Some(b"+") => past = true,
                        Some(word) if word.starts_with(b"@") => {
                            return Err("`@` is followed by a number from 1");
                        }
                        Some(_) => return Err(FORM),
                    }
                }
            },
            _ => return Err(FORM),
        }
        if words.next().is_some() {
            return Err(FORM);
        }
        self.turns.push(Turn { line: state.line, thread, target, past });
        Ok(())
    }

    fn thread(&mut self, name: &'static [u8]) -> Result<u64, &'static str> {
        let mut parts = name.split(|&byte| byte == b'.');
        let right = parts.next() == Some(b"t0") && parts.all(|part| number(part) > Some(0));
        if !right {
            return Err("a directive or a thread (`t0`, `t0.1`, ...) expected");
        }
        let hash = thread_hash(name);
        self.names.push((hash, name));
        Ok(hash)
    }

    fn site(&mut self, name: &'static [u8]) -> Result<u64, &'static str> {
        let sync = name.len() > 1 && name.starts_with(b"~");
        let gate = name.iter().filter(|&&byte| byte == b':').count() == 3;
        if !sync && !gate {
            return Err("a site (`FILE:FUNCTION:KIND:PLACE`, or `~` and a name) expected");
        }
        let hash = site_hash(name);
        self.names.push((hash, name));
        self.anchors.push(hash);
        Ok(hash)
    }

    /// The turns in order.
    #[must_use]
    pub fn turns(&self) -> &'static [Turn] {
        self.turns.as_slice()
    }

    /// The places to announce.
    #[must_use]
    pub fn marks(&self) -> &'static [Mark] {
        self.marks.as_slice()
    }

    /// The threads that may poll for ever, by their [`thread_hash`].
    #[must_use]
    pub fn polls(&self) -> &'static [u64] {
        self.polls.as_slice()
    }

    /// The threads whose long time limits do not end at the failure, by their [`thread_hash`].
    #[must_use]
    pub fn waits(&self) -> &'static [u64] {
        self.waits.as_slice()
    }

    /// Is there anything that calls get back?
    #[must_use]
    pub fn has_inputs(&self) -> bool {
        !self.inputs.as_slice().is_empty()
    }

    /// What calls of a function get back in a thread.
    #[must_use]
    pub fn inputs(&self, thread: u64, function: usize) -> &'static [Input] {
        let all = self.inputs.as_slice();
        let begin = all.partition_point(|i| (i.thread, i.function) < (thread, function));
        let end = all.partition_point(|i| (i.thread, i.function) <= (thread, function));
        all.get(begin..end).unwrap_or(&[])
    }

    /// `end hold`.
    #[must_use]
    pub fn hold_at_end(&self) -> bool {
        self.hold
    }

    /// The name of a site that the schedule mentions, for messages; else empty.
    #[must_use]
    pub fn site_text(&self, hash: u64) -> &'static [u8] {
        let names = self.names.as_slice();
        let found = names.binary_search_by_key(&hash, |(hash, _)| *hash).ok();
        found.and_then(|index| names.get(index)).map_or(&[], |(_, name)| name)
    }

    /// The name of a thread that the schedule mentions, by its [`thread_hash`]; else empty. The
    /// scheduler needs it for messages, and to find who has to create a thread.
    #[must_use]
    pub fn thread_text(&self, hash: u64) -> &'static [u8] {
        self.site_text(hash)
    }

    /// Is this a site that the schedule mentions?
    #[must_use]
    pub fn is_anchor(&self, hash: u64) -> bool {
        self.anchors.as_slice().binary_search(&hash).is_ok()
    }

    /// How many lines the text has.
    #[must_use]
    pub fn lines(&self) -> u32 {
        self.lines
    }
}

const NO_HEAD: &str = "`symbiosis-schedule 1` expected";

/// What is known while reading.
#[derive(Default)]
struct Reading {
    line: u32,
    ended: bool,
}

/// The words of a line.
struct Words(&'static [u8]);

impl Iterator for Words {
    type Item = &'static [u8];

    fn next(&mut self) -> Option<&'static [u8]> {
        let rest = self.0.trim_ascii_start();
        let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        let (word, rest) = rest.split_at_checked(end)?;
        self.0 = rest;
        if word.is_empty() { None } else { Some(word) }
    }
}

/// A comment begins with a space and a hash, or with a hash at the line's beginning.
fn without_comment(line: &[u8]) -> &[u8] {
    if line.starts_with(b"#") {
        return b"";
    }
    let comment = line.windows(2).position(|pair| matches!(pair, [b' ' | b'\t', b'#']));
    comment.and_then(|at| line.get(..at)).unwrap_or(line)
}

/// How many values there are in a line, if it has any.
fn values_of_line(line: &'static [u8]) -> usize {
    let mut words = Words(without_comment(line));
    if words.next() == Some(b"input") { words.count() } else { 0 }
}

/// `VALUE` or `VALUExN` with N from 1.
fn run(word: &[u8]) -> Option<(u64, u64)> {
    let (digits, hexadecimal) = match word.strip_prefix(b"0x") {
        Some(digits) => (digits, true),
        None => (word, false),
    };
    let end = digits.iter().position(|&byte| byte == b'x').unwrap_or(digits.len());
    let (value, count) = digits.split_at_checked(end)?;
    let value = if hexadecimal { hexadecimal_number(value)? } else { number(value)? };
    let count = match count.strip_prefix(b"x") {
        Some(count) => number(count).filter(|count| *count > 0)?,
        None => 1,
    };
    Some((value, count))
}

/// A number in hexadecimal digits; none when it is not, or too large.
fn hexadecimal_number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    digits.iter().try_fold(0u64, |number, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(number << 4 | u64::from(digit))
    })
}

/// A number in decimal digits; none when it is not, or too large.
pub fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// `@K` with K from 1.
fn occurrence(word: &[u8]) -> Option<u64> {
    word.strip_prefix(b"@").and_then(number).filter(|number| *number > 0)
}

/// The number that stands for a thread's name.
#[must_use]
pub const fn thread_hash(name: &[u8]) -> u64 {
    site_hash(name)
}

/// A copy of the schedule's text that stays when the program overwrites its environment.
#[must_use]
pub fn keep_text(text: &[u8]) -> Option<&'static [u8]> {
    memory::copy(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(name: &str, occurrence: u64) -> Target {
        Target::Site { hash: site_hash(name.as_bytes()), occurrence }
    }

    #[test]
    fn every_form_of_line_is_understood() {
        let text = b"symbiosis-schedule 1\nend hold\npolls t0.1\nwaits t0\nmark 7 t0.1 ~exit @2 # seen\r\n\
            t0 > bank.c:main:call:pthread_join\n#t9 is no thread\nt0.1 > a.c:f:write:g/2 @3 +   # x\n\
            t0.12.3 > ~mutex_lock +\n\tt0.1 >  $\nt0 !\n";
        let script = Script::parse(text).expect("right");
        let (t0, t01) = (thread_hash(b"t0"), thread_hash(b"t0.1"));
        let turn = |line, thread, target, past| Turn { line, thread, target, past };
        assert_eq!(
            script.turns(),
            [
                turn(6, t0, site("bank.c:main:call:pthread_join", 1), false),
                turn(8, t01, site("a.c:f:write:g/2", 3), true),
                turn(9, thread_hash(b"t0.12.3"), site("~mutex_lock", 1), true),
                turn(10, t01, Target::End, false),
                turn(11, t0, Target::Failure, false),
            ]
        );
        let hash = site_hash(b"~exit");
        assert_eq!(script.marks(), [Mark { number: 7, thread: t01, hash, occurrence: 2 }]);
        assert!(script.hold_at_end());
        assert_eq!(script.polls(), [t01]);
        assert_eq!(script.waits(), [t0]);
        assert!(script.is_anchor(site_hash(b"a.c:f:write:g/2")));
        assert!(script.is_anchor(hash));
        assert!(!script.is_anchor(t0), "a thread is no site");
        assert!(!script.is_anchor(site_hash(b"a.c:f:write:g")));
        assert_eq!(script.site_text(site_hash(b"a.c:f:write:g/2")), b"a.c:f:write:g/2");
        assert_eq!(script.thread_text(t01), b"t0.1");
        assert_eq!(script.site_text(1), b"");
    }

    #[test]
    fn inputs_are_found_by_thread_and_function() {
        let text = b"symbiosis-schedule 1\ninput t0.1 rand 1 2x3 # two\ninput t0 rand 9\n\
            input t0.1 getpid 0xFfx2\ninput t0 of_the_future 1\ninput t0.1 rand 3 1\nt0 > $\n";
        let script = Script::parse(text).expect("right");
        let found = |thread: &str, function: &str| -> Vec<(u64, u64)> {
            let function = input_function(function.as_bytes()).expect("known");
            let inputs = script.inputs(thread_hash(thread.as_bytes()), function);
            inputs.iter().map(|input| (input.value, input.count)).collect()
        };
        assert_eq!(found("t0.1", "rand"), [(1, 1), (2, 3), (3, 1), (1, 1)]);
        assert_eq!(found("t0", "rand"), [(9, 1)]);
        assert_eq!(found("t0.1", "getpid"), [(255, 2)]);
        assert_eq!(found("t0", "getpid"), []);
    }

    #[test]
    fn a_schedule_without_turns_is_one() {
        let script = Script::parse(b"symbiosis-schedule 1").expect("right");
        assert!(script.turns().is_empty() && !script.hold_at_end());
        let script = Script::parse(b"symbiosis-schedule 1\nend run\n").expect("right");
        assert!(!script.hold_at_end());
    }

    #[test]
    fn wrong_lines_are_named() {
        for (text, line, what) in [
            ("", 1, "symbiosis-schedule"),
            ("\nsymbiosis-schedule 1\n", 1, "symbiosis-schedule"),
            ("symbiosis-schedule 2\n", 1, "symbiosis-schedule"),
            ("symbiosis-schedule 1 x\n", 1, "symbiosis-schedule"),
            ("symbiosis-schedule 1\nend\n", 2, "end hold"),
            ("symbiosis-schedule 1\nend run\nend hold\n", 3, "second"),
            ("symbiosis-schedule 1\nt0 > $\nend hold\n", 3, "before the turns"),
            ("symbiosis-schedule 1\nt0 > $\nmark 1 t0 ~exit\n", 3, "before the turns"),
            ("symbiosis-schedule 1\nmark x t0 ~exit\n", 2, "mark N"),
            ("symbiosis-schedule 1\nmark 1 t0 ~exit @0\n", 2, "mark N"),
            ("symbiosis-schedule 1\nmark 1 t0 ~exit @1 +\n", 2, "mark N"),
            ("symbiosis-schedule 1\nt0 > $\ninput t0 rand 1\n", 3, "before the turns"),
            ("symbiosis-schedule 1\npolls\n", 2, "polls THREAD"),
            ("symbiosis-schedule 1\npolls t0 t0.1\n", 2, "polls THREAD"),
            ("symbiosis-schedule 1\npolls x\n", 2, "a thread"),
            ("symbiosis-schedule 1\nwaits\n", 2, "waits THREAD"),
            ("symbiosis-schedule 1\nt0 > $\npolls t0\n", 3, "before the turns"),
            ("symbiosis-schedule 1\ninput t0 rand\n", 2, "input THREAD"),
            ("symbiosis-schedule 1\ninput t0 rand 1x0\n", 2, "a value"),
            ("symbiosis-schedule 1\ninput t0 rand 0x\n", 2, "a value"),
            ("symbiosis-schedule 1\ninput t0 rand 0x11112222333344445\n", 2, "a value"),
            ("symbiosis-schedule 1\ninput t0 rand -1\n", 2, "a value"),
            ("symbiosis-schedule 1\n\nt1 > $\n", 3, "a thread"),
            ("symbiosis-schedule 1\nt0. > $\n", 2, "a thread"),
            ("symbiosis-schedule 1\nt0.0 > $\n", 2, "a thread"),
            ("symbiosis-schedule 1\nt0.x > $\n", 2, "a thread"),
            ("symbiosis-schedule 1\nt0\n", 2, "THREAD"),
            ("symbiosis-schedule 1\nt0 >\n", 2, "THREAD"),
            ("symbiosis-schedule 1\nt0 > $ +\n", 2, "THREAD"),
            ("symbiosis-schedule 1\nt0 > main\n", 2, "a site"),
            ("symbiosis-schedule 1\nt0 > ~\n", 2, "a site"),
            ("symbiosis-schedule 1\nt0 > a:b:c:d:e\n", 2, "a site"),
            ("symbiosis-schedule 1\nt0 > ~exit @0\n", 2, "from 1"),
            ("symbiosis-schedule 1\nt0 > ~exit @18446744073709551616\n", 2, "from 1"),
            ("symbiosis-schedule 1\nt0 > ~exit + @2\n", 2, "THREAD"),
            ("symbiosis-schedule 1\nt0 !\nt0 > $\n", 3, "nothing follows"),
        ] {
            let text = keep_text(text.as_bytes()).expect("memory");
            let problem = Script::parse(text).expect_err("wrong");
            assert_eq!(problem.line, line, "{problem:?} {:?}", text.escape_ascii().to_string());
            assert!(problem.what.contains(what), "{problem:?}");
        }
    }
}
