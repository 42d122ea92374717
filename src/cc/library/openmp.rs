//! OpenMP's runtime, made of pthreads. libomp's own locks, spinning and sleeping would be events that depend
//! on the clock, and the order that its constructs give would not be seen.

use crate::cc::CcError;
use crate::cc::arguments::{Arguments, Item};
use std::ffi::OsStr;
use std::path::Path;

/// What all files begin with.
const HEADER: &str = include_str!("openmp/openmp.h");
/// How they say so.
const INCLUDE: &str = "#include \"openmp.h\"\n";
/// Everything but explicit tasks.
const CONSTRUCTS: [&str; 5] = [
    include_str!("openmp/team.c"),
    include_str!("openmp/regions.c"),
    include_str!("openmp/loops.c"),
    include_str!("openmp/locks.c"),
    include_str!("openmp/api.c"),
];
/// Explicit tasks. A program that has none does without them, and its barriers are simpler for it.
const TASKS: [&str; 1] = [include_str!("openmp/tasks.c")];
/// The libraries of clang's OpenMP.
const LIBRARIES: [&str; 2] = ["libomp", "libiomp5"];

/// Does the command link a program of OpenMP?
pub fn is_wanted(arguments: &Arguments) -> bool {
    library(arguments).is_some_and(|name| LIBRARIES.contains(&name))
        || arguments.items.iter().any(|item| match item {
            Item::Option(words) => words.iter().any(|word| is_library(word)),
            Item::Input(input) => is_library(&input.path),
        })
}

/// Is it one of the libraries, by its option or, as CMake names them in links, by its file?
pub fn is_library(word: &OsStr) -> bool {
    let name = Path::new(word).file_name().and_then(OsStr::to_str).unwrap_or_default();
    LIBRARIES.iter().any(|library| {
        let file = name.strip_prefix(library);
        name.strip_prefix("-l").is_some_and(|name| library.strip_prefix("lib") == Some(name))
            || file.is_some_and(|rest| rest == ".a" || rest.starts_with(".so"))
    })
}

/// The library that the last option about OpenMP asks for.
fn library(arguments: &Arguments) -> Option<&str> {
    let name = |option: &'_ str| match option {
        "-fopenmp" => Some(Some("libomp")),
        "-fno-openmp" => Some(None),
        _ => None,
    };
    arguments
        .items
        .iter()
        .rev()
        .find_map(|item| match item.option().strip_prefix("-fopenmp=") {
            Some(library) => Some(Some(library)),
            None => name(item.option()),
        })
        .flatten()
}

/// Fails when the command asks for a library that clang compiles nothing for: it would leave the program's
/// directives out.
///
/// # Errors
/// [`CcError::OpenMp`] says which.
pub fn check(arguments: &Arguments) -> Result<(), CcError> {
    match library(arguments) {
        Some(library) if !LIBRARIES.contains(&library) => {
            Err(CcError::OpenMp { library: library.to_owned() })
        }
        _ => Ok(()),
    }
}

/// The files to compile: their names and texts.
pub fn texts() -> [(&'static str, String); 2] {
    let text = |parts: &[&str]| {
        let parts = parts.iter().map(|part| part.replacen(INCLUDE, "", 1));
        HEADER.to_owned() + &parts.collect::<String>()
    };
    [("openmp.c", text(&CONSTRUCTS)), ("openmp-tasks.c", text(&TASKS))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn parse(line: &str) -> Arguments {
        Arguments::parse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn programs_of_openmp_are_told_by_their_options() {
        for line in [
            "a.o -fopenmp",
            "a.o -fopenmp=libomp",
            "a.o -lomp",
            "-fno-openmp -fopenmp a.o",
            "a.o /lib/libomp.so",
            "libiomp5.so.5 a.o",
        ] {
            assert!(is_wanted(&parse(line)), "{line}");
        }
        for line in ["a.o", "a.o -fopenmp-simd", "-fopenmp -fno-openmp a.o", "libompd.so a.o"] {
            assert!(!is_wanted(&parse(line)), "{line}");
        }
    }

    #[test]
    fn a_library_that_clang_compiles_nothing_for_is_refused() {
        let refused = check(&parse("a.c -fopenmp=libgomp"));
        assert!(matches!(refused, Err(CcError::OpenMp { library }) if library == "libgomp"));
        assert!(check(&parse("a.c -fopenmp=libgomp -fopenmp=libomp")).is_ok());
    }

    #[test]
    fn the_files_stand_alone() {
        for (name, text) in texts() {
            assert!(!text.contains(INCLUDE), "{name}");
        }
    }
}
