//! Version scripts of executables: they must not hide the runtime from the instrumented libraries
//! that look for it in the executable.

use super::CcError;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The option in both of the ways that linkers take it.
const NAMES: [&str; 2] = ["--version-script", "-version-script"];

/// What is put first into the first node.
const VISIBLE: &str = " __symbiosis_*; symbiosis_*; ";

/// Puts copies into `directory` in the place of the version scripts that these linker options name.
/// A script that cannot be read stays, so that the linker says what is wrong with it.
pub fn keep_runtime_visible(
    options: Vec<Vec<OsString>>,
    directory: &Path,
) -> Result<Vec<Vec<OsString>>, CcError> {
    let mut scripts = Scripts { directory, count: 0 };
    let mut name_expected = false;
    let mut rewritten = Vec::new();
    for option in options {
        rewritten.push(match option.as_slice() {
            [list] if list.as_bytes().starts_with(b"-Wl,") => {
                let parts = list.as_bytes().split(|&byte| byte == b',');
                let mut parts = parts.map(OsStr::from_bytes).map(OsStr::to_owned);
                let mut joined = parts.next().unwrap_or_default().into_vec();
                for part in parts {
                    joined.push(b',');
                    joined.extend(scripts.word(part, &mut name_expected)?.into_vec());
                }
                vec![OsString::from_vec(joined)]
            }
            [linker, word] if linker == "-Xlinker" => {
                vec![linker.clone(), scripts.word(word.clone(), &mut name_expected)?]
            }
            _ => option,
        });
    }
    Ok(rewritten)
}

struct Scripts<'a> {
    directory: &'a Path,
    count: u32,
}

impl Scripts<'_> {
    /// One word for the linker. `name_expected` says whether the word before was the option alone.
    fn word(&mut self, word: OsString, name_expected: &mut bool) -> Result<OsString, CcError> {
        if std::mem::take(name_expected) {
            return Ok(self.copy(&word)?.map_or(word, OsString::from));
        }
        *name_expected = NAMES.iter().any(|name| word == *name);
        for name in NAMES {
            let file = word.as_bytes().strip_prefix(name.as_bytes());
            let Some(file) = file.and_then(|rest| rest.strip_prefix(b"=")) else { continue };
            if let Some(copy) = self.copy(OsStr::from_bytes(file))? {
                let mut option = OsString::from(format!("{name}="));
                option.push(copy);
                return Ok(option);
            }
        }
        Ok(word)
    }

    fn copy(&mut self, script: &OsStr) -> Result<Option<PathBuf>, CcError> {
        let Ok(mut text) = fs_err::read(Path::new(script)) else { return Ok(None) };
        let Some((at, label)) = place(&text) else { return Ok(None) };
        text.splice(at..at, label.bytes().chain(VISIBLE.bytes()));
        self.count += 1;
        let copy = self.directory.join(format!("version-script-{}", self.count));
        fs_err::write(&copy, text).map_err(CcError::Temporary)?;
        Ok(Some(copy))
    }
}

/// Where the first node's global patterns begin, and the label that they still need there.
fn place(text: &[u8]) -> Option<(usize, &'static str)> {
    let node = next(text, 0, b'{')? + 1;
    let Some(colon) = next(text, node, b':') else { return Some((node, "")) };
    let word = text.get(node..colon).unwrap_or(&[]).trim_ascii_end();
    if word.ends_with(b"global") {
        Some((colon + 1, ""))
    } else if next(text, node, b';').is_none_or(|pattern| colon < pattern) {
        // The node begins with what is local.
        Some((node, " global:"))
    } else {
        Some((node, ""))
    }
}

/// The next such byte that is in no comment. A double colon is part of a name.
fn next(text: &[u8], mut at: usize, wanted: u8) -> Option<usize> {
    while let Some(&byte) = text.get(at) {
        let rest = text.get(at..).unwrap_or(&[]);
        let end: &[u8] = match byte {
            b':' if rest.starts_with(b"::") => b":",
            _ if byte == wanted => return Some(at),
            b'/' if rest.starts_with(b"/*") => b"*/",
            b'#' => b"\n",
            _ => {
                at += 1;
                continue;
            }
        };
        at += rest.windows(end.len()).skip(1).position(|window| window == end)? + 1 + end.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(line: &str, directory: &Path) -> String {
        let options = line.split_whitespace();
        let mut options: Vec<Vec<OsString>> = options.map(|word| vec![word.into()]).collect();
        if options.first().is_some_and(|first| first == &["-Xlinker"]) {
            let words: Vec<OsString> = options.into_iter().flatten().collect();
            options = words.chunks(2).map(<[OsString]>::to_vec).collect();
        }
        let options = keep_runtime_visible(options, directory).unwrap();
        let words: Vec<String> =
            options.iter().flatten().map(|word| word.to_string_lossy().into_owned()).collect();
        words.join(" ").replace(directory.to_str().unwrap(), "DIR")
    }

    #[test]
    fn every_spelling_names_the_copy() {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("map");
        fs_err::write(&script, "/* { */ # {\nV1 { main; local: *; };").unwrap();
        let file = script.display();
        for (line, expected) in [
            (
                format!("-Wl,-s,--version-script={file},-z,now"),
                "-Wl,-s,--version-script=DIR/version-script-1,-z,now",
            ),
            (
                format!("-Wl,--version-script,{file} -lm"),
                "-Wl,--version-script,DIR/version-script-1 -lm",
            ),
            (
                format!("-Wl,-version-script -Wl,{file}"),
                "-Wl,-version-script -Wl,DIR/version-script-1",
            ),
            (
                format!("-Xlinker --version-script -Xlinker {file}"),
                "-Xlinker --version-script -Xlinker DIR/version-script-1",
            ),
            ("-Wl,--version-script=/no/such".to_owned(), "-Wl,--version-script=/no/such"),
        ] {
            assert_eq!(rewritten(&line, directory.path()), expected);
        }
        let copy = fs_err::read_to_string(directory.path().join("version-script-1")).unwrap();
        let expected = format!("/* {{ */ # {{\nV1 {{{VISIBLE} main; local: *; }};");
        assert_eq!(copy, expected);
        for (script, expected) in [
            ("{ global: a; local: *; };", "{ global:+ a; local: *; };"),
            ("{ /* x: */ a::b; local: *; };", "{+ /* x: */ a::b; local: *; };"),
            ("V { local: *; };", "V { global:+ local: *; };"),
            ("{ a; };", "{+ a; };"),
        ] {
            let (at, label) = place(script.as_bytes()).unwrap();
            let (before, after) = script.split_at(at);
            assert_eq!(format!("{before}{label}+{after}"), expected);
        }
    }
}
