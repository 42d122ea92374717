//! Names of C++ functions as people write them.

/// What the C++ library writes out in full, and people do not. Longer ones first.
const SHORT: &[(&str, &str)] = &[
    ("std::__cxx11::", "std::"),
    ("std::filesystem::__cxx11::", "std::filesystem::"),
    ("std::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string"),
    (
        "std::basic_string<wchar_t, std::char_traits<wchar_t>, std::allocator<wchar_t> >",
        "std::wstring",
    ),
    ("std::basic_string<char>", "std::string"),
    ("std::basic_stringbuf<char, std::char_traits<char>, std::allocator<char> >", "std::stringbuf"),
    (
        "std::basic_stringstream<char, std::char_traits<char>, std::allocator<char> >",
        "std::stringstream",
    ),
    (
        "std::basic_ostringstream<char, std::char_traits<char>, std::allocator<char> >",
        "std::ostringstream",
    ),
    (
        "std::basic_istringstream<char, std::char_traits<char>, std::allocator<char> >",
        "std::istringstream",
    ),
    ("std::basic_ostream<char, std::char_traits<char> >", "std::ostream"),
    ("std::basic_istream<char, std::char_traits<char> >", "std::istream"),
    ("std::basic_iostream<char, std::char_traits<char> >", "std::iostream"),
    ("std::basic_ios<char, std::char_traits<char> >", "std::ios"),
    ("std::basic_streambuf<char, std::char_traits<char> >", "std::streambuf"),
    ("std::basic_filebuf<char, std::char_traits<char> >", "std::filebuf"),
    ("std::basic_ofstream<char, std::char_traits<char> >", "std::ofstream"),
    ("std::basic_ifstream<char, std::char_traits<char> >", "std::ifstream"),
    ("std::basic_fstream<char, std::char_traits<char> >", "std::fstream"),
    ("std::ctype<char>", "std::ctype"),
    // libc++.
    (
        "std::__1::basic_string<char, std::__1::char_traits<char>, std::__1::allocator<char> >",
        "std::__1::string",
    ),
    ("std::__1::basic_ostream<char, std::__1::char_traits<char> >", "std::__1::ostream"),
    ("std::__1::basic_istream<char, std::__1::char_traits<char> >", "std::__1::istream"),
    ("std::__1::basic_streambuf<char, std::__1::char_traits<char> >", "std::__1::streambuf"),
];

/// The name of a C++ symbol without its parameters, with the library's usual abbreviations; `None`
/// for other symbols.
#[must_use]
pub fn readable(symbol: &str) -> Option<String> {
    if !symbol.starts_with("_Z") {
        return None;
    }
    let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
    let parsed = cpp_demangle::Symbol::new(symbol).ok()?;
    let mut name = parsed.demangle_with_options(&options).ok()?;
    // Tags say which layout of the library's types a function is for: `[abi:cxx11]`.
    while let Some((before, tag)) = name.split_once("[abi:")
        && let Some((_, after)) = tag.split_once(']')
    {
        name = format!("{before}{after}");
    }
    for (long, short) in SHORT {
        if name.contains(long) {
            name = name.replace(long, short);
        }
    }
    Some(name)
}

/// A readable name without the template arguments at its end.
pub(super) fn without_arguments(name: &str) -> &str {
    if !name.ends_with('>') || name.ends_with("operator>") || name.ends_with("->") {
        return name;
    }
    let mut depth = 0usize;
    for (at, byte) in name.bytes().enumerate().rev() {
        match byte {
            b'>' => depth += 1,
            b'<' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return name.get(..at).unwrap_or(name).trim_end();
                }
            }
            _ => {}
        }
    }
    name
}
