use super::*;

fn read(text: &str) -> Table {
    Table::read(&[("test.effects", text)])
}

fn one(text: &str) -> Declaration {
    let table = read(text);
    assert_eq!(table.errors(), [], "{text}");
    table.declarations().last().unwrap_or_else(|| panic!("nothing in {text}")).clone()
}

fn bytes(place: Place, number: Number) -> Region {
    Region { place, extent: Extent::Bytes(number) }
}

#[test]
fn every_line_can_be_read() {
    let errors: Vec<String> = table().errors().iter().map(ToString::to_string).collect();
    assert!(errors.is_empty(), "{}", errors.join("\n"));
    assert!(table().declarations().len() > 1500, "{}", table().declarations().len());
}

#[test]
fn the_text_of_a_stream_is_all_that_is_written_in_every_standard() {
    let classes = [
        "15basic_stringbuf",
        "18basic_stringstream",
        "19basic_ostringstream",
        "19basic_istringstream",
    ];
    for class in classes {
        for (qualifiers, changes) in [("K", 0), ("KR", 0), ("O", 1)] {
            let name = format!("_ZN{qualifiers}St7__cxx11{class}IcSt11char_traitsIcESaIcEE3strEv");
            let declaration = effect(&name).unwrap_or_else(|| panic!("{name}"));
            assert!(!declaration.objects, "{name}");
            assert_eq!(
                declaration.writes.first().map(|it| it.place.clone()),
                Some(Place::argument(0))
            );
            assert_eq!(declaration.opaque.len(), changes, "{name}");
        }
    }
}

#[test]
fn lines_mention_arguments_that_functions_have() {
    for declaration in table().declarations() {
        let last = declaration.last_argument().map_or(0, |last| last + 1);
        assert!(last <= declaration.parameters, "{}", declaration.name);
    }
}

#[test]
fn a_line_says_what_is_read_and_written() {
    let read = one("ssize_t read(int fd, out(ret) void *buf, size_t n) waits");
    assert_eq!(read.writes, [bytes(Place::argument(1), Number::Result)]);
    assert!(read.reads.is_empty() && read.waits && read.parameters == 3);
    assert!(!read.is_unseen());

    let line =
        "type size_t_ 8\nlong getline(inout char **line -> (ret + 1), in size_t_ *n) when ret >= 0";
    let line = one(line);
    let text = Number::Sum(Box::new(Number::Result), Box::new(Number::Constant(1)));
    let eight = Number::Constant(8);
    assert_eq!(
        line.writes,
        [bytes(Place::argument(0), eight.clone()), bytes(Place::argument(0).along(&[0]), text),]
    );
    assert_eq!(line.reads.len(), 2);
    assert_eq!(line.when, Some(Success::NotNegative));
}

#[test]
fn types_say_where_their_pointers_lead() {
    let found = one("type struct entry 24 [0] -> (text) [8] -> ([16] * 4)\n\
         int find(in text *name, out struct entry **result)");
    let object = Place::argument(1).along(&[0]);
    let product =
        Number::Product(Box::new(Number::Word(object.clone(), 16)), Box::new(Number::Constant(4)));
    assert_eq!(
        found.writes,
        [
            bytes(Place::argument(1), Number::Constant(8)),
            bytes(object.clone(), Number::Constant(24)),
            Region { place: object.along(&[0]), extent: Extent::Text(None) },
            bytes(object.along(&[8]), product),
        ]
    );
    let result = one("type struct entry 24\nstruct entry *next(void) -> object");
    assert_eq!(result.writes, [bytes(Place::result(), Number::Constant(24))]);
}

#[test]
fn formats_know_where_their_arguments_are() {
    let direct = one("int printf(format text *fmt, ...)");
    let format = Format { scans: false, format: 0, first: 1, list: None };
    assert_eq!((direct.format, direct.is_unseen()), (Some(format), true));
    let list = one("int vsscanf(in text *s, scan text *fmt, va_list list)");
    let format = Format { scans: true, format: 1, first: 3, list: Some(2) };
    assert_eq!((list.format, list.is_unseen()), (Some(format), false));
}

#[test]
fn mistakes_are_named_by_file_and_line() {
    for (text, detail) in [
        ("int f(out struct nobody *x)", "the size of struct nobody is not known"),
        ("int f(out(m) void *x)", "f has no parameter m"),
        ("int f(int x) sometimes", "sometimes has no meaning"),
        ("int f(int x) when ret < 0", "after when"),
        ("int f(out(8 void *x)", "the parameters do not end"),
        ("f(int x)", "no result type"),
        ("int f", "no parameters"),
        ("int {f,g(int x)", "a brace is not closed"),
        ("type struct s 8x", "8x is no size"),
        ("type int 4", "int is defined already"),
        ("int f(void)\nint f(void)", "f is described already in test.effects:2"),
    ] {
        let table = read(&format!("# a comment\n{text}"));
        let [error] = table.errors() else { panic!("{text}: {:?}", table.errors()) };
        let shown = error.to_string();
        let line = if text.contains('\n') { 3 } else { 2 };
        assert!(shown.starts_with(&format!("test.effects:{line}: ")), "{shown}");
        assert!(shown.contains(detail), "{text}: {shown}");
    }
}

#[test]
fn symbols_are_found_by_their_readable_names() {
    let name = |symbol: &str| effect(symbol).map(|found| found.name.as_str());
    for (symbol, expected) in [
        ("memcpy", "memcpy"),
        ("sinf", "sinf"),
        ("_ZNSo9_M_insertIdEERSoT_", "std::ostream::_M_insert"),
        ("_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_appendEPKcm", {
            "std::string::_M_append"
        }),
        ("_ZNSt6thread4joinEv", "std::thread::join"),
        ("_ZNSt6localeC1Ev", "std::locale::locale"),
        ("_ZNSt6locale5_ImplD1Ev", "std::locale::_Impl::*"),
        ("_ZSt20_Rb_tree_black_countPKSt18_Rb_tree_node_baseS1_", "std::_Rb_tree_black_count"),
    ] {
        assert_eq!(name(symbol), Some(expected), "{symbol}");
    }
    assert_eq!(name("_ZN4bank7depositEi"), None);
    assert_eq!(name("no_such_function"), None);
}
