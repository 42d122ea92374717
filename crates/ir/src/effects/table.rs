//! The table, read from its files when it is first asked.

use super::Declaration;
use super::names::{readable, without_arguments};
use super::parse::{self, EffectsError};
use std::collections::HashMap;
use std::sync::{OnceLock, PoisonError, RwLock};

/// The files, by name. Names of a later file may not repeat those of an earlier one.
const FILES: &[(&str, &str)] = &[
    ("libc.effects", include_str!("../../effects/libc.effects")),
    ("posix.effects", include_str!("../../effects/posix.effects")),
    ("libm.effects", include_str!("../../effects/libm.effects")),
    ("libstdcxx.effects", include_str!("../../effects/libstdcxx.effects")),
    ("libcxx.effects", include_str!("../../effects/libcxx.effects")),
    ("glib.effects", include_str!("../../effects/glib.effects")),
    ("libevent.effects", include_str!("../../effects/libevent.effects")),
    ("googletest.effects", include_str!("../../effects/googletest.effects")),
    ("sanitizer.effects", include_str!("../../effects/sanitizer.effects")),
    ("rust.effects", include_str!("../../effects/rust.effects")),
    ("cxx.effects", include_str!("../../effects/cxx.effects")),
];

/// All declarations.
#[derive(Debug, Default)]
pub struct Table {
    declarations: Vec<Declaration>,
    by_name: HashMap<String, usize>,
    errors: Vec<EffectsError>,
}

impl Table {
    /// Reads files: pairs of name and text. Lines that cannot be read are left out, and named in
    /// [`Self::errors`].
    #[must_use]
    pub fn read(files: &[(&'static str, &str)]) -> Self {
        let mut table = Self::default();
        let mut types = parse::Types::default();
        for &(file, text) in files {
            let (declarations, errors) = parse::file(file, text, &mut types);
            table.errors.extend(errors);
            for declaration in declarations {
                table.add(declaration);
            }
        }
        table
    }

    fn add(&mut self, declaration: Declaration) {
        let index = self.declarations.len();
        let earlier = self.by_name.insert(declaration.name.clone(), index);
        if let Some(first) = earlier.and_then(|earlier| self.declarations.get(earlier)) {
            let detail = format!(
                "{} is described already in {}:{}",
                declaration.name, first.file, first.line
            );
            let (file, line) = (declaration.file, declaration.line);
            self.errors.push(EffectsError { file, line, detail });
        }
        self.declarations.push(declaration);
    }

    /// In the order of the files.
    #[must_use]
    pub fn declarations(&self) -> &[Declaration] {
        &self.declarations
    }

    /// The lines that could not be read.
    #[must_use]
    pub fn errors(&self) -> &[EffectsError] {
        &self.errors
    }

    /// The declaration of a symbol: under its own name, else under its readable name, that without
    /// template arguments, or that of all members of its class (`std::locale::*`).
    #[must_use]
    pub fn find(&self, symbol: &str) -> Option<&Declaration> {
        let get = |name: &str| self.declarations.get(*self.by_name.get(name)?);
        if let Some(found) = get(symbol) {
            return Some(found);
        }
        let name = readable(symbol)?;
        let plain = without_arguments(&name);
        let members = |class: &str| get(&format!("{class}::*"));
        get(&name).or_else(|| get(plain)).or_else(|| {
            let (class, _) = plain.rsplit_once("::")?;
            members(class).or_else(|| members(without_arguments(class)))
        })
    }
}

/// The table of this program.
#[must_use]
pub fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| Table::read(FILES))
}

/// What the table says about a function, given by its symbol; `None` for one that it does not know.
#[must_use]
pub fn effect(symbol: &str) -> Option<&'static Declaration> {
    type Found = RwLock<HashMap<String, Option<&'static Declaration>>>;
    static FOUND: OnceLock<Found> = OnceLock::new();
    let found = FOUND.get_or_init(Found::default);
    if let Some(known) = found.read().unwrap_or_else(PoisonError::into_inner).get(symbol) {
        return *known;
    }
    let declaration = table().find(symbol);
    let mut found = found.write().unwrap_or_else(PoisonError::into_inner);
    found.insert(symbol.to_owned(), declaration);
    declaration
}
