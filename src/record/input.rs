//! What the program reads as standard input, where it is run several times: the same in each run.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom};
use std::os::fd::AsFd as _;
use std::sync::OnceLock;

/// Where the file that standard input was redirected from stood before the first run; none where that is no file.
static BEGIN: OnceLock<Option<u64>> = OnceLock::new();

/// Before each run: has standard input stand where it did before the first one. A file's position is shared with the programs that
/// read it, so the first run would leave none of it to the next. What came through a pipe or from a terminal is gone.
pub fn rewind() {
    let Ok(input) = io::stdin().as_fd().try_clone_to_owned() else { return };
    let mut input = File::from(input);
    let begin = *BEGIN.get_or_init(|| {
        let is_file = input.metadata().is_ok_and(|it| it.is_file());
        is_file.then(|| input.stream_position().ok()).flatten()
    });
    if let Some(begin) = begin {
        // Of a file that can be read no longer the program has to find out by itself.
        let _ = input.seek(SeekFrom::Start(begin));
    }
}
