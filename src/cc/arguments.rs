//! Reads a command line as clang would.

use super::options::{self, Dropped, InputKind};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// An input file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// As given; `-` is standard input.
    pub path: OsString,
    /// The language of the `-x` in whose scope it stands.
    pub language: Option<OsString>,
    /// What becomes of it.
    pub kind: InputKind,
}

impl Input {
    /// The name clang makes up for an output of this input, in the working directory.
    pub fn default_output(&self, extension: &str) -> OsString {
        let name = Path::new(&self.path).file_name().unwrap_or(&self.path);
        let mut output = Path::new(name).file_stem().unwrap_or(name).to_owned();
        output.push(".");
        output.push(extension);
        output
    }
}

/// One thing on the command line. `-x`, `-o` and `--` are not among them: they are kept as what
/// they mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// An option, with its value when that is an argument of its own.
    Option(Vec<OsString>),
    /// An input.
    Input(Input),
}

impl Item {
    /// The option's first argument as text; empty for an input.
    pub fn option(&self) -> &str {
        match self {
            Self::Option(args) => args.first().and_then(|arg| arg.to_str()).unwrap_or(""),
            Self::Input(_) => "",
        }
    }

    /// The input, when it is one.
    pub fn input(&self) -> Option<&Input> {
        match self {
            Self::Input(input) => Some(input),
            Self::Option(_) => None,
        }
    }
}

/// What the command line asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing that could be instrumented.
    PassThrough,
    /// `-c`.
    Compile,
    /// Everything up to the executable or library.
    Link,
}

/// A command line, taken apart.
#[derive(Clone, Debug)]
pub struct Arguments {
    /// The mode.
    pub mode: Mode,
    /// `-o`.
    pub output: Option<PathBuf>,
    /// Options and inputs in order.
    pub items: Vec<Item>,
    /// Options that are taken out, and why.
    pub dropped: Vec<(Dropped, String)>,
}

impl Arguments {
    /// Takes apart a command line whose response files are expanded.
    pub fn parse(args: &[OsString]) -> Self {
        let mut parser = Parser::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            parser.argument(arg, &mut args);
        }
        parser.finish()
    }

    /// The inputs, in order.
    pub fn inputs(&self) -> impl Iterator<Item = &Input> {
        self.items.iter().filter_map(Item::input)
    }

    /// The inputs that have to be compiled or assembled.
    pub fn sources(&self) -> impl Iterator<Item = &Input> {
        self.inputs().filter(|input| input.kind != InputKind::Linker)
    }

    /// Whether an option is given, exactly so.
    pub fn has(&self, option: &str) -> bool {
        self.items.iter().any(|item| item.option() == option)
    }

    /// Whether an option of which the value may be joined or separate is given.
    pub fn has_prefix(&self, prefix: &str) -> bool {
        self.items.iter().any(|item| item.option().starts_with(prefix))
    }

    /// The last `-O` level: `0`, `1`, `2`, `3`, `s`, `z`, `g`, `fast`; `0` when none is given.
    pub fn optimisation(&self) -> &str {
        let last = self.items.iter().rev().find_map(|item| item.option().strip_prefix("-O"));
        match last {
            Some("") => "1",
            Some(level) => level,
            None => "0",
        }
    }
}

#[derive(Default)]
struct Parser {
    pass_through: bool,
    compile: bool,
    output: Option<PathBuf>,
    language: Option<OsString>,
    only_inputs: bool,
    items: Vec<Item>,
    dropped: Vec<(Dropped, String)>,
}

impl Parser {
    fn argument<'a>(&mut self, arg: &'a OsString, rest: &mut impl Iterator<Item = &'a OsString>) {
        let bytes = arg.as_bytes();
        if self.only_inputs || !bytes.starts_with(b"-") || bytes == b"-" {
            return self.input(arg);
        }
        let text = arg.to_str().unwrap_or("");
        let value = if options::takes_value(text) { rest.next() } else { None };
        match text {
            "--" => self.only_inputs = true,
            "-c" | "--compile" => self.compile = true,
            "-o" | "--output" => self.output = value.map(PathBuf::from),
            "-x" | "--language" => self.language(value.map_or(OsStr::new("none"), |v| v)),
            _ if options::passes_through(text) => self.pass_through = true,
            _ => match Dropped::of(text) {
                Some(why) => self.dropped.push((why, text.to_owned())),
                None => self.joined_or_plain(arg, bytes, value),
            },
        }
    }

    fn joined_or_plain(&mut self, arg: &OsString, bytes: &[u8], value: Option<&OsString>) {
        if let Some(output) = joined_output(bytes) {
            self.output = Some(OsStr::from_bytes(output).into());
        } else if let Some(language) = joined_language(bytes) {
            self.language(OsStr::from_bytes(language));
        } else {
            self.items.push(Item::Option(std::iter::once(arg).chain(value).cloned().collect()));
        }
    }

    fn language(&mut self, language: &OsStr) {
        self.language = (language != "none").then(|| language.to_owned());
    }

    fn input(&mut self, path: &OsString) {
        let kind = match &self.language {
            Some(language) => options::kind_of_language(&language.to_string_lossy()),
            None => options::kind_of_name(&path.to_string_lossy()),
        };
        let language = self.language.clone();
        self.items.push(Item::Input(Input { path: path.clone(), language, kind }));
    }

    fn finish(self) -> Arguments {
        let mut inputs = self.items.iter().filter_map(Item::input).peekable();
        let nothing = inputs.peek().is_none();
        let header = inputs.any(|input| input.kind == InputKind::Header);
        let mode = match (self.pass_through || nothing || header, self.compile) {
            (true, _) => Mode::PassThrough,
            (false, true) => Mode::Compile,
            (false, false) => Mode::Link,
        };
        let Self { output, items, dropped, .. } = self;
        Arguments { mode, output, items, dropped }
    }
}

/// The value of a joined `-oFILE`. Some options of Objective-C begin with `-o` as well.
fn joined_output(arg: &[u8]) -> Option<&[u8]> {
    if let Some(output) = arg.strip_prefix(b"--output=") {
        return Some(output);
    }
    let output = arg.strip_prefix(b"-o")?;
    let other = output.starts_with(b"bjc") || output.starts_with(b"bject") || output.is_empty();
    (!other).then_some(output)
}

fn joined_language(arg: &[u8]) -> Option<&[u8]> {
    let language = arg.strip_prefix(b"--language=").or_else(|| arg.strip_prefix(b"-x"))?;
    (!language.is_empty()).then_some(language)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Arguments {
        Arguments::parse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    fn inputs(arguments: &Arguments) -> Vec<(&str, InputKind)> {
        arguments.inputs().map(|input| (input.path.to_str().unwrap(), input.kind)).collect()
    }

    #[test]
    fn the_dependency_options_of_cmake_take_their_values() {
        let arguments = parse("-O2 -MD -MT x.o -MF x.o.d -o x.o -c x.c");
        assert_eq!(arguments.mode, Mode::Compile);
        assert_eq!(arguments.output.as_deref(), Some(Path::new("x.o")));
        assert_eq!(inputs(&arguments), [("x.c", InputKind::Source)]);
        assert_eq!(arguments.optimisation(), "2");
        assert!(arguments.has("-MD") && arguments.has("-MT") && !arguments.has("x.o.d"));
    }

    #[test]
    fn a_language_holds_until_the_next() {
        let arguments = parse("-x c a.o b.cc -xassembler c.c -x none d.c e.o");
        let expected = [
            ("a.o", InputKind::Source),
            ("b.cc", InputKind::Source),
            ("c.c", InputKind::Foreign),
            ("d.c", InputKind::Source),
            ("e.o", InputKind::Linker),
        ];
        assert_eq!(inputs(&arguments), expected);
        assert_eq!(arguments.mode, Mode::Link);
    }

    #[test]
    fn values_are_never_inputs_or_modes() {
        let arguments = parse("-include a.h -I -E -D -c -Xclang -S -L dir.c -l x.c -T y.c main.c");
        assert_eq!(arguments.mode, Mode::Link);
        assert_eq!(inputs(&arguments), [("main.c", InputKind::Source)]);
    }

    #[test]
    fn questions_pass_through() {
        for line in ["-E a.c", "-c -S a.c", "--version", "-v", "-print-file-name=x a.c", "-Wl,-v"] {
            assert_eq!(parse(line).mode, Mode::PassThrough, "{line}");
        }
        assert_eq!(parse("-c list.h").mode, Mode::PassThrough);
        assert_eq!(parse("-v a.c").mode, Mode::Link);
    }

    #[test]
    fn after_two_dashes_everything_is_an_input() {
        let arguments = parse("-c -- -weird.c");
        assert_eq!(inputs(&arguments), [("-weird.c", InputKind::Source)]);
    }

    #[test]
    fn joined_values_and_the_last_level_count() {
        let arguments = parse("-oout -O3 -O -c dir/a.b.c -objcmt-migrate-all");
        assert_eq!(arguments.output.as_deref(), Some(Path::new("out")));
        assert_eq!(arguments.optimisation(), "1");
        let input = arguments.inputs().next().unwrap();
        assert_eq!(input.default_output("o"), "a.b.o");
    }

    #[test]
    fn what_would_disturb_a_recording_is_taken_out() {
        let dropped = |line: &str| {
            let arguments = parse(line);
            let left = arguments.has("-g") && arguments.has("-fno-lto");
            assert!(left && arguments.has("-fprofile-use=a.profdata"), "{arguments:?}");
            arguments.dropped
        };
        let kept = "-c a.c -g -fno-lto -fprofile-use=a.profdata";
        let named = |why, options: &[&str]| -> Vec<(Dropped, String)> {
            options.iter().map(|&option| (why, option.to_owned())).collect()
        };
        let lines = [
            (Dropped::LinkTime, vec!["-flto=thin"]),
            (Dropped::FunctionHook, vec!["-pg", "-finstrument-functions"]),
            (Dropped::Counters, vec!["--coverage", "-fprofile-update=atomic"]),
            (Dropped::Counters, vec!["-fprofile-instr-generate=%p.raw", "-fcoverage-mapping"]),
        ];
        for (why, options) in lines {
            let line = format!("{} {kept}", options.join(" "));
            assert_eq!(dropped(&line), named(why, &options));
        }
    }
}
