//! Finding libLLVM and resolving the table.

use crate::table::{Build, Debug, Machine, Values};
use std::ffi::{OsString, c_void};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr::NonNull;
use std::sync::OnceLock;

/// The environment variable that names the libLLVM to load; nothing else is tried when it is set.
pub const LIBRARY_VARIABLE: &str = "SYMBIOSIS_LLVM";

/// The oldest LLVM whose C API has every required function.
pub const OLDEST_VERSION: u32 = 19;

/// Where system packages put libraries.
const SYSTEM_DIRECTORIES: [&str; 6] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib64",
    "/usr/local/lib",
    "/lib64",
];

/// Why no LLVM could be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// There is none in the places that are searched.
    #[error(
        "no libLLVM {OLDEST_VERSION} or newer found: rustc's own (`rustc --print sysroot`) and \
         the system's library directories were searched; set {LIBRARY_VARIABLE} to its path"
    )]
    NotFound,
    /// The dynamic linker refuses it.
    #[error("cannot load {}", path.display())]
    Open {
        /// The library.
        path: PathBuf,
        /// What the dynamic linker says.
        #[source]
        source: libloading::Error,
    },
    /// It lacks a function.
    #[error("{} has no function {function}", path.display())]
    Missing {
        /// The library.
        path: PathBuf,
        /// The function.
        function: &'static str,
    },
    /// It is older than [`OLDEST_VERSION`].
    #[error("{} is LLVM {version}, older than {OLDEST_VERSION}", path.display())]
    TooOld {
        /// The library.
        path: PathBuf,
        /// Its version.
        version: Version,
    },
}

/// A version of LLVM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// `22` of 22.1.2.
    pub major: u32,
    /// `1` of 22.1.2.
    pub minor: u32,
    /// `2` of 22.1.2.
    pub patch: u32,
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// A loaded LLVM: its functions are methods, named as in the LLVM-C header.
pub struct Llvm {
    pub(crate) values: Values,
    pub(crate) build: Build,
    pub(crate) debug: Debug,
    pub(crate) machine: Machine,
    path: PathBuf,
    version: Version,
}

impl std::fmt::Debug for Llvm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LLVM {} ({})", self.version, self.path.display())
    }
}

impl Llvm {
    /// The process's LLVM, loaded at the first call and never unloaded.
    ///
    /// # Errors
    /// When no usable library is found; a later call searches again.
    pub fn load() -> Result<&'static Self, LoadError> {
        static LOADED: OnceLock<Llvm> = OnceLock::new();
        if let Some(llvm) = LOADED.get() {
            return Ok(llvm);
        }
        let llvm = search()?;
        Ok(LOADED.get_or_init(|| llvm))
    }

    /// Loads this library.
    ///
    /// # Errors
    /// When it cannot be loaded or is too old.
    pub fn open(path: &Path) -> Result<Self, LoadError> {
        // SAFETY: libLLVM's initialisers only register options and passes.
        let library = unsafe { libloading::Library::new(path) }
            .map_err(|source| LoadError::Open { path: path.to_owned(), source })?;
        let missing = |function| LoadError::Missing { path: path.to_owned(), function };
        let machine = Machine::resolve(&library).map_err(missing)?;
        let version = version(&machine);
        if version.major < OLDEST_VERSION {
            return Err(LoadError::TooOld { path: path.to_owned(), version });
        }
        let llvm = Self {
            values: Values::resolve(&library).map_err(missing)?,
            build: Build::resolve(&library).map_err(missing)?,
            debug: Debug::resolve(&library).map_err(missing)?,
            machine,
            path: path.to_owned(),
            version,
        };
        // Function pointers into the library live as long as the process.
        std::mem::forget(library);
        Ok(llvm)
    }

    /// The library's file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The library's version.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }
}

/// The address of a symbol; `name` ends in a zero byte.
pub(crate) fn symbol(library: &libloading::Library, name: &str) -> Option<NonNull<c_void>> {
    // SAFETY: the symbol is only turned into an address here.
    let symbol = unsafe { library.get::<*mut c_void>(name.as_bytes()) }.ok()?;
    NonNull::new(*symbol)
}

fn version(machine: &Machine) -> Version {
    let mut version = Version { major: 0, minor: 0, patch: 0 };
    // SAFETY: the three pointers are valid.
    unsafe {
        (machine.LLVMGetVersion)(&mut version.major, &mut version.minor, &mut version.patch);
    }
    version
}

/// Tries the candidates in order. The first failure is reported when all of them fail, because it
/// is about the best candidate.
fn search() -> Result<Llvm, LoadError> {
    if let Some(path) = std::env::var_os(LIBRARY_VARIABLE).filter(|path| !path.is_empty()) {
        return Llvm::open(Path::new(&path));
    }
    let mut failure = None;
    let candidates = sysroot().map(|root| in_directory(&root.join("lib"))).unwrap_or_default();
    for path in candidates.into_iter().chain(system_libraries()) {
        match Llvm::open(&path) {
            Ok(llvm) => return Ok(llvm),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    Err(failure.unwrap_or(LoadError::NotFound))
}

/// The sysroot of the user's rustc.
fn sysroot() -> Option<PathBuf> {
    let rustc = std::env::var_os("RUSTC");
    if rustc.is_none()
        && let Some(toolchain) = chosen_toolchain()
    {
        return Some(toolchain);
    }
    let rustc = rustc.unwrap_or_else(|| OsString::from("rustc"));
    let output = Command::new(rustc).args(["--print", "sysroot"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| PathBuf::from(text.trim()))
}

/// What rustup chose for a process that it began, as `cargo`: the rustc that is called from there is that one, and to ask it
/// takes as long as to load LLVM.
fn chosen_toolchain() -> Option<PathBuf> {
    let [home, chosen] = ["RUSTUP_HOME", "RUSTUP_TOOLCHAIN"].map(std::env::var_os);
    let root = Path::new(&home?).join("toolchains").join(chosen?);
    root.join("lib").is_dir().then_some(root)
}

/// The libLLVMs of the system, newest first.
fn system_libraries() -> Vec<PathBuf> {
    let mut directories: Vec<PathBuf> = SYSTEM_DIRECTORIES.iter().map(PathBuf::from).collect();
    for parent in ["/usr/lib", "/usr/lib64"] {
        for entry in entries(Path::new(parent)) {
            if entry.file_name().is_some_and(|name| name.to_string_lossy().starts_with("llvm")) {
                directories.extend([entry.join("lib"), entry.join("lib64")]);
            }
        }
    }
    let mut found: Vec<(u32, PathBuf)> = directories
        .iter()
        .flat_map(|directory| in_directory(directory))
        .filter_map(|path| Some((major_of(&path)?, path)))
        .filter(|(major, _)| *major >= OLDEST_VERSION)
        .collect();
    found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    found.into_iter().map(|(_, path)| path).collect()
}

/// The major version that the file names, else its directory (`/usr/lib/llvm-19/lib/libLLVM.so`).
fn major_of(path: &Path) -> Option<u32> {
    let target = path.canonicalize().ok()?;
    [path, &target].into_iter().flat_map(|path| path.iter().rev()).find_map(|part| {
        let part = part.to_str()?;
        let digits = part.strip_prefix("libLLVM").or_else(|| part.strip_prefix("llvm"))?;
        let digits = digits.trim_start_matches(|c: char| !c.is_ascii_digit());
        digits.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    })
}

/// The loadable libLLVMs of a directory, sorted by name.
fn in_directory(directory: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = entries(directory)
        .into_iter()
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.starts_with("libLLVM") && name.contains(".so") && is_elf(path)
        })
        .collect();
    found.sort();
    found
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

/// rustc ships a linker script beside the library under a similar name.
fn is_elf(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == *b"\x7fELF"
}
