//! Programs in Rust: what of the standard library's types and functions is not in the words of a program.

/// Where the standard library was built, as its debug information has it.
pub const LIBRARY: &str = "/rustc/";
/// Where what it is built from was.
pub const DEPENDENCIES: &str = "/rust/deps/";

/// Members of the library's types that hold what a program keeps there: `balance.data.value` of a `Mutex` is
/// `balance` to the program, and so is its lock.
const WRAPPED: [&str; 29] = [
    "ptr",
    // Of an `AtomicPtr`.
    "p",
    "pointer",
    "data",
    "value",
    "inner",
    "v",
    "unique",
    "futex",
    "buf",
    "base",
    "table",
    "once",
    "state_and_queued",
    "state",
    // What an `Option` or a `Result` is at the moment says its value.
    "None",
    "Some",
    "Ok",
    "Err",
    // A channel is one of three, all of which begin in the same way.
    "flavor",
    "Array",
    "List",
    "Zero",
    "counter",
    "chan",
    // The lock that a package's lock is made of.
    "raw",
    // Who holds a lock leads to what that keeps.
    "lock",
    "mutex",
    "rwlock",
];

/// The crates whose types wrap what a program keeps in them: the standard library's, and those of packages for locks and padding.
const WRAPPING: [&str; 7] =
    ["core", "alloc", "std", "hashbrown", "lock_api", "parking_lot", "crossbeam_utils"];

/// Are the types of this crate wrappers, whose own members are nothing to a program?
pub(crate) fn wraps(name: &str) -> bool {
    WRAPPING.contains(&name)
}

/// What a member is called in a program: one of a tuple by its number, a captured variable by its own name, and
/// one of the library's type (`wraps`) that holds what the program keeps there by nothing.
pub(crate) fn member(name: String, wraps: bool) -> String {
    if let Some(captured) = name.strip_prefix("_ref__") {
        return captured.to_owned();
    }
    let number = name.strip_prefix("__").filter(|rest| is_number(rest));
    match number {
        Some(_) if wraps => String::new(),
        Some(number) => number.to_owned(),
        None if wraps && WRAPPED.contains(&name.as_str()) => String::new(),
        None => name,
    }
}

/// What a function that rustc names by its place is called, by its symbol: `closure in serve` for that of a closure in
/// `serve`, `async block in serve` for what polls one, and `serve` for what polls that as an `async fn`. `None` for other
/// functions.
pub(crate) fn made_name(name: &str, symbol: &str) -> Option<String> {
    const MADE: &[(&str, &str)] = &[
        ("{closure", "closure in "),
        ("{async_fn", ""),
        ("{async_block", "async block in "),
        ("{async_closure", "async closure in "),
    ];
    let (_, what) = MADE.iter().find(|(mark, _)| name.starts_with(mark))?;
    Some(format!("{what}{}", function_around(symbol)?))
}

/// The function that a closure is in, by its symbol.
fn function_around(symbol: &str) -> Option<String> {
    let name = super::demangle(symbol);
    // The older symbols have two braces.
    let end = ["::{closure", "::{{closure"].iter().filter_map(|mark| name.find(mark)).min()?;
    let around = name.get(..end)?;
    // What stands in angle brackets are types.
    let mut depth = 0_u32;
    let mut plain = String::new();
    for character in around.chars() {
        match character {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 => plain.push(character),
            _ => {}
        }
    }
    let function = plain.rsplit("::").find(|part| !part.is_empty())?;
    Some(function.to_owned())
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Is it a source file of the standard library, or of what that is built from?
pub(crate) fn is_librarys(file: &str) -> bool {
    file.starts_with(LIBRARY) || file.starts_with(DEPENDENCIES)
}

/// Is it a source file of a package that cargo got?
pub(crate) fn is_packages(file: &str) -> bool {
    file.contains("/.cargo/registry/src/")
}

/// The identifier by which rustc knows a type. C++ has the mangled name there.
pub(crate) fn is_identifier(text: &str) -> bool {
    // Variants have a suffix, and leading zeros are left out.
    let hash = text.split_once("::").map_or(text, |(hash, _)| hash);
    (20..=32).contains(&hash.len()) && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_called_what_a_program_calls_them() {
        for (name, wraps, expected) in [
            ("__0", false, "0"),
            ("__0", true, ""),
            ("__next", false, "__next"),
            ("_ref__total", false, "total"),
            ("data", true, ""),
            ("data", false, "data"),
            ("lock", true, ""),
            ("lock", false, "lock"),
            ("len", true, "len"),
            ("None", true, ""),
            ("None", false, "None"),
        ] {
            assert_eq!(member(name.to_owned(), wraps), expected, "{name}");
        }
    }

    #[test]
    fn what_packages_wrap_is_called_as_what_the_library_wraps() {
        assert!(wraps("std") && wraps("lock_api") && wraps("parking_lot"));
        assert!(!wraps("shelves"));
    }

    #[test]
    fn closures_are_named_by_the_functions_that_they_stand_in() {
        let older = "_ZN3app5serve28_$u7b$$u7b$closure$u7d$$u7d$17h4106ecb071ae848dE";
        let (newer, main) = ("_RNCNvCs1_3app4main0", "_RNvCs1_3app4main");
        for (name, symbol, expected) in [
            ("{closure#0}", older, Some("closure in serve")),
            ("{closure#0}", newer, Some("closure in main")),
            ("{closure#0}", main, None),
            ("{async_fn#0}", newer, Some("main")),
            ("{async_block#0}", newer, Some("async block in main")),
            ("{impl#0}", newer, None),
        ] {
            assert_eq!(made_name(name, symbol).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn types_of_rustc_are_told_from_those_of_clang() {
        assert!(is_identifier("ad31d38af2ecd7a0ac3a12b4d2c55b4d"));
        assert!(is_identifier("47132e4b26a779f6b868c73f0eb286b::Some"));
        assert!(!is_identifier("_ZTSN4core6EngineE"));
        assert!(!is_identifier(""));
    }
}
