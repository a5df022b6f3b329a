//! Reads modules, functions and variables.

use std::collections::HashMap;

use super::PtxError;
use super::lexer::{Placed, Token};
use super::local;
use super::syntax::{Declaration, DeclaredSpace, Function, Initial, Source, Type};

/// Bytes that one variable may have.
const MOST_BYTES: u64 = 1 << 40;

/// Reads the tokens of a module.
pub(super) fn parse(tokens: Vec<Placed<'_>>) -> Result<Source, PtxError> {
    Parser { tokens, next: 0, inlined_at: HashMap::new() }.source()
}

/// Functions by name; a definition comes before declarations.
pub(super) fn index(source: &Source) -> Result<HashMap<String, usize>, PtxError> {
    let mut functions: HashMap<String, usize> = HashMap::new();
    for (number, function) in source.functions.iter().enumerate() {
        let earlier = functions.get(&function.name).and_then(|&n| source.functions.get(n));
        if earlier.is_some_and(|earlier| earlier.body.is_some()) {
            if function.body.is_some() {
                let reason = format!("`{}` is defined a second time", function.name);
                return Err(PtxError::new(function.line, reason));
            }
            continue;
        }
        functions.insert(function.name.clone(), number);
    }
    Ok(functions)
}

pub(super) struct Parser<'t> {
    pub(super) tokens: Vec<Placed<'t>>,
    pub(super) next: usize,
    /// Where the function that a position is in was inlined; of several, the last.
    pub(super) inlined_at: HashMap<FilePosition, FilePosition>,
}

/// File, line and column.
pub(super) type FilePosition = (u32, u32, u32);

impl<'t> Parser<'t> {
    fn source(mut self) -> Result<Source, PtxError> {
        let mut source = Source::default();
        let mut is_extern = false;
        loop {
            let word = match self.peek() {
                Token::End => return Ok(source),
                Token::Word(word) => word,
                _ => return Err(self.unexpected("a directive")),
            };
            if let Some(space) = declared_space(word).filter(|&s| s != DeclaredSpace::Parameter) {
                self.skip();
                source.variables.extend(self.declarations(space, is_extern)?);
                is_extern = false;
                continue;
            }
            match word {
                ".visible" | ".weak" | ".common" => self.skip(),
                ".extern" => {
                    is_extern = true;
                    self.skip();
                }
                ".entry" | ".func" => {
                    self.skip();
                    source.functions.push(self.function(word == ".entry")?);
                    is_extern = false;
                }
                ".version" => {
                    self.skip();
                    self.skip();
                }
                ".target" => {
                    self.skip();
                    self.word()?;
                    while self.eat(b',') {
                        self.word()?;
                    }
                }
                ".address_size" => {
                    self.skip();
                    if self.integer()? != 64 {
                        return Err(self.error("only 64-bit addresses are supported"));
                    }
                }
                ".file" => {
                    self.skip();
                    let number = self.small("a file number")?;
                    let Token::Text(name) = self.peek() else {
                        return Err(self.unexpected("a file name"));
                    };
                    self.skip();
                    source.files.insert(number, name.to_owned());
                    while self.eat(b',') {
                        self.integer()?;
                    }
                }
                ".loc" => {
                    self.location()?;
                }
                ".section" => self.section()?,
                ".pragma" => self.skip_past(b';')?,
                _ => return Err(self.error(format!("unknown directive `{word}`"))),
            }
        }
    }

    fn function(&mut self, is_kernel: bool) -> Result<Function, PtxError> {
        self.skip_attribute()?;
        let results = if self.is_mark(b'(') { self.parameters()? } else { Vec::new() };
        let line = self.line();
        let name = self.word()?.to_owned();
        let parameters = if self.is_mark(b'(') { self.parameters()? } else { Vec::new() };
        let (mut most_threads, mut cluster) = (None, None);
        loop {
            match self.peek() {
                Token::Mark(b';') => {
                    self.skip();
                    return Ok(Function {
                        name,
                        line,
                        is_kernel,
                        results,
                        parameters,
                        most_threads,
                        cluster,
                        local_arrays: Vec::new(),
                        body: None,
                    });
                }
                Token::Mark(b'{') => {
                    let mut body = self.body()?;
                    return Ok(Function {
                        name,
                        line,
                        is_kernel,
                        results,
                        parameters,
                        most_threads,
                        cluster,
                        local_arrays: local::spread(&mut body),
                        body: Some(body),
                    });
                }
                Token::Word(".pragma") => self.skip_past(b';')?,
                Token::Word(directive) if directive.starts_with('.') => {
                    self.skip();
                    let mut product = Some(1_u32);
                    let mut numbers = 0;
                    let mut extents = [1; 3];
                    while matches!(self.peek(), Token::Integer(_)) {
                        let number = self.small("a number")?;
                        product = product.and_then(|product| product.checked_mul(number));
                        if let Some(extent) = extents.get_mut(numbers) {
                            *extent = number;
                        }
                        numbers += 1;
                        if !self.eat(b',') {
                            break;
                        }
                    }
                    if directive == ".reqnctapercluster" && product.is_some_and(|n| n > 0) {
                        cluster = (numbers > 0).then_some(extents);
                    }
                    if matches!(directive, ".maxntid" | ".reqntid") {
                        most_threads = product.filter(|&threads| numbers > 0 && threads > 0);
                        if most_threads.is_none() {
                            let reason = format!("`{directive}` is no number of threads");
                            return Err(self.error(reason));
                        }
                    }
                }
                _ => return Err(self.unexpected("`{` or `;`")),
            }
        }
    }

    /// `(.param .u64 a, .param .align 8 .b8 b[16])`
    fn parameters(&mut self) -> Result<Vec<Declaration>, PtxError> {
        self.expect(b'(')?;
        let mut parameters = Vec::new();
        while !self.eat(b')') {
            if !parameters.is_empty() {
                self.expect(b',')?;
            }
            match self.peek() {
                Token::Word(".param") => self.skip(),
                Token::Word(".reg") => {
                    return Err(self.error("parameters in registers are not supported"));
                }
                _ => return Err(self.unexpected("`.param`")),
            }
            let prefix = self.prefix(DeclaredSpace::Parameter, false)?;
            parameters.push(self.declarator(&prefix)?);
        }
        Ok(parameters)
    }

    /// `.align 4 .u32 a[2] = {1, 2}, b;`, after the space.
    pub(super) fn declarations(
        &mut self,
        space: DeclaredSpace,
        is_extern: bool,
    ) -> Result<Vec<Declaration>, PtxError> {
        let prefix = self.prefix(space, is_extern)?;
        let mut declarations = Vec::new();
        loop {
            let mut declaration = self.declarator(&prefix)?;
            if self.eat(b'=') {
                self.initialiser(&mut declaration)?;
            }
            declarations.push(declaration);
            if self.eat(b';') {
                return Ok(declarations);
            }
            self.expect(b',')?;
        }
    }

    /// What stands before the name: alignment and type. A vector's elements are the count.
    fn prefix(&mut self, space: DeclaredSpace, is_extern: bool) -> Result<Declaration, PtxError> {
        let (mut align, mut lanes) = (None, 1);
        // The alignment after `.ptr` is of what the parameter points to.
        let mut is_pointer = false;
        let mut ty = None;
        while let Token::Word(word) = self.peek() {
            let Some(name) = word.strip_prefix('.') else { break };
            self.skip();
            match name {
                "align" => {
                    let value = self.integer()?;
                    if !value.is_power_of_two() || value > 1 << 20 {
                        return Err(self.error(format!("{value} is no alignment")));
                    }
                    if !is_pointer {
                        align = Some(value);
                    }
                }
                "attribute" => {
                    self.next = self.next.saturating_sub(1);
                    self.skip_attribute()?;
                }
                "ptr" => is_pointer = true,
                "global" | "const" | "shared" | "local" if is_pointer => {}
                "v2" => lanes = 2,
                "v4" => lanes = 4,
                _ => match Type::parse(name) {
                    Some(known) if known.bits >= 8 => ty = Some(known),
                    _ => return Err(self.error(format!("a variable cannot be `{word}`"))),
                },
            }
        }
        let ty = ty.ok_or_else(|| self.unexpected("a type"))?;
        let align = align.unwrap_or(u64::from(ty.bits / 8) * lanes);
        let (name, line, initial) = (String::new(), self.line(), Vec::new());
        let count = Some(lanes);
        Ok(Declaration { name, line, space, is_extern, align, ty, count, initial })
    }

    /// `name`, `name[4]` or `name[]`.
    fn declarator(&mut self, prefix: &Declaration) -> Result<Declaration, PtxError> {
        let mut declaration = prefix.clone();
        declaration.line = self.line();
        declaration.name = self.word()?.to_owned();
        if declaration.name.starts_with('.') {
            return Err(self.unexpected("a name"));
        }
        while self.eat(b'[') {
            let elements = if self.is_mark(b']') { None } else { Some(self.integer()?) };
            self.expect(b']')?;
            declaration.count = match (declaration.count, elements) {
                (Some(count), Some(elements)) => Some(count.saturating_mul(elements)),
                _ => None,
            };
        }
        if declaration.bytes() > MOST_BYTES {
            return Err(self.error(format!("`{}` is too large", declaration.name)));
        }
        Ok(declaration)
    }

    fn initialiser(&mut self, declaration: &mut Declaration) -> Result<(), PtxError> {
        if self.eat(b'{') {
            while !self.eat(b'}') {
                if !declaration.initial.is_empty() {
                    self.expect(b',')?;
                }
                if self.is_mark(b'{') {
                    return Err(self.error("nested initialisers are not supported"));
                }
                declaration.initial.push(self.initial()?);
            }
        } else {
            declaration.initial.push(self.initial()?);
        }
        let given = declaration.initial.len() as u64;
        if given > *declaration.count.get_or_insert(given) {
            return Err(self.error(format!("too many initial values of `{}`", declaration.name)));
        }
        Ok(())
    }

    fn initial(&mut self) -> Result<Initial, PtxError> {
        let negative = self.eat(b'-');
        let token = self.peek();
        self.skip();
        let mask = match token {
            Token::Integer(mask) if self.is_mark(b'(') && !negative => Some(mask),
            Token::Integer(value) if negative => return Ok(Initial::Integer(value.wrapping_neg())),
            Token::Integer(value) => return Ok(Initial::Integer(value)),
            Token::Single(bits) => return Ok(Initial::Single(bits ^ (u32::from(negative) << 31))),
            Token::Double(bits) => return Ok(Initial::Double(bits ^ (u64::from(negative) << 63))),
            Token::Word(_) if !negative => None,
            _ => return Err(self.unexpected("an initial value")),
        };
        // `generic(name)`, `mask(name)`, `mask(generic(name))`, `name`, each with an offset.
        let mut word = match token {
            Token::Word(word) => word,
            _ => "",
        };
        let mut open = 0;
        while open < 2 && (word.is_empty() || word == "generic") && self.eat(b'(') {
            word = self.word()?;
            open += 1;
        }
        let mut offset = 0;
        for closes in 0..=open {
            if closes > 0 {
                self.expect(b')')?;
            }
            offset = self.offset(offset)?;
        }
        Ok(Initial::Address { name: word.to_owned(), offset, mask })
    }

    /// Any number of `+8`, `-8` and `+-8`, added.
    pub(super) fn offset(&mut self, mut offset: i64) -> Result<i64, PtxError> {
        while self.is_mark(b'+') || self.is_mark(b'-') {
            let minus = self.is_mark(b'-');
            self.skip();
            let negative = minus != self.eat(b'-');
            let value = self.integer()?.cast_signed();
            offset = offset.wrapping_add(if negative { value.wrapping_neg() } else { value });
        }
        Ok(offset)
    }

    /// `.attribute(.managed)`, if it comes next.
    fn skip_attribute(&mut self) -> Result<(), PtxError> {
        while self.peek() == Token::Word(".attribute") {
            self.skip();
            self.skip_pair(b'(', b')')?;
        }
        Ok(())
    }

    /// `.section name { ... }`
    pub(super) fn section(&mut self) -> Result<(), PtxError> {
        self.skip();
        self.word()?;
        self.skip_pair(b'{', b'}')
    }

    /// Skips from an opening mark to the one that closes it.
    fn skip_pair(&mut self, open: u8, close: u8) -> Result<(), PtxError> {
        self.expect(open)?;
        let mut depth = 1_usize;
        while depth > 0 {
            match self.peek() {
                Token::Mark(mark) if mark == open => depth += 1,
                Token::Mark(mark) if mark == close => depth -= 1,
                Token::End => return Err(self.unexpected("the end of what was opened")),
                _ => {}
            }
            self.skip();
        }
        Ok(())
    }

    pub(super) fn skip_past(&mut self, mark: u8) -> Result<(), PtxError> {
        while !self.eat(mark) {
            if self.peek() == Token::End {
                return Err(self.unexpected(&format!("`{}`", char::from(mark))));
            }
            self.skip();
        }
        Ok(())
    }

    /// The next token.
    pub(super) fn peek(&self) -> Token<'t> {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Token<'t> {
        self.tokens.get(self.next + ahead).map_or(Token::End, |placed| placed.token)
    }

    pub(super) fn skip(&mut self) {
        self.next += 1;
    }

    pub(super) fn line(&self) -> u32 {
        self.tokens.get(self.next).or(self.tokens.last()).map_or(0, |placed| placed.line)
    }

    pub(super) fn is_mark(&self, mark: u8) -> bool {
        self.peek() == Token::Mark(mark)
    }

    /// Skips a mark if it comes next, and tells whether.
    pub(super) fn eat(&mut self, mark: u8) -> bool {
        let is_next = self.is_mark(mark);
        self.next += usize::from(is_next);
        is_next
    }

    pub(super) fn expect(&mut self, mark: u8) -> Result<(), PtxError> {
        if self.eat(mark) {
            return Ok(());
        }
        Err(self.unexpected(&format!("`{}`", char::from(mark))))
    }

    pub(super) fn word(&mut self) -> Result<&'t str, PtxError> {
        let Token::Word(word) = self.peek() else { return Err(self.unexpected("a name")) };
        self.skip();
        Ok(word)
    }

    pub(super) fn integer(&mut self) -> Result<u64, PtxError> {
        let Token::Integer(value) = self.peek() else {
            return Err(self.unexpected("an integer"));
        };
        self.skip();
        Ok(value)
    }

    pub(super) fn small(&mut self, what: &str) -> Result<u32, PtxError> {
        let value = self.integer()?;
        u32::try_from(value).map_err(|_| self.error(format!("{value} is not {what}")))
    }

    pub(super) fn unexpected(&self, wanted: &str) -> PtxError {
        let found = match self.peek() {
            Token::Word(word) => format!("`{word}`"),
            Token::Integer(value) => format!("`{value}`"),
            Token::Single(_) | Token::Double(_) => "a float".to_owned(),
            Token::Text(_) => "a string".to_owned(),
            Token::Mark(mark) => format!("`{}`", char::from(mark)),
            Token::End => "the end of the text".to_owned(),
        };
        self.error(format!("expected {wanted}, found {found}"))
    }

    pub(super) fn error(&self, reason: impl Into<String>) -> PtxError {
        PtxError::new(self.line(), reason)
    }
}

pub(super) fn declared_space(word: &str) -> Option<DeclaredSpace> {
    Some(match word {
        ".global" => DeclaredSpace::Global,
        ".const" => DeclaredSpace::Constant,
        ".shared" => DeclaredSpace::Shared,
        ".local" => DeclaredSpace::Local,
        ".param" => DeclaredSpace::Parameter,
        _ => return None,
    })
}
