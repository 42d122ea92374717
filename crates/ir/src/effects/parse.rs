//! Reads declarations. `effects/README.md` has the grammar.

use super::{Declaration, Extent, Format, Kind, Measured, Number, Place, Region, Success};
use std::collections::HashMap;
use thiserror::Error;

/// A line that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}:{line}: {detail}")]
pub struct EffectsError {
    /// The file.
    pub file: &'static str,
    /// The line, from 1.
    pub line: u32,
    /// What is wrong with it.
    pub detail: String,
}

/// What objects of a type are.
#[derive(Default)]
struct Shape {
    /// Bytes.
    size: u64,
    /// Of what pointers in them point to: the offsets that lead there, and the extent, still as
    /// text, because words of the object may occur in it.
    behind: Vec<(Vec<u16>, Vec<Token>)>,
}

/// Types by name.
pub(super) struct Types(HashMap<String, Shape>);

impl Default for Types {
    fn default() -> Self {
        let plain = [
            ("char", 1),
            ("short", 2),
            ("int", 4),
            ("unsigned", 4),
            ("long", 8),
            ("float", 4),
            ("double", 8),
            ("size_t", 8),
            ("ssize_t", 8),
        ];
        let shape =
            |(name, size): (&str, u64)| (name.to_owned(), Shape { size, behind: Vec::new() });
        Self(plain.map(shape).into())
    }
}

type Result<T> = std::result::Result<T, String>;

/// The declarations of a file, and the lines that could not be read. `types` grows.
pub(super) fn file(
    file: &'static str,
    text: &str,
    types: &mut Types,
) -> (Vec<Declaration>, Vec<EffectsError>) {
    let (mut declarations, mut errors) = (Vec::new(), Vec::new());
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.split('#').next().unwrap_or_default().trim();
        if text.is_empty() {
            continue;
        }
        let done = match text.strip_prefix("type ") {
            Some(definition) => types.define(definition),
            None => expand(text, 0).and_then(|texts| {
                for text in texts {
                    let mut declaration = Line::new(&text, types)?.declaration()?;
                    (declaration.file, declaration.line) = (file, line);
                    declarations.push(declaration);
                }
                Ok(())
            }),
        };
        if let Err(detail) = done {
            errors.push(EffectsError { file, line, detail });
        }
    }
    (declarations, errors)
}

/// The texts that alternatives in braces stand for: `sin{,f,l}` is three.
fn expand(text: &str, depth: u32) -> Result<Vec<String>> {
    let Some((before, rest)) = text.split_once('{') else { return Ok(vec![text.to_owned()]) };
    let (choices, after) = rest.split_once('}').ok_or("a brace is not closed")?;
    if depth > 3 {
        return Err("more than three braces".to_owned());
    }
    let mut texts = Vec::new();
    for choice in choices.split(',') {
        texts.extend(expand(&format!("{before}{}{after}", choice.trim()), depth + 1)?);
    }
    Ok(texts)
}

impl Types {
    /// `NAME SIZE`, then for pointers in it `[OFFSET]... -> (EXTENT)`, in which `[N]` is the word at
    /// that offset of the object.
    fn define(&mut self, definition: &str) -> Result<()> {
        let (front, pointers) = match definition.split_once('[') {
            Some((front, rest)) => (front.trim(), format!("[{rest}")),
            None => (definition.trim(), String::new()),
        };
        let (name, size) = front.rsplit_once(' ').ok_or("a type needs a name and a size")?;
        let size = size.parse().map_err(|_| format!("{size} is no size"))?;
        let mut shape = Shape { size, behind: Vec::new() };
        let pointers = tokens(&pointers)?;
        let mut rest = pointers.as_slice();
        while !rest.is_empty() {
            let mut path = Vec::new();
            while let [Token::Sign('['), Token::Number(offset), Token::Sign(']'), more @ ..] = rest
            {
                path.push(u16::try_from(*offset).map_err(|_| "an offset is too large")?);
                rest = more;
            }
            let [Token::Arrow, Token::Sign('('), more @ ..] = rest else {
                return Err("[OFFSET] -> (EXTENT) is missing".to_owned());
            };
            let mut depth = 1;
            let end = more.iter().position(|token| {
                depth += i32::from(*token == Token::Sign('('));
                depth -= i32::from(*token == Token::Sign(')'));
                depth == 0
            });
            let end = end.ok_or("an extent does not end")?;
            let (extent, more) = more.split_at(end);
            shape.behind.push((path, extent.to_vec()));
            rest = more.get(1..).unwrap_or_default();
        }
        match self.0.insert(name.trim().to_owned(), shape) {
            None => Ok(()),
            Some(_) => Err(format!("{} is defined already", name.trim())),
        }
    }

    fn get(&self, name: &str) -> Option<&Shape> {
        self.0.get(name)
    }
}

/// A word, a number, or a sign.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Number(u64),
    Sign(char),
    Arrow,
    Dots,
}

fn tokens(text: &str) -> Result<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
        let (token, length) = if rest.starts_with("->") {
            (Token::Arrow, 2)
        } else if rest.starts_with("...") {
            (Token::Dots, 3)
        } else if is_word(first) {
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            let word = rest.get(..length).unwrap_or_default();
            match word.parse() {
                Ok(number) => (Token::Number(number), length),
                Err(_) if first.is_ascii_digit() => return Err(format!("{word} is no number")),
                Err(_) => (Token::Word(word.to_owned()), length),
            }
        } else if first.is_ascii() {
            (Token::Sign(first), 1)
        } else {
            return Err(format!("{first} has no meaning here"));
        };
        tokens.push(token);
        rest = rest.get(length..).unwrap_or_default().trim_start();
    }
    Ok(tokens)
}

/// A parameter.
#[derive(Default)]
struct Parameter {
    name: String,
    /// The type without `const` and one `*`, with single spaces.
    pointee: String,
}

/// A line being read.
struct Line<'a> {
    types: &'a Types,
    name: String,
    /// What the result points to.
    result: String,
    tokens: Vec<Token>,
    at: usize,
    parameters: Vec<Parameter>,
    out: Declaration,
}

/// Directions that a parameter can have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    None,
    In,
    Out,
    InOut,
    Opaque,
    Format,
    Scan,
}

impl<'a> Line<'a> {
    fn new(text: &str, types: &'a Types) -> Result<Self> {
        // The parameters begin behind the name, which may be `operator()`.
        let from = text.find("operator()").map_or(0, |at| at + "operator()".len());
        let open = text.get(from..).and_then(|rest| rest.find('(')).ok_or("no parameters")? + from;
        let (head, rest) = text.split_at(open);
        let head = head.trim_end();
        let start = match head.find("operator") {
            Some(at) => head.get(..at).and_then(|front| front.rfind([' ', '*', '&'])),
            // The members of a class, `Class::*`.
            None => head.strip_suffix("::*").unwrap_or(head).rfind([' ', '*', '&']),
        };
        let start = start.ok_or("no result type stands before the name")? + 1;
        let name = head.get(start..).unwrap_or_default().to_owned();
        if name.is_empty() {
            return Err("no name".to_owned());
        }
        let out = Declaration {
            name: name.clone(),
            file: "",
            line: 0,
            kind: Kind::Library,
            parameters: 0,
            reads: Vec::new(),
            writes: Vec::new(),
            opaque: Vec::new(),
            format: None,
            when: None,
            calls_back: false,
            waits: false,
            sleeps: false,
            measured: Measured::Nothing,
            objects: false,
            sets: Vec::new(),
        };
        let tokens = tokens(rest)?;
        let result = pointee(head.get(..start).unwrap_or_default());
        let mut line = Self { types, name, result, tokens, at: 0, parameters: Vec::new(), out };
        line.parameters = line.names()?;
        Ok(line)
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        token
    }

    fn take(&mut self, token: &Token) -> bool {
        let there = self.peek() == Some(token);
        self.at += usize::from(there);
        there
    }

    fn sign(&mut self, sign: char) -> Result<()> {
        match self.take(&Token::Sign(sign)) {
            true => Ok(()),
            false => Err(format!("{sign} is missing in the description of {}", self.name)),
        }
    }

    /// The parameters' names and types, found before extents are read: those may speak of later
    /// parameters.
    fn names(&self) -> Result<Vec<Parameter>> {
        let (mut parameters, mut current): (Vec<Parameter>, Vec<String>) = (Vec::new(), Vec::new());
        let (mut depth, mut skip) = (0usize, false);
        for token in &self.tokens {
            match token {
                Token::Sign('(') => depth += 1,
                Token::Sign(')') if depth > 1 => depth -= 1,
                Token::Sign(',' | ')') if depth == 1 => {
                    parameters.extend(parameter(&current)?);
                    current.clear();
                    skip = false;
                    if *token == Token::Sign(')') {
                        return Ok(parameters);
                    }
                }
                Token::Arrow => skip = true,
                Token::Dots => {}
                _ if depth != 1 || skip => {}
                Token::Word(word) => current.push(word.clone()),
                Token::Sign(sign) => current.push(sign.to_string()),
                Token::Number(number) => return Err(format!("{number} is no parameter")),
            }
        }
        Err("the parameters do not end".to_owned())
    }

    fn declaration(mut self) -> Result<Declaration> {
        self.sign('(')?;
        let mut index = 0;
        while !self.take(&Token::Sign(')')) {
            if self.take(&Token::Dots) {
                self.take(&Token::Sign(','));
                continue;
            }
            self.one_parameter(index)?;
            index += 1;
            if !self.take(&Token::Sign(',')) && self.peek() != Some(&Token::Sign(')')) {
                return Err(format!("parameter {index} of {} does not end", self.name));
            }
        }
        self.out.parameters = u8::try_from(self.parameters.len()).map_err(|e| e.to_string())?;
        if let Some(format) = &mut self.out.format {
            format.first = self.out.parameters;
            let list = self.parameters.iter().position(|parameter| parameter.pointee == "va_list");
            format.list = list.and_then(|list| u8::try_from(list).ok());
        }
        self.tail()?;
        Ok(self.out)
    }

    fn one_parameter(&mut self, index: usize) -> Result<()> {
        let number = u8::try_from(index).map_err(|error| error.to_string())?;
        let direction = match self.peek() {
            Some(Token::Word(word)) => direction(word),
            _ => Direction::None,
        };
        self.at += usize::from(direction != Direction::None);
        let mut extent = None;
        if direction != Direction::None && self.take(&Token::Sign('(')) {
            extent = Some(self.extent(None)?);
            self.sign(')')?;
        }
        // The type and the name, which are known already.
        while !matches!(
            self.peek(),
            None | Some(Token::Arrow | Token::Dots | Token::Sign(',' | ')' | '('))
        ) {
            self.at += 1;
        }
        let behind = if self.take(&Token::Arrow) { Some(self.arrow(None)?) } else { None };
        if direction == Direction::None {
            return match behind {
                None => Ok(()),
                Some(_) => {
                    Err(format!("parameter {} of {} has no direction", index + 1, self.name))
                }
            };
        }
        self.described(number, direction, extent, behind)
    }

    fn described(
        &mut self,
        index: u8,
        direction: Direction,
        extent: Option<Extent>,
        behind: Option<Extent>,
    ) -> Result<()> {
        let place = Place::argument(index);
        let mut regions = match extent {
            Some(extent) => vec![Region { place: place.clone(), extent }],
            None => {
                let parameter = self.parameters.get(usize::from(index));
                let pointee = parameter.map_or("", |parameter| &parameter.pointee);
                self.object(&place, pointee)?
            }
        };
        if let Some(extent) = behind {
            regions.truncate(1);
            regions.push(Region { place: place.along(&[0]), extent });
        }
        if let Direction::Format | Direction::Scan = direction {
            let scans = direction == Direction::Scan;
            self.out.format = Some(Format { scans, format: index, first: 0, list: None });
        }
        if direction == Direction::Opaque {
            let Some(Extent::Bytes(Number::Constant(size))) = regions.first().map(|r| &r.extent)
            else {
                return Err(format!("the size of an opaque object of {} is not known", self.name));
            };
            self.out.opaque.push((index, *size));
            return Ok(());
        }
        if direction != Direction::Out {
            // Where pointers lead before a call that changes them is not looked for.
            let read = if direction == Direction::InOut { 1 } else { regions.len() };
            self.out.reads.extend(regions.iter().take(read).cloned());
        }
        if let Direction::Out | Direction::InOut = direction {
            self.out.writes.extend(regions);
        }
        Ok(())
    }

    /// What an object of a type at a place consists of.
    fn object(&self, place: &Place, pointee: &str) -> Result<Vec<Region>> {
        let whole = |extent| vec![Region { place: place.clone(), extent }];
        let bytes = |size| Extent::Bytes(Number::Constant(size));
        match pointee {
            "text" => return Ok(whole(Extent::Text(None))),
            "wide" => return Ok(whole(Extent::Wide(None))),
            _ => {}
        }
        if let Some(inner) = pointee.strip_suffix('*') {
            let mut regions = whole(bytes(8));
            // A pointer to a type that is known leads on.
            if self.types.get(inner.trim()).is_some_and(|shape| !shape.behind.is_empty()) {
                regions.extend(self.object(&place.along(&[0]), inner.trim())?);
            }
            return Ok(regions);
        }
        let Some(shape) = self.types.get(pointee) else {
            return Err(format!(
                "the size of {pointee} is not known: say how many bytes, or define the type"
            ));
        };
        let mut regions = whole(bytes(shape.size));
        for (path, tokens) in &shape.behind {
            let mut inner = Line {
                types: self.types,
                name: self.name.clone(),
                result: String::new(),
                tokens: tokens.clone(),
                at: 0,
                parameters: Vec::new(),
                out: self.out.clone(),
            };
            let extent = inner.extent(Some(place))?;
            if inner.at < tokens.len() {
                return Err(format!("the extents of {pointee} do not end"));
            }
            regions.push(Region { place: place.along(path), extent });
        }
        Ok(regions)
    }

    /// `(extent)`.
    fn arrow(&mut self, this: Option<&Place>) -> Result<Extent> {
        self.sign('(')?;
        let extent = self.extent(this)?;
        self.sign(')')?;
        Ok(extent)
    }

    fn extent(&mut self, this: Option<&Place>) -> Result<Extent> {
        let kind = match self.peek() {
            Some(Token::Word(word)) if word == "text" => Extent::Text,
            Some(Token::Word(word)) if word == "wide" => Extent::Wide,
            Some(Token::Word(word)) if word == "vector" => {
                self.at += 1;
                self.sign(',')?;
                return Ok(Extent::Vector(self.number(this)?));
            }
            Some(Token::Word(word)) if word == "texts" => {
                self.at += 1;
                self.sign(',')?;
                return Ok(Extent::Texts(self.number(this)?));
            }
            _ => return Ok(Extent::Bytes(self.number(this)?)),
        };
        self.at += 1;
        let bound = match self.take(&Token::Sign(',')) {
            true => Some(self.number(this)?),
            false => None,
        };
        Ok(kind(bound))
    }

    fn number(&mut self, this: Option<&Place>) -> Result<Number> {
        let mut number = self.product(this)?;
        loop {
            let make = match self.peek() {
                Some(Token::Sign('+')) => Number::Sum,
                Some(Token::Sign('-')) => Number::Difference,
                _ => return Ok(number),
            };
            self.at += 1;
            number = make(Box::new(number), Box::new(self.product(this)?));
        }
    }

    fn product(&mut self, this: Option<&Place>) -> Result<Number> {
        let mut number = self.factor(this)?;
        while self.take(&Token::Sign('*')) {
            number = Number::Product(Box::new(number), Box::new(self.factor(this)?));
        }
        Ok(number)
    }

    fn factor(&mut self, this: Option<&Place>) -> Result<Number> {
        match self.next() {
            Some(Token::Number(number)) => Ok(Number::Constant(number)),
            Some(Token::Word(word)) if word == "min" => {
                self.sign('(')?;
                let first = self.number(this)?;
                self.sign(',')?;
                let second = self.number(this)?;
                self.sign(')')?;
                Ok(Number::Smaller(Box::new(first), Box::new(second)))
            }
            Some(Token::Word(word)) if word == "odd" => {
                self.sign('(')?;
                let inner = self.number(this)?;
                self.sign(')')?;
                Ok(Number::Odd(Box::new(inner)))
            }
            Some(Token::Word(word)) if word == "ret" => match self.offset()? {
                None => Ok(Number::Result),
                Some(offset) => Ok(Number::Word(Place::result(), offset)),
            },
            Some(Token::Word(word)) => {
                let index = self.parameter_called(&word)?;
                Ok(match self.offset()? {
                    None => Number::Argument(index),
                    Some(offset) => Number::Word(Place::argument(index), offset),
                })
            }
            Some(Token::Sign('[')) => {
                let this = this.ok_or("a word without a name belongs into types only")?;
                self.at -= 1;
                Ok(Number::Word(this.clone(), self.offset()?.unwrap_or(0)))
            }
            Some(Token::Sign('(')) => {
                let inner = self.number(this)?;
                self.sign(')')?;
                Ok(inner)
            }
            Some(Token::Sign('*')) => {
                let Some(Token::Word(word)) = self.next() else {
                    return Err("the name of a parameter has to follow *".to_owned());
                };
                let index = self.parameter_called(&word)?;
                let pointee = self.parameters.get(usize::from(index)).map(|p| p.pointee.as_str());
                let shape = pointee.and_then(|pointee| self.types.get(pointee));
                match shape.map(|shape| shape.size) {
                    Some(4) => Ok(Number::Pointed32(index)),
                    Some(8) => Ok(Number::Word(Place::argument(index), 0)),
                    _ => Err(format!("{word} does not point to a number of 4 or 8 bytes")),
                }
            }
            other => Err(format!("a number is missing before {other:?}")),
        }
    }

    /// `[offset]`, when it comes next.
    fn offset(&mut self) -> Result<Option<u16>> {
        if !self.take(&Token::Sign('[')) {
            return Ok(None);
        }
        let Some(Token::Number(offset)) = self.next() else {
            return Err("an offset is a number".to_owned());
        };
        self.sign(']')?;
        u16::try_from(offset).map(Some).map_err(|_| format!("{offset} is too far away"))
    }

    fn parameter_called(&self, name: &str) -> Result<u8> {
        let found = self.parameters.iter().position(|parameter| parameter.name == name);
        let found = found.and_then(|index| u8::try_from(index).ok());
        found.ok_or_else(|| format!("{} has no parameter {name}", self.name))
    }

    /// What stands behind the parameters.
    fn tail(&mut self) -> Result<()> {
        if self.take(&Token::Arrow) {
            self.result()?;
        }
        while let Some(token) = self.next() {
            let Token::Word(word) = token else {
                return Err(format!("{token:?} has no meaning behind the parameters"));
            };
            match word.as_str() {
                "computed" => self.out.kind = Kind::Computed,
                "completed" => self.out.kind = Kind::Completed,
                "reported" => self.out.kind = Kind::Reported,
                "ends" => self.out.kind = Kind::Ends,
                "measured" => {
                    let all = matches!(self.peek(), Some(Token::Word(word)) if word == "all");
                    self.at += usize::from(all);
                    self.out.measured = if all { Measured::All } else { Measured::Written };
                }
                "waits" => self.out.waits = true,
                "sleeps" => self.out.sleeps = true,
                "calls" => self.out.calls_back = true,
                "objects" => self.out.objects = true,
                "sets" => {
                    let Some(Token::Word(variable)) = self.next() else {
                        return Err("the name of a variable has to follow sets".to_owned());
                    };
                    self.out.sets.push(variable);
                }
                "when" => self.out.when = Some(self.success()?),
                _ => return Err(format!("{word} has no meaning behind the parameters")),
            }
        }
        Ok(())
    }

    fn result(&mut self) -> Result<()> {
        match self.peek() {
            Some(Token::Word(word)) if word == "object" => {
                self.at += 1;
                let regions = self.object(&Place::result(), &self.result)?;
                self.out.writes.extend(regions);
            }
            Some(Token::Word(word)) if word == "table" => {
                self.at += 1;
                self.sign('(')?;
                let mut numbers = [0; 3];
                for (i, number) in numbers.iter_mut().enumerate() {
                    if i > 0 {
                        self.sign(',')?;
                    }
                    let Some(Token::Number(value)) = self.next() else {
                        return Err("a table has three numbers".to_owned());
                    };
                    *number = value;
                }
                self.sign(')')?;
                let [index, before, length] = numbers;
                let index = u8::try_from(index).ok().filter(|&index| index < 3);
                let before = u16::try_from(before).ok();
                let (Some(index), Some(before)) = (index, before) else {
                    return Err("there are three tables, from 0 to 2".to_owned());
                };
                let word = Extent::Bytes(Number::Constant(8));
                self.out.writes.push(Region { place: Place::result(), extent: word });
                let extent = Extent::Table { index, before, length };
                self.out.writes.push(Region { place: Place::result(), extent });
            }
            _ => {
                let extent = self.arrow(None)?;
                self.out.writes.push(Region { place: Place::result(), extent });
            }
        }
        Ok(())
    }

    /// `ret == 0` and the like.
    fn success(&mut self) -> Result<Success> {
        let text: Vec<Token> = (0..4).filter_map(|_| self.next()).collect();
        let ret = Token::Word("ret".to_owned());
        let zero = Token::Number(0);
        let (success, used) = match text.as_slice() {
            [a, Token::Sign('='), Token::Sign('='), b] if (a, b) == (&ret, &zero) => {
                (Success::Zero, 4)
            }
            [a, Token::Sign('!'), Token::Sign('='), b] if (a, b) == (&ret, &zero) => {
                (Success::NotZero, 4)
            }
            [a, Token::Sign('>'), Token::Sign('='), b] if (a, b) == (&ret, &zero) => {
                (Success::NotNegative, 4)
            }
            [a, Token::Sign('>'), b, ..] if (a, b) == (&ret, &zero) => (Success::Positive, 3),
            _ => return Err("after when: ret == 0, ret != 0, ret > 0 or ret >= 0".to_owned()),
        };
        self.at = self.at + used - text.len();
        Ok(success)
    }
}

fn direction(word: &str) -> Direction {
    match word {
        "in" => Direction::In,
        "out" => Direction::Out,
        "inout" => Direction::InOut,
        "opaque" => Direction::Opaque,
        "format" => Direction::Format,
        "scan" => Direction::Scan,
        _ => Direction::None,
    }
}

/// The name and type of a parameter; `None` for `void` and for no parameters at all.
fn parameter(words: &[String]) -> Result<Option<Parameter>> {
    let words = match words.split_first() {
        Some((first, rest)) if direction(first) != Direction::None => rest,
        _ => words,
    };
    let (name, ty) = match words {
        [] => return Ok(None),
        [only] if only == "void" => return Ok(None),
        [only] => return Err(format!("parameter {only} has no name or no type")),
        [ty @ .., name] => (name, ty),
    };
    Ok(Some(Parameter { name: name.clone(), pointee: pointee(&ty.join(" ")) }))
}

/// What a type points to: without `const` and its last `*`, with single spaces.
fn pointee(ty: &str) -> String {
    let spaced = ty.replace('*', " * ").replace('&', " & ");
    let mut words: Vec<&str> = spaced.split_whitespace().filter(|&word| word != "const").collect();
    if let Some(&("*" | "&")) = words.last() {
        words.pop();
    }
    words.join(" ")
}
