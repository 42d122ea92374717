//! Which functions do what with the contents of files: those of C and POSIX, and the streams of libstdc++.

/// What a file is open as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Handle {
    Descriptor(u64),
    /// The address of a `FILE` or of a `std::filebuf`.
    Stream(u64),
}

/// How a call says what it works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// A descriptor, in this argument.
    Descriptor(usize),
    /// A `FILE *` or a `std::filebuf *`.
    Stream(usize),
    /// A stream of C++ in the first argument, with its `std::filebuf` so many bytes behind it.
    Behind(u64),
    /// A `std::istream` in the first argument, of a file or of one that is also written.
    Input,
}

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Opens what it names as [`crate::files`] says; the result is a descriptor, or a stream.
    Open,
    /// A stream of C++ opens what the second argument names, a text or a string, by the mode in the third.
    OpenStream(Named, Text),
    /// The result is the same file as the argument.
    Same(Named),
    /// Writes to a stream, which keeps it for a while.
    Put(Named),
    /// Gives out what a stream kept.
    Flush(Named),
    /// Writes what can be read at once.
    Write(Named),
    Read(Named),
    /// The stream reads the file anew.
    Rewind(Named),
    Close(Named),
    /// What stands in the file that this text names is something else then.
    Replace(usize),
}

impl Role {
    /// May it change what others read?
    pub fn writes(self) -> bool {
        match self {
            Self::Open | Self::OpenStream(..) | Self::Flush(_) | Self::Write(_) => true,
            Self::Close(_) | Self::Replace(_) => true,
            Self::Same(_) | Self::Put(_) | Self::Read(_) | Self::Rewind(_) => false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Text {
    Pointer,
    /// A `std::string`, which begins with a pointer.
    String,
}

/// Where a `std::ofstream`, `std::ifstream` and `std::fstream` have their `std::filebuf`.
const IN_OUTPUT: u64 = 8;
const IN_INPUT: u64 = 16;
const IN_BOTH: u64 = 24;
/// How far a `std::filebuf` may be behind a `std::istream`.
pub(super) const BEHIND_INPUT: [u64; 2] = [IN_INPUT, IN_BOTH];

pub(super) fn role(name: &str) -> Option<Role> {
    use Named::{Descriptor, Stream};
    Some(match name {
        "open" | "open64" | "__open_2" | "__open64_2" | "openat" | "openat64" | "creat"
        | "creat64" => Role::Open,
        "fopen" | "fopen64" => Role::Open,
        "fdopen" | "dup" => Role::Same(Descriptor(0)),
        "fileno" => Role::Same(Stream(0)),
        "write" | "pwrite" | "pwrite64" | "writev" | "pwritev" | "ftruncate" | "ftruncate64" => {
            Role::Write(Descriptor(0))
        }
        "read" | "__read_chk" | "pread" | "pread64" | "__pread_chk" | "__pread64_chk" | "readv" => {
            Role::Read(Descriptor(0))
        }
        "close" => Role::Close(Descriptor(0)),
        "fprintf" | "__fprintf_chk" | "vfprintf" | "__vfprintf_chk" => Role::Put(Stream(0)),
        "fputs" | "fputc" | "putc" | "_IO_putc" | "putw" | "fputs_unlocked" | "putc_unlocked" => {
            Role::Put(Stream(1))
        }
        "fwrite" | "fwrite_unlocked" => Role::Put(Stream(3)),
        "fflush" => Role::Flush(Stream(0)),
        "fclose" => Role::Close(Stream(0)),
        "fscanf" | "__isoc99_fscanf" | "__isoc23_fscanf" | "vfscanf" | "__isoc99_vfscanf"
        | "fgetc" | "getc" | "_IO_getc" | "getc_unlocked" => Role::Read(Stream(0)),
        "fgets" | "getline" | "__getline" => Role::Read(Stream(2)),
        "__fgets_chk" | "fread" | "fread_unlocked" | "getdelim" | "__getdelim" => {
            Role::Read(Stream(3))
        }
        "__fread_chk" => Role::Read(Stream(4)),
        "rewind" | "fseek" | "fseeko" | "fseeko64" => Role::Rewind(Stream(0)),
        "truncate" | "truncate64" => Role::Replace(0),
        "rename" => Role::Replace(1),
        "_ZNSolsEPSt15basic_streambufIcSt11char_traitsIcEE" => Role::Read(Stream(1)),
        "_ZNSt13basic_filebufIcSt11char_traitsIcEE9underflowEv" => Role::Read(Stream(0)),
        "_ZNSo5flushEv" | "_ZSt5flushIcSt11char_traitsIcEERSt13basic_ostreamIT_T0_ES6_" => {
            Role::Flush(Named::Behind(IN_OUTPUT))
        }
        // The last one is given `std::endl` or `std::flush`.
        "_ZSt4endlIcSt11char_traitsIcEERSt13basic_ostreamIT_T0_ES6_" | "_ZNSolsEPFRSoS_E" => {
            Role::Write(Named::Behind(IN_OUTPUT))
        }
        "_ZNSi5seekgElSt12_Ios_Seekdir" | "_ZNSi5seekgESt4fposI11__mbstate_tE" => {
            Role::Rewind(Named::Input)
        }
        _ => return of_class(name).or_else(|| of_stream(name)),
    })
}

/// Did a read find the end of the file, by its result? Not of those whose results do not tell.
pub(super) fn found_nothing(name: &str, given: u64) -> Option<bool> {
    Some(match name {
        "read" | "__read_chk" | "readv" if given as i64 >= 0 => given == 0,
        // What is shorter than one element is none.
        "fread" | "fread_unlocked" | "__fread_chk" if given != 0 => false,
        "fgets" | "__fgets_chk" => given == 0,
        "fgetc" | "getc" | "_IO_getc" | "getc_unlocked" => given as i32 == -1,
        "fscanf" | "__isoc99_fscanf" | "__isoc23_fscanf" | "vfscanf" | "__isoc99_vfscanf" => {
            given as i32 == -1
        }
        "getline" | "__getline" | "getdelim" | "__getdelim" => given as i64 == -1,
        _ => return None,
    })
}

/// Members of the classes of libstdc++ that are files.
fn of_class(name: &str) -> Option<Role> {
    const CLASSES: [(&str, u64); 4] = [
        ("_ZNSt14basic_ofstreamIcSt11char_traitsIcEE", IN_OUTPUT),
        ("_ZNSt14basic_ifstreamIcSt11char_traitsIcEE", IN_INPUT),
        ("_ZNSt13basic_fstreamIcSt11char_traitsIcEE", IN_BOTH),
        ("_ZNSt13basic_filebufIcSt11char_traitsIcEE", 0),
    ];
    const OPENING: [&str; 3] = ["C1E", "C2E", "4openE"];
    const ENDING: [&str; 4] = ["5closeEv", "D1Ev", "D2Ev", "D0Ev"];
    let (member, behind) =
        CLASSES.iter().find_map(|(class, behind)| Some((name.strip_prefix(class)?, *behind)))?;
    let file = Named::Behind(behind);
    if ENDING.contains(&member) {
        return Some(Role::Close(file));
    }
    let parameters = OPENING.iter().find_map(|opening| member.strip_prefix(opening))?;
    if parameters.starts_with("PKcSt13_Ios_Openmode") {
        return Some(Role::OpenStream(file, Text::Pointer));
    }
    let string = parameters.starts_with("RKNSt7__cxx1112basic_string")
        && parameters.ends_with("St13_Ios_Openmode");
    string.then_some(Role::OpenStream(file, Text::String))
}

/// What works on any stream of libstdc++.
fn of_stream(name: &str) -> Option<Role> {
    const NO_USE: [&str; 6] = ["C1", "C2", "D0", "D1", "D2", "5tell"];
    let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    let member = name.strip_prefix("_ZNSi").or_else(|| name.strip_prefix("_ZNSo"));
    if member.is_some_and(|member| NO_USE.iter().any(|other| member.starts_with(other))) {
        return None;
    }
    if begins(&["_ZNSi", "_ZStrsI", "_ZSt7getlineI", "_ZSt2wsI"]) {
        return Some(Role::Read(Named::Input));
    }
    let writes = begins(&["_ZNSo", "_ZStlsI", "_ZSt16__ostream_insertI"]);
    writes.then_some(Role::Put(Named::Behind(IN_OUTPUT)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_the_library_are_known_by_their_names() {
        let open = "_ZNSt14basic_ofstreamIcSt11char_traitsIcEEC1EPKcSt13_Ios_Openmode";
        assert_eq!(role(open), Some(Role::OpenStream(Named::Behind(8), Text::Pointer)));
        let string = "_ZNSt14basic_ifstreamIcSt11char_traitsIcEEC1ERKNSt7__cxx1112basic_stringIcS1_SaIcEEESt13_Ios_Openmode";
        assert_eq!(role(string), Some(Role::OpenStream(Named::Behind(16), Text::String)));
        let close = "_ZNSt13basic_filebufIcSt11char_traitsIcEE5closeEv";
        assert_eq!(role(close), Some(Role::Close(Named::Behind(0))));
        assert_eq!(role("_ZNSirsERi"), Some(Role::Read(Named::Input)));
        assert_eq!(role("_ZNSolsEPFRSoS_E"), Some(Role::Write(Named::Behind(8))));
        assert_eq!(role("_ZNSolsEi"), Some(Role::Put(Named::Behind(8))));
        assert_eq!(role("_ZNSi5tellgEv"), None);
        assert_eq!(role("_ZNSt14basic_ofstreamIcSt11char_traitsIcEEC1Ev"), None);
    }
}
