//! Scripts as text: `docs/schedule-format.md` is the contract.

use std::fmt;
use thiserror::Error;
use trace_format::layout::SCHEDULE_HEAD;

/// What happens behind the last turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// All threads but the one of the last turn stay where they are.
    Hold,
    /// All threads go on, one at a time.
    #[default]
    Run,
}

/// A place whose passing is announced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The number that is announced.
    pub number: u64,
    /// The thread's name, such as `t0.1`.
    pub thread: String,
    /// The site's name.
    pub site: String,
    /// The thread's so-manieth passage of the site, from 1.
    pub occurrence: u64,
}

/// What the calls of one function gave in one thread, for giving it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// The thread's name, such as `t0.1`.
    pub thread: String,
    /// The function's name as a symbol.
    pub function: String,
    /// In the order of the calls, for each its result and what it wrote
    /// ([`trace_format::layout::INPUT_FUNCTIONS`]).
    pub words: Vec<u64>,
}

/// Where a turn ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// At a passage of a site.
    Site {
        /// The site's name.
        site: String,
        /// The thread's so-manieth passage of the site, from 1.
        occurrence: u64,
        /// Not before that passage, but at the first scheduling point behind it.
        past: bool,
    },
    /// When the thread has ended, or (the initial thread) the process exits.
    End,
    /// When the process ends by its failure; only of the last turn.
    Failure,
}

/// A thread runs until it is at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The thread's name, such as `t0.1`.
    pub thread: String,
    /// The place.
    pub target: Target,
    /// For people; one line without a leading or trailing space.
    pub comment: Option<String>,
}

/// A schedule in terms of places of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// What happens behind the last turn.
    pub end: End,
    /// Threads that may poll for ever: when nobody else gets on, the run is stuck.
    pub polls: Vec<String>,
    /// Threads whose long time limit does not end at the failure's turn: the run is stuck when all wait.
    pub waits: Vec<String>,
    /// What to give back; no two of one thread and function.
    pub inputs: Vec<Input>,
    /// The places to announce.
    pub marks: Vec<Mark>,
    /// The turns, first to last.
    pub turns: Vec<Turn>,
}

/// Why a text is not a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line} of the schedule: {what}")]
pub struct ParseError {
    /// The line's number, from 1.
    pub line: u32,
    /// What is wrong with it.
    pub what: String,
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{SCHEDULE_HEAD}")?;
        match self.end {
            End::Hold => writeln!(f, "end hold")?,
            End::Run => writeln!(f, "end run")?,
        }
        self.polls.iter().try_for_each(|thread| writeln!(f, "polls {thread}"))?;
        self.waits.iter().try_for_each(|thread| writeln!(f, "waits {thread}"))?;
        self.inputs.iter().try_for_each(|input| write!(f, "{input}"))?;
        for mark in &self.marks {
            write!(f, "mark {} {} ", mark.number, mark.thread)?;
            passage(f, &mark.site, mark.occurrence)?;
            writeln!(f)?;
        }
        self.turns.iter().try_for_each(|turn| writeln!(f, "{turn}"))
    }
}

/// No line with inputs is longer, in bytes, unless a single value makes it so.
const INPUT_LINE: usize = 100;

impl fmt::Display for Input {
    /// One or more lines, each with its end; none when there are no values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = String::new();
        for run in self.words.chunk_by(|a, b| a == b) {
            let Some(&value) = run.first() else { continue };
            let mut word = match u32::try_from(value) {
                // `0x3` is three in hexadecimal, not three zeros.
                Ok(0) if run.len() > 1 => " 0x0".to_owned(),
                Ok(value) => format!(" {value}"),
                Err(_) => format!(" {value:#x}"),
            };
            if run.len() > 1 {
                word.push_str(&format!("x{}", run.len()));
            }
            if !line.is_empty() && line.len() + word.len() > INPUT_LINE {
                writeln!(f, "{line}")?;
                line.clear();
            }
            if line.is_empty() {
                line = format!("input {} {}", self.thread, self.function);
            }
            line.push_str(&word);
        }
        if line.is_empty() { Ok(()) } else { writeln!(f, "{line}") }
    }
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.thread)?;
        match &self.target {
            Target::Site { site, occurrence, past } => {
                write!(f, "> ")?;
                passage(f, site, *occurrence)?;
                if *past {
                    write!(f, " +")?;
                }
            }
            Target::End => write!(f, "> $")?,
            Target::Failure => write!(f, "!")?,
        }
        match &self.comment {
            Some(comment) => write!(f, " # {comment}"),
            None => Ok(()),
        }
    }
}

/// `SITE [@K]`.
fn passage(f: &mut fmt::Formatter<'_>, site: &str, occurrence: u64) -> fmt::Result {
    match occurrence {
        1 => write!(f, "{site}"),
        _ => write!(f, "{site} @{occurrence}"),
    }
}

/// Reads a schedule's text.
///
/// # Errors
/// At the first line that the format does not allow.
pub fn parse(text: &str) -> Result<Script, ParseError> {
    let mut script = Script::default();
    let mut ended = false;
    let mut lines = text.lines().zip(1u32..);
    match lines.next() {
        Some((head, _)) if head.trim_end() == SCHEDULE_HEAD => {}
        _ => return Err(error(1, format!("should be `{SCHEDULE_HEAD}`"))),
    }
    for (line, number) in lines {
        let (words, comment) = split_comment(line);
        let words: Vec<&str> = words.split_whitespace().collect();
        let result = match words.as_slice() {
            [] => Ok(()),
            ["end", rest @ ..] => match (ended, script.turns.is_empty()) {
                (false, true) => parse_end(rest).map(|end| {
                    ended = true;
                    script.end = end;
                }),
                (true, _) => Err("a second `end`".to_owned()),
                (_, false) => Err("`end` has to come before the turns".to_owned()),
            },
            ["polls", rest @ ..] => match (script.turns.is_empty(), rest) {
                (true, [thread]) => parse_thread(thread).map(|thread| script.polls.push(thread)),
                (true, _) => Err("should be `polls THREAD`".to_owned()),
                (false, _) => Err("`polls` has to come before the turns".to_owned()),
            },
            ["waits", rest @ ..] => match (script.turns.is_empty(), rest) {
                (true, [thread]) => parse_thread(thread).map(|thread| script.waits.push(thread)),
                (true, _) => Err("should be `waits THREAD`".to_owned()),
                (false, _) => Err("`waits` has to come before the turns".to_owned()),
            },
            ["input", rest @ ..] => match script.turns.is_empty() {
                true => parse_input(rest, &mut script.inputs),
                false => Err("`input` has to come before the turns".to_owned()),
            },
            ["mark", rest @ ..] => match script.turns.is_empty() {
                true => parse_mark(rest).map(|mark| script.marks.push(mark)),
                false => Err("`mark` has to come before the turns".to_owned()),
            },
            _ if fails(&script) => Err("`!` has to be the last turn".to_owned()),
            [thread, rest @ ..] => {
                parse_turn(thread, rest, comment).map(|turn| script.turns.push(turn))
            }
        };
        result.map_err(|what| error(number, what))?;
    }
    Ok(script)
}

fn error(line: u32, what: impl Into<String>) -> ParseError {
    ParseError { line, what: what.into() }
}

fn fails(script: &Script) -> bool {
    script.turns.last().is_some_and(|turn| turn.target == Target::Failure)
}

/// A line's words, and what it says behind ` #`.
fn split_comment(line: &str) -> (&str, Option<String>) {
    if line.starts_with('#') {
        return ("", None);
    }
    let Some((words, comment)) = line.split_once(" #") else { return (line, None) };
    let comment = comment.trim();
    (words, (!comment.is_empty()).then(|| comment.to_owned()))
}

fn parse_end(words: &[&str]) -> Result<End, String> {
    match words {
        ["hold"] => Ok(End::Hold),
        ["run"] => Ok(End::Run),
        _ => Err("should be `end hold` or `end run`".to_owned()),
    }
}

/// The most values of a schedule: what runs of equal ones stand for takes memory.
const MOST_VALUES: usize = 1 << 24;

/// Appends the values to those of the same thread and function.
fn parse_input(words: &[&str], inputs: &mut Vec<Input>) -> Result<(), String> {
    let [thread, function, values @ ..] = words else {
        return Err("should be `input THREAD FUNCTION VALUE...`".to_owned());
    };
    let thread = parse_thread(thread)?;
    let symbol = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.');
    if !function.chars().all(symbol) {
        return Err(format!("`{function}` should be the name of a function"));
    }
    if values.is_empty() {
        return Err("should be `input THREAD FUNCTION VALUE...`".to_owned());
    }
    let known = |input: &Input| input.thread == thread && input.function == *function;
    let mut left = MOST_VALUES - inputs.iter().map(|input| input.words.len()).sum::<usize>();
    let at = inputs.iter().position(known).unwrap_or(inputs.len());
    if at == inputs.len() {
        inputs.push(Input { thread, function: (*function).to_owned(), words: Vec::new() });
    }
    for word in values {
        let (value, count) = parse_run(word)
            .ok_or_else(|| format!("`{word}` should be a value such as 7, 0x7 or 7x100"))?;
        left = left.checked_sub(count).ok_or("these are too many values")?;
        if let Some(input) = inputs.get_mut(at) {
            input.words.extend(std::iter::repeat_n(value, count));
        }
    }
    Ok(())
}

/// A value, and how often it comes.
fn parse_run(word: &str) -> Option<(u64, usize)> {
    let (rest, radix) = match word.strip_prefix("0x") {
        Some(rest) => (rest, 16),
        None => (word, 10),
    };
    let (value, count) = rest.split_once('x').unwrap_or((rest, "1"));
    let digits = |text: &str, radix: u32| {
        (!text.is_empty() && text.chars().all(|c| c.is_digit(radix))).then_some(())
    };
    digits(value, radix).and(digits(count, 10))?;
    let count = count.parse().ok().filter(|&count| count > 0)?;
    Some((u64::from_str_radix(value, radix).ok()?, count))
}

fn parse_mark(words: &[&str]) -> Result<Mark, String> {
    let [number, thread, place @ ..] = words else {
        return Err("should be `mark NUMBER THREAD SITE`".to_owned());
    };
    let number =
        number.parse().map_err(|_| format!("`{number}` should be the number of the mark"))?;
    let thread = parse_thread(thread)?;
    match parse_passage(place)? {
        (site, occurrence, []) => Ok(Mark { number, thread, site, occurrence }),
        (_, _, [word, ..]) => Err(format!("`{word}` is too much")),
    }
}

fn parse_turn(thread: &str, words: &[&str], comment: Option<String>) -> Result<Turn, String> {
    let thread = parse_thread(thread)?;
    let target = match words {
        ["!"] => Target::Failure,
        [">", "$"] => Target::End,
        [">", place @ ..] => match parse_passage(place)? {
            (site, occurrence, []) => Target::Site { site, occurrence, past: false },
            (site, occurrence, ["+"]) => Target::Site { site, occurrence, past: true },
            (_, _, [word, ..]) => return Err(format!("`{word}` should be `+` or nothing")),
        },
        _ => return Err(format!("`{thread}` should be followed by `> SITE`, `> $` or `!`")),
    };
    Ok(Turn { thread, target, comment })
}

/// `t0`, or a creator's name and the number of its child.
fn parse_thread(name: &str) -> Result<String, String> {
    let numbers = |rest: &str| {
        let number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        rest.is_empty() || rest.strip_prefix('.').is_some_and(|rest| rest.split('.').all(number))
    };
    match name.strip_prefix("t0") {
        Some(rest) if numbers(rest) => Ok(name.to_owned()),
        _ => Err(format!("`{name}` should be a thread such as `t0` or `t0.1`")),
    }
}

/// `SITE [@K]`, and the words behind it.
fn parse_passage<'w, 't>(words: &'w [&'t str]) -> Result<(String, u64, &'w [&'t str]), String> {
    let Some((&site, rest)) = words.split_first() else {
        return Err("a site is missing".to_owned());
    };
    if site.starts_with(['@', '+', '$', '!']) {
        return Err(format!("`{site}` should be a site"));
    }
    let count = rest.split_first().and_then(|(word, rest)| Some((word.strip_prefix('@')?, rest)));
    let Some((count, rest)) = count else { return Ok((site.to_owned(), 1, rest)) };
    match count.parse() {
        Ok(occurrence) if occurrence > 0 => Ok((site.to_owned(), occurrence, rest)),
        _ => Err(format!("`@{count}` should be a count from 1")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const EXAMPLE: &str = "symbiosis-schedule 1
end hold
input t0 getpid 4711x3 0x0x3
input t0.1 clock_gettime 0 1700000000 0x165ec0bc8
mark 1 t0.1 bank.c:close_desk:read:bank.1 @2
t0 > bank.c:main:call:pthread_join
t0.1 > bank.c:close_desk:write:bank.1/2 @3
t0.2 > ~relock + # bank.c:62
t0.1 > $
t0 !
";

    #[test]
    fn the_text_comes_back() {
        let script = parse(EXAMPLE).expect("a schedule");
        assert_eq!(script.end, End::Hold);
        assert_eq!(script.inputs[0].words, [4711, 4711, 4711, 0, 0, 0]);
        assert_eq!(script.inputs[1].words, [0, 1_700_000_000, 0x1_65ec_0bc8]);
        assert_eq!(script.marks[0].occurrence, 2);
        assert_eq!(script.turns[2].comment.as_deref(), Some("bank.c:62"));
        assert_eq!(script.to_string(), EXAMPLE);
    }

    #[test]
    fn comments_and_empty_lines_are_nothing() {
        let text = "symbiosis-schedule 1\n\n# by hand\n   # too\nt0 > $   #   the end \n";
        let script = parse(text).expect("a schedule");
        assert_eq!(script.end, End::Run);
        assert_eq!(script.turns.len(), 1);
        assert_eq!(script.turns[0].comment.as_deref(), Some("the end"));
    }

    #[test]
    fn values_of_several_lines_come_one_after_the_other() {
        let text = "symbiosis-schedule 1\ninput t0 rand 1 0x2x2\ninput t0.1 rand 9\n\
                    input t0 rand 3\n";
        let script = parse(text).expect("a schedule");
        let words: Vec<&[u64]> = script.inputs.iter().map(|i| i.words.as_slice()).collect();
        assert_eq!(words, [&[1, 2, 2, 3][..], &[9][..]]);
    }

    #[test]
    fn long_inputs_are_wrapped() {
        let words: Vec<u64> = (0..100).map(|n| n * 0x1_0000_0001).collect();
        let input = Input { thread: "t0".to_owned(), function: "random".to_owned(), words };
        let script = Script { inputs: vec![input], ..Script::default() };
        let text = script.to_string();
        assert!(text.lines().count() > 10 && text.lines().all(|line| line.len() <= 100), "{text}");
        assert_eq!(parse(&text), Ok(script));
    }

    #[test]
    fn mistakes_name_their_line() {
        let mistakes = [
            ("", 1, "should be `symbiosis-schedule 1`"),
            ("symbiosis-schedule 2\n", 1, "should be `symbiosis-schedule 1`"),
            ("symbiosis-schedule 1\n\nend stop\n", 3, "should be `end hold` or `end run`"),
            ("symbiosis-schedule 1\nend run\nend run\n", 3, "a second `end`"),
            ("symbiosis-schedule 1\nt0 !\nend run\n", 3, "`end` has to come before the turns"),
            ("symbiosis-schedule 1\nt0 !\nmark 1 t0 a\n", 3, "`mark` has to come before the turns"),
            (
                "symbiosis-schedule 1\nt0 !\ninput t0 rand 1\n",
                3,
                "`input` has to come before the turns",
            ),
            ("symbiosis-schedule 1\ninput t0\n", 2, "should be `input THREAD FUNCTION VALUE...`"),
            (
                "symbiosis-schedule 1\ninput t0 rand\n",
                2,
                "should be `input THREAD FUNCTION VALUE...`",
            ),
            (
                "symbiosis-schedule 1\ninput t0 rand 0x\n",
                2,
                "`0x` should be a value such as 7, 0x7 or 7x100",
            ),
            (
                "symbiosis-schedule 1\ninput t0 rand 3x0\n",
                2,
                "`3x0` should be a value such as 7, 0x7 or 7x100",
            ),
            ("symbiosis-schedule 1\ninput t0 rand 1x99999999\n", 2, "these are too many values"),
            ("symbiosis-schedule 1\ninput t0 a:b 1\n", 2, "`a:b` should be the name of a function"),
            ("symbiosis-schedule 1\nmark a t0 b\n", 2, "`a` should be the number of the mark"),
            ("symbiosis-schedule 1\nmark 1 t0 b +\n", 2, "`+` is too much"),
            ("symbiosis-schedule 1\nt0 !\nt0 > $\n", 3, "`!` has to be the last turn"),
            ("symbiosis-schedule 1\nt1 !\n", 2, "`t1` should be a thread such as `t0` or `t0.1`"),
            ("symbiosis-schedule 1\nt0. !\n", 2, "`t0.` should be a thread such as `t0` or `t0.1`"),
            (
                "symbiosis-schedule 1\nt0 a\n",
                2,
                "`t0` should be followed by `> SITE`, `> $` or `!`",
            ),
            ("symbiosis-schedule 1\nt0 >\n", 2, "a site is missing"),
            ("symbiosis-schedule 1\nt0 > @2\n", 2, "`@2` should be a site"),
            ("symbiosis-schedule 1\nt0 > a @0\n", 2, "`@0` should be a count from 1"),
            ("symbiosis-schedule 1\nt0 > a @1 b\n", 2, "`b` should be `+` or nothing"),
        ];
        for (text, line, what) in mistakes {
            assert_eq!(parse(text), Err(error(line, what)), "{text:?}");
        }
    }

    fn site() -> impl Strategy<Value = String> {
        "[a-z_]{1,4}\\.c:[a-z]{1,4}:(read|write|call):[a-z0-9.*<>?~$-]{1,6}(/[2-9])?|~[a-z_]{1,8}"
    }

    fn thread() -> impl Strategy<Value = String> {
        "t0(\\.[1-9][0-9]?){0,3}"
    }

    fn turn() -> impl Strategy<Value = Turn> {
        let at = (site(), 1..u64::MAX, any::<bool>());
        let at = at.prop_map(|(site, occurrence, past)| Target::Site { site, occurrence, past });
        let comment = proptest::option::of("[a-z#:]([a-z# ]{0,4}[a-z#])?");
        (thread(), prop_oneof![4 => at, 1 => Just(Target::End)], comment)
            .prop_map(|(thread, target, comment)| Turn { thread, target, comment })
    }

    fn script() -> impl Strategy<Value = Script> {
        let mark = (any::<u64>(), thread(), site(), 1..9u64).prop_map(
            |(number, thread, site, occurrence)| Mark { number, thread, site, occurrence },
        );
        let marks = proptest::collection::vec(mark, 0..3);
        let word = prop_oneof![0..3u64, any::<u64>()];
        let words = proptest::collection::vec(word, 1..40);
        let inputs = proptest::collection::btree_map((thread(), "[a-z_0-9]{1,9}"), words, 0..3);
        let failing = proptest::option::of(thread());
        let end = prop_oneof![Just(End::Hold), Just(End::Run)];
        let polls = proptest::collection::vec(thread(), 0..3);
        let waits = proptest::collection::vec(thread(), 0..3);
        let turns = proptest::collection::vec(turn(), 0..6);
        (end, polls, waits, inputs, marks, turns, failing).prop_map(
            |(end, polls, waits, inputs, marks, mut turns, failing)| {
                let input = |((thread, function), words)| Input { thread, function, words };
                let inputs = inputs.into_iter().map(input).collect();
                turns.extend(failing.map(|thread| Turn {
                    thread,
                    target: Target::Failure,
                    comment: None,
                }));
                Script { end, polls, waits, inputs, marks, turns }
            },
        )
    }

    proptest! {
        #[test]
        fn every_script_survives_its_text(script in script()) {
            prop_assert_eq!(parse(&script.to_string()), Ok(script));
        }

        #[test]
        fn no_text_is_too_much(text in "(symbiosis-schedule 1\n)?[ -~\n]{0,60}") {
            let _ = parse(&text);
        }
    }
}
