//! The linker's half of a command line: objects in the place of sources, and the runtime.

use super::CcError;
use super::arguments::{Arguments, Item};
use super::compile::plain_path;
use super::library;
use super::options::InputKind;
use super::scripts;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// What the runtime offers to code that the executable loads later: the instrumented shared
/// libraries find it in the executable.
pub const EXPORTS: &str = "{ __symbiosis_*; symbiosis_*; };\n";

/// What is being linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Product {
    /// An executable: it carries the runtime.
    Executable,
    /// A shared library: it uses the runtime of the executable that loads it.
    SharedLibrary,
    /// A relocatable object (`-r`).
    Relocatable,
}

/// What the command line links.
pub fn product(arguments: &Arguments) -> Result<Product, CcError> {
    if arguments.has("-r") {
        return Ok(Product::Relocatable);
    }
    if arguments.has("-shared") || arguments.has("--shared") {
        return Ok(Product::SharedLibrary);
    }
    let given = |options: &[&'static str]| options.iter().copied().find(|o| arguments.has(o));
    if let Some(option) = given(&["-static", "--static", "-static-pie"]) {
        return Err(CcError::StaticLink { option: option.to_owned() });
    }
    let without = given(&["-nostdlib", "--no-standard-libraries", "-nodefaultlibs", "-nolibc"]);
    match without.filter(|_| !names_c_library(arguments)) {
        Some(option) => Err(CcError::NoLibrary { option: option.to_owned() }),
        None => Ok(Product::Executable),
    }
}

/// `-lc`, joined or not.
fn names_c_library(arguments: &Arguments) -> bool {
    let split = |item: &Item| matches!(item, Item::Option(args) if args == &["-l", "c"]);
    arguments.has("-lc") || arguments.items.iter().any(split)
}

/// The runtime as the link command needs it.
#[derive(Clone, Debug)]
pub struct Runtime {
    /// The static library.
    pub archive: PathBuf,
    /// A file with [`EXPORTS`].
    pub exports: PathBuf,
}

/// The link command. `objects` are the compiled sources in order; `library` is an archive of ours
/// that goes before the libraries whose functions it has; with a runtime, it is linked in.
pub fn command(
    arguments: &Arguments,
    product: Product,
    objects: &[PathBuf],
    library: Option<&Path>,
    runtime: Option<&Runtime>,
) -> Vec<OsString> {
    let mut command: Vec<OsString> = Vec::new();
    if !objects.is_empty() {
        // Options for the compiler alone have done their work; clang would warn about them.
        command.push("-Qunused-arguments".into());
    }
    let mut objects = objects.iter();
    let mut options = Vec::new();
    for item in &arguments.items {
        match item {
            Item::Option(args) => options.push(args.clone()),
            Item::Input(input) if input.kind == InputKind::Linker => {
                options.push(vec![plain_path(&input.path)]);
            }
            Item::Input(_) => options.extend(objects.next().map(|object| vec![object.into()])),
        }
    }
    options = match product {
        Product::SharedLibrary => without_defs(options),
        Product::Executable => scripts::without(options),
        Product::Relocatable => options,
    };
    if let Some(library) = library {
        let replaced = |word: &OsString| word == "-lstdc++" || library::is_openmp(word);
        let named = options.iter().position(|option| option.iter().any(replaced));
        options.insert(named.unwrap_or(options.len()), vec![library.into()]);
    }
    let by_lld = options.iter().flatten().any(names_lld);
    let collects = by_lld && options.iter().flatten().any(collects_sections);
    command.extend(options.into_iter().flatten());
    if collects && product != Product::Relocatable {
        // The tables of gates are found by where they start and stop alone, which lld takes for no use.
        command.push("-Wl,-z,nostart-stop-gc".into());
    }
    command.extend(runtime.iter().flat_map(|runtime| runtime_arguments(runtime)));
    if let Some(output) = &arguments.output {
        command.extend(["-o".into(), output.into()]);
    }
    command
}

/// Does the option choose lld? It is the one linker that collects what is found by its start and stop alone.
fn names_lld(option: &OsString) -> bool {
    let text = option.to_str().unwrap_or_default();
    let linker = text.strip_prefix("-fuse-ld=").or_else(|| text.strip_prefix("--ld-path="));
    linker.is_some_and(|linker| linker.contains("lld"))
}

/// Does the option have the linker leave out sections that nothing uses?
fn collects_sections(option: &OsString) -> bool {
    option.to_str().is_some_and(|text| {
        text.strip_prefix("-Wl,")
            .unwrap_or(text)
            .split(',')
            .any(|word| matches!(word, "--gc-sections" | "-gc-sections"))
    })
}

/// The whole archive, since nothing in the program asks for the functions that it wraps.
fn runtime_arguments(runtime: &Runtime) -> Vec<OsString> {
    let mut list = OsString::from("--dynamic-list=");
    list.push(&runtime.exports);
    vec![
        "-Wl,--whole-archive".into(),
        runtime.archive.clone().into(),
        "-Wl,--no-whole-archive".into(),
        "-Xlinker".into(),
        list,
        "-lpthread".into(),
        "-ldl".into(),
    ]
}

/// Takes `-z defs` and `--no-undefined` out in all their spellings: an instrumented shared library
/// always has undefined symbols, those of the runtime in the executable.
fn without_defs(options: Vec<Vec<OsString>>) -> Vec<Vec<OsString>> {
    let mut kept: Vec<Vec<OsString>> = Vec::new();
    for option in options {
        let text: Vec<&str> = option.iter().filter_map(|arg| arg.to_str()).collect();
        match text.as_slice() {
            ["-z", "defs"] | ["-zdefs"] => {}
            ["-Xlinker", "--no-undefined" | "-no-undefined" | "-zdefs"] => {}
            ["-Xlinker", "defs"] if kept.last().is_some_and(|l| l == &["-Xlinker", "-z"]) => {
                kept.pop();
            }
            [list] if list.starts_with("-Wl,") => kept.extend(linker_list_without_defs(list)),
            _ => kept.push(option),
        }
    }
    kept
}

fn linker_list_without_defs(list: &str) -> Option<Vec<OsString>> {
    let mut kept: Vec<&str> = Vec::new();
    for part in list.split(',') {
        match part {
            "--no-undefined" | "-no-undefined" | "-zdefs" => {}
            "defs" if kept.last() == Some(&"-z") => {
                kept.pop();
            }
            _ => kept.push(part),
        }
    }
    (kept.len() > 1).then(|| vec![kept.join(",").into()])
}

/// The name of a source's temporary object: linkers show it in their messages.
pub fn object_name(directory: &Path, index: usize, source: &OsStr) -> PathBuf {
    let stem = Path::new(source).file_stem().unwrap_or(OsStr::new("input"));
    let mut name = OsString::from(format!("{index}-"));
    name.push(stem);
    name.push(".o");
    directory.join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Arguments {
        Arguments::parse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    fn text(command: &[OsString]) -> String {
        command.iter().map(|arg| arg.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn objects_stand_where_the_sources_stood() {
        let arguments = parse("first.o -x c a.c -x none lib.a b.cc -lm -o prog");
        let objects = [PathBuf::from("/t/0-a.o"), PathBuf::from("/t/1-b.o")];
        let runtime = Runtime { archive: "/r/lib.a".into(), exports: "/r/list".into() };
        let product = product(&arguments).unwrap();
        assert_eq!(
            text(&command(&arguments, product, &objects, None, Some(&runtime))),
            "-Qunused-arguments first.o /t/0-a.o lib.a /t/1-b.o -lm -Wl,--whole-archive /r/lib.a \
             -Wl,--no-whole-archive -Xlinker --dynamic-list=/r/list -lpthread -ldl -o prog"
        );
    }

    #[test]
    fn tables_of_gates_stay_where_unused_sections_go() {
        for (line, kept) in [
            ("a.o -fuse-ld=lld -Wl,--as-needed,--gc-sections -o p", true),
            ("a.o --ld-path=/opt/ld.lld -Xlinker --gc-sections -o p", true),
            ("a.o -fuse-ld=gold -Wl,--gc-sections -o p", false),
            ("a.o -fuse-ld=lld -Wl,--no-gc-sections -o p", false),
            ("-r a.o -fuse-ld=lld -Wl,--gc-sections -o p.o", false),
        ] {
            let arguments = parse(line);
            let product = product(&arguments).unwrap();
            let words = text(&command(&arguments, product, &[], None, None));
            assert_eq!(words.contains("-Wl,-z,nostart-stop-gc"), kept, "{words}");
        }
    }

    #[test]
    fn functions_of_ours_come_before_the_library_that_has_them_too() {
        for library in ["-lomp", "/usr/lib/libomp.so"] {
            let arguments = parse(&format!("a.o {library} -lm"));
            let ours = Some(Path::new("/t/ours"));
            let line = text(&command(&arguments, Product::SharedLibrary, &[], ours, None));
            assert_eq!(line, format!("a.o /t/ours {library} -lm"));
        }
    }

    #[test]
    fn a_shared_library_may_have_undefined_symbols() {
        let line = "-shared a.o -Wl,-z,defs -Wl,-z,now,-z,defs -Wl,--no-undefined,-soname,x \
                    -z defs -Xlinker -z -Xlinker defs -Wl,-z,relro";
        let arguments = parse(line);
        let product = product(&arguments).unwrap();
        assert_eq!(product, Product::SharedLibrary);
        let expected = "-shared a.o -Wl,-z,now -Wl,-soname,x -Wl,-z,relro";
        assert_eq!(text(&command(&arguments, product, &[], None, None)), expected);
    }

    #[test]
    fn static_executables_are_refused_and_static_libgcc_is_not() {
        let refused = product(&parse("a.o -static"));
        assert!(matches!(refused, Err(CcError::StaticLink { .. })));
        assert_eq!(product(&parse("a.o -static-libgcc")).unwrap(), Product::Executable);
        assert_eq!(product(&parse("-r a.o b.o -static")).unwrap(), Product::Relocatable);
    }

    #[test]
    fn an_executable_needs_the_c_library_and_a_shared_library_does_not() {
        let refused = product(&parse("a.o -nostdlib"));
        assert!(matches!(refused, Err(CcError::NoLibrary { .. })));
        for line in ["a.o -nostdlib -lc", "a.o -nostdlib -l c"] {
            assert_eq!(product(&parse(line)).unwrap(), Product::Executable);
        }
        assert_eq!(product(&parse("-shared -nostdlib a.o")).unwrap(), Product::SharedLibrary);
    }
}
