//! A run that waits for a process that it started: the cause is in that one's trace.

use std::path::{Path, PathBuf};
use symex::AwaitedChild;
use trace_format::Manifest;

/// What the program waits for, and where it is explained.
pub(super) fn awaited(directory: &Path, awaited: &AwaitedChild) -> String {
    let AwaitedChild { thread, function, process } = awaited;
    let child = process.map_or_else(|| "a process".to_owned(), |id| format!("process {id}"));
    let waits = format!("{thread} waits in {function} for {child} that the program started");
    let stuck = stuck(directory, awaited);
    let traces: Vec<String> = stuck.iter().map(|path| path.display().to_string()).collect();
    match traces.as_slice() {
        [] => format!("{waits}, and there is no trace of one that did not come to an end"),
        [trace] => format!("{waits}, and that did not come to an end either: {trace} tells why"),
        traces => format!("{waits}, and several did not come to an end: {}", traces.join(", ")),
    }
}

/// The traces of children that did not end, beside the parent's.
fn stuck(directory: &Path, awaited: &AwaitedChild) -> Vec<PathBuf> {
    let Ok(own) = Manifest::read(directory) else { return Vec::new() };
    let folder = match directory.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let entries = fs_err::read_dir(folder).into_iter().flatten().flatten();
    let of_child = |path: &PathBuf| {
        let Ok(child) = Manifest::read(path) else { return false };
        let Some(process) = child.process else { return false };
        let of_this = own.process.is_none_or(|own| own.pid == process.parent);
        let this_one = awaited.process.is_none_or(|id| id == process.pid);
        child.timed_out && of_this && this_one && child.started_ms >= own.started_ms
    };
    let mut found: Vec<PathBuf> = entries
        .map(|entry| folder.join(entry.file_name()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "trace"))
        .filter(of_child)
        .map(|path| path.strip_prefix(".").map(Path::to_owned).unwrap_or(path))
        .collect();
    found.sort();
    found
}
