//! `-fsanitize=`: which checks go together with recording.

use super::CcError;
use super::arguments::Arguments;

/// Checks that only add code of their own to the program: they are recorded like the rest of it.
/// All others replace the library's functions, the memory or the stack, as recording does.
const COMPATIBLE: &[&str] = &[
    "alignment",
    "array-bounds",
    "bool",
    "bounds",
    "builtin",
    "enum",
    "float-cast-overflow",
    "float-divide-by-zero",
    "function",
    "implicit-conversion",
    "implicit-integer-arithmetic-value-change",
    "implicit-integer-sign-change",
    "implicit-integer-truncation",
    "implicit-signed-integer-truncation",
    "implicit-unsigned-integer-truncation",
    "integer",
    "integer-divide-by-zero",
    "local-bounds",
    "nonnull-attribute",
    "null",
    "nullability",
    "nullability-arg",
    "nullability-assign",
    "nullability-return",
    "object-size",
    "pointer-overflow",
    "return",
    "returns-nonnull-attribute",
    "shift",
    "shift-base",
    "shift-exponent",
    "signed-integer-overflow",
    "undefined",
    "unreachable",
    "unsigned-integer-overflow",
    "unsigned-shift-base",
    "vla-bound",
    "vptr",
];

/// Fails when the command line asks for a check that cannot be recorded.
///
/// # Errors
/// [`CcError::Sanitizer`] names the first of them.
pub fn check(arguments: &Arguments) -> Result<(), CcError> {
    match wanted(arguments).into_iter().find(|name| !COMPATIBLE.contains(name)) {
        Some(name) => Err(CcError::Sanitizer { name: name.to_owned() }),
        None => Ok(()),
    }
}

/// The option that takes the check of dynamic types out of what is asked for: the types that it has seen lie in a table that all
/// threads share and no program writes, so what it finds there follows from no order of events.
pub fn left_out(arguments: &Arguments) -> Option<&'static str> {
    let has_types = |name: &&str| matches!(*name, "undefined" | "vptr");
    wanted(arguments).iter().any(has_types).then_some("-fno-sanitize=vptr")
}

/// The checks that the command line asks for.
fn wanted(arguments: &Arguments) -> Vec<&str> {
    let mut wanted: Vec<&str> = Vec::new();
    for item in &arguments.items {
        let option = item.option();
        if let Some(list) = option.strip_prefix("-fsanitize=") {
            wanted.extend(list.split(',').filter(|name| !name.is_empty()));
        } else if let Some(list) = option.strip_prefix("-fno-sanitize=") {
            let gone: Vec<&str> = list.split(',').collect();
            wanted.retain(|name| !gone.contains(name) && !gone.contains(&"all"));
        }
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn refused(line: &str) -> Option<String> {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        match check(&Arguments::parse(&words)) {
            Err(CcError::Sanitizer { name }) => Some(name),
            _ => None,
        }
    }

    #[test]
    fn only_checks_without_a_runtime_of_their_own_are_taken() {
        assert_eq!(refused("-fsanitize=undefined,integer a.c"), None);
        assert_eq!(refused("-fsanitize=undefined,address a.c").as_deref(), Some("address"));
        assert_eq!(refused("-fsanitize=thread -fno-sanitize=thread a.c"), None);
        assert_eq!(refused("-fsanitize=thread -fno-sanitize=all a.c"), None);
        assert_eq!(refused("-fsanitize=no-such a.c").as_deref(), Some("no-such"));
    }
}
