//! Response files: `@file` on the command line stands for the arguments in the file, as in clang.

use super::CcError;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Replaces every `@file` whose file exists by its contents, nested ones included. An argument
/// that names no file stays as it is.
pub fn expand(args: &[OsString]) -> Result<Vec<OsString>, CcError> {
    let mut expanded = Vec::with_capacity(args.len());
    for arg in args {
        expand_one(arg, &mut Vec::new(), &mut expanded)?;
    }
    Ok(expanded)
}

fn expand_one(
    arg: &OsStr,
    open: &mut Vec<PathBuf>,
    expanded: &mut Vec<OsString>,
) -> Result<(), CcError> {
    let Some(name) = arg.as_bytes().strip_prefix(b"@") else {
        expanded.push(arg.to_owned());
        return Ok(());
    };
    let path = Path::new(OsStr::from_bytes(name)).to_owned();
    if open.contains(&path) {
        return Err(CcError::ResponseCycle { path });
    }
    let text = match fs_err::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            expanded.push(arg.to_owned());
            return Ok(());
        }
        Err(source) => return Err(CcError::ResponseFile { path, source }),
    };
    open.push(path);
    for inner in tokenize(&text) {
        expand_one(&inner, open, expanded)?;
    }
    open.pop();
    Ok(())
}

/// Splits a response file the way clang does on Unix: white space separates, quotes of both kinds
/// group, and a backslash takes the next byte literally, inside quotes too.
fn tokenize(text: &[u8]) -> Vec<OsString> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut tokens = Vec::new();
    let mut token: Option<Vec<u8>> = None;
    let mut quote = None;
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        match (byte, quote) {
            (b'\\', _) => token.get_or_insert_default().extend(bytes.next()),
            (_, Some(open)) if byte == open => quote = None,
            (_, Some(_)) => token.get_or_insert_default().push(byte),
            (b'\'' | b'"', None) => {
                quote = Some(byte);
                token.get_or_insert_default();
            }
            (_, None) if byte.is_ascii_whitespace() => tokens.extend(token.take()),
            (_, None) => token.get_or_insert_default().push(byte),
        }
    }
    tokens.extend(token);
    tokens.into_iter().map(OsString::from_vec).collect()
}

/// Writes arguments so that [`tokenize`], and clang, read the same arguments back.
pub fn quote(args: &[OsString]) -> Vec<u8> {
    let mut text = Vec::new();
    for arg in args {
        text.push(b'"');
        for &byte in arg.as_bytes() {
            if matches!(byte, b'"' | b'\\') {
                text.push(b'\\');
            }
            text.push(byte);
        }
        text.extend_from_slice(b"\"\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(tokens: &[OsString]) -> Vec<&str> {
        tokens.iter().map(|token| token.to_str().unwrap()).collect()
    }

    #[test]
    fn quotes_group_and_backslashes_escape() {
        let tokens = tokenize(b"-c a.c\n\"-DX=a b\" '-DY=\\'' '' -I\\ d -D'Z'=1");
        assert_eq!(strings(&tokens), ["-c", "a.c", "-DX=a b", "-DY='", "", "-I d", "-DZ=1"]);
    }

    #[test]
    fn what_is_quoted_reads_back() {
        let args: Vec<OsString> =
            ["", "a b", "\"", "\\", "it's", "line\nbreak"].iter().map(OsString::from).collect();
        assert_eq!(tokenize(&quote(&args)), args);
    }

    #[test]
    fn nested_files_expand_and_missing_ones_stay() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("inner");
        let outer = dir.path().join("outer");
        fs_err::write(&inner, "-DB").unwrap();
        fs_err::write(&outer, format!("-DA @{} -DC", inner.display())).unwrap();
        let args = [OsString::from(format!("@{}", outer.display())), "@/nonexistent/x".into()];
        assert_eq!(strings(&expand(&args).unwrap()), ["-DA", "-DB", "-DC", "@/nonexistent/x"]);
    }

    #[test]
    fn a_file_that_includes_itself_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("loop");
        fs_err::write(&path, format!("@{}", path.display())).unwrap();
        let error = expand(&[OsString::from(format!("@{}", path.display()))]).unwrap_err();
        assert!(matches!(error, CcError::ResponseCycle { .. }), "{error:?}");
    }
}
