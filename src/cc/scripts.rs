//! Version scripts of executables are dropped. They would hide the functions that the runtime wraps
//! from the program's shared libraries, or give them a version that nobody asks for; and an
//! executable without one has all that it has with one.

use std::ffi::OsString;

/// The option in both of the ways that linkers take it.
const NAMES: [&str; 2] = ["--version-script", "-version-script"];

/// Takes version scripts out of the linker's options, in all their spellings.
pub fn without(options: Vec<Vec<OsString>>) -> Vec<Vec<OsString>> {
    let mut name_expected = false;
    let mut kept = Vec::new();
    for option in options {
        match option.as_slice() {
            [list] if list.to_str().is_some_and(|list| list.starts_with("-Wl,")) => {
                let list = list.to_str().unwrap_or_default();
                let words = list.split(',').skip(1).filter(|word| !drops(word, &mut name_expected));
                let words: Vec<&str> = words.collect();
                if !words.is_empty() {
                    kept.push(vec![format!("-Wl,{}", words.join(",")).into()]);
                }
            }
            [linker, word] if linker == "-Xlinker" => {
                if !drops(&word.to_string_lossy(), &mut name_expected) {
                    kept.push(option);
                }
            }
            _ => kept.push(option),
        }
    }
    kept
}

/// Does this word for the linker belong to a version script? `name_expected` says whether the word
/// before was the option alone.
fn drops(word: &str, name_expected: &mut bool) -> bool {
    if std::mem::take(name_expected) {
        return true;
    }
    *name_expected = NAMES.contains(&word);
    let joined = |name: &&str| word.strip_prefix(*name).is_some_and(|rest| rest.starts_with('='));
    *name_expected || NAMES.iter().any(joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_goes() {
        let pairs = |words: &[&str]| vec![words.iter().map(OsString::from).collect::<Vec<_>>()];
        for (options, expected) in [
            (pairs(&["-Wl,-s,--version-script=map,-z,now"]), Some("-Wl,-s,-z,now")),
            (pairs(&["-Wl,--version-script,map"]), None),
            ([pairs(&["-Wl,-version-script"]), pairs(&["-Wl,map,-s"])].concat(), Some("-Wl,-s")),
            (pairs(&["-Xlinker", "--version-script=map"]), None),
            (
                [pairs(&["-Xlinker", "--version-script"]), pairs(&["-Xlinker", "map"])].concat(),
                None,
            ),
            (pairs(&["-Wl,--gc-sections"]), Some("-Wl,--gc-sections")),
        ] {
            let kept: Vec<OsString> = without(options).into_iter().flatten().collect();
            let expected: Vec<OsString> = expected.into_iter().map(OsString::from).collect();
            assert_eq!(kept, expected);
        }
    }
}
