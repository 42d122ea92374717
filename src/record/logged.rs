//! How much a run under way has logged.

use std::path::Path;
use trace_format::files;
use trace_format::layout::STREAM_WINDOW;

/// Bytes of all streams of a run's trace directory; 0 where there are none yet.
pub(super) fn stream_bytes(directory: &Path) -> u64 {
    stream_lengths(directory).sum()
}

/// The same without the window at each file's end, which is as long as it is whether anything was
/// written there or not: thousands of threads have hundreds of megabytes of them.
pub(super) fn bytes_behind_windows(directory: &Path) -> u64 {
    let window = STREAM_WINDOW as u64;
    stream_lengths(directory).map(|length| length.saturating_sub(window)).sum()
}

fn stream_lengths(directory: &Path) -> impl Iterator<Item = u64> {
    let files = std::fs::read_dir(directory.join(files::THREADS)).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, create_dir};

    #[test]
    fn empty_windows_are_nothing_that_was_logged() {
        let directory = tempfile::tempdir().unwrap();
        let threads = directory.path().join(files::THREADS);
        assert_eq!(stream_bytes(directory.path()), 0, "a run that has not begun");
        create_dir(&threads).unwrap();
        let window = STREAM_WINDOW as u64;
        for thread in 0..3000 {
            File::create(threads.join(thread.to_string())).unwrap().set_len(window).unwrap();
        }
        assert_eq!(stream_bytes(directory.path()), 3000 * window);
        assert_eq!(bytes_behind_windows(directory.path()), 0);
        File::create(threads.join("7")).unwrap().set_len(5 * window + 12).unwrap();
        assert_eq!(bytes_behind_windows(directory.path()), 4 * window + 12);
    }
}
