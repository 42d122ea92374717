//! The trace directories among what was given.

use super::TriageError;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use trace_format::files::MANIFEST;

/// What a manifest names as its format.
const FORMAT: &str = "symbiosis-trace";
/// Directories are looked into so deep.
const DEPTH: usize = 8;

/// All trace directories at these places, each once, in the order given and by name within a directory. A
/// place is a trace directory itself, or one that holds some, at any depth.
///
/// # Errors
/// When a place does not exist, or a directory cannot be read.
pub fn traces(places: &[PathBuf]) -> Result<Vec<PathBuf>, TriageError> {
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    for place in places {
        if !place.is_dir() {
            return Err(TriageError::NoDirectory(place.clone()));
        }
        look_into(place, DEPTH, &mut |trace| {
            let whole = fs_err::canonicalize(trace).unwrap_or_else(|_| trace.to_owned());
            if seen.insert(whole) {
                let named = trace.strip_prefix(".").unwrap_or(trace);
                found.push(if named.as_os_str().is_empty() { trace } else { named }.to_owned());
            }
        })?;
    }
    Ok(found)
}

fn look_into(place: &Path, depth: usize, take: &mut impl FnMut(&Path)) -> Result<(), TriageError> {
    // What lies within a trace belongs to it.
    if is_trace(place) {
        take(place);
        return Ok(());
    }
    if depth == 0 {
        return Ok(());
    }
    let failed = |source| TriageError::List { path: place.to_owned(), source };
    let mut inside = Vec::new();
    for entry in fs_err::read_dir(place).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        // A link may lead back to where it stands.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            inside.push(entry.path());
        }
    }
    inside.sort();
    inside.iter().try_for_each(|path| look_into(path, depth - 1, take))
}

/// By its name, or by what its manifest says that it is: a damaged trace shall not be passed over, nor
/// another tool's directory be taken for one. What `record -o x.trace -- make check` leaves has the name as well, and holds
/// a trace of each process.
fn is_trace(place: &Path) -> bool {
    match fs_err::read(place.join(MANIFEST)) {
        Ok(text) if has(&text, FORMAT.as_bytes()) => true,
        Ok(_) => is_named_so(place),
        Err(_) => is_named_so(place) && !holds_traces(place),
    }
}

fn is_named_so(place: &Path) -> bool {
    place.extension().is_some_and(|extension| extension == "trace")
}

fn holds_traces(place: &Path) -> bool {
    let inside = fs_err::read_dir(place).into_iter().flatten().flatten();
    inside.map(|entry| entry.path()).any(|path| is_named_so(&path) && path.join(MANIFEST).is_file())
}

fn has(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|part| part == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_are_found_at_any_depth_and_once() {
        let root = tempfile::tempdir().expect("a directory");
        let ours = r#"{"format": "symbiosis-trace"}"#;
        let places = [("a/c", ours), ("a/c/watched", ours), ("web", "{}"), ("b.trace", "{")];
        for (place, manifest) in places {
            let directory = root.path().join(place);
            fs_err::create_dir_all(&directory).expect("it can be made");
            fs_err::write(directory.join(MANIFEST), manifest).expect("it can be written");
        }
        let one = root.path().join("b.trace");
        let found = traces(&[one.clone(), root.path().to_owned()]).expect("there are some");
        assert_eq!(found, [one, root.path().join("a/c")]);
    }

    #[test]
    fn the_traces_of_a_runner_s_processes_lie_in_a_directory_that_is_called_like_one() {
        let root = tempfile::tempdir().expect("a directory");
        let runner = root.path().join("check.trace");
        let processes = ["one.trace", "two.trace"].map(|name| runner.join(name));
        for process in &processes {
            fs_err::create_dir_all(process).expect("it can be made");
            fs_err::write(process.join(MANIFEST), "{").expect("it can be written");
        }
        let damaged = root.path().join("damaged.trace");
        fs_err::create_dir_all(damaged.join("threads")).expect("it can be made");
        let found = traces(&[root.path().to_owned()]).expect("there are some");
        assert_eq!(found, [processes[0].clone(), processes[1].clone(), damaged]);
    }

    #[test]
    fn a_place_that_is_not_there_is_named() {
        let error = traces(&[PathBuf::from("no/such/place")]).expect_err("there is none");
        assert!(error.to_string().contains("no/such/place"), "{error}");
    }
}
