//! Reads the bodies of functions.

use super::PtxError;
use super::lexer::Token;
use super::parser::{FilePosition, Parser, declared_space};
use super::syntax::{Instruction, Operand, RegisterName, Statement, StatementKind, Type};

/// How deep `{ }` may nest.
const MOST_SCOPES: usize = 64;

impl<'t> Parser<'t> {
    /// `{ ... }`
    pub(super) fn body(&mut self) -> Result<Vec<Statement>, PtxError> {
        self.expect(b'{')?;
        let mut statements = Vec::new();
        let mut depth = 0;
        loop {
            let line = self.line();
            let kind = match self.peek() {
                Token::Mark(b'{') => {
                    self.skip();
                    depth += 1;
                    if depth > MOST_SCOPES {
                        return Err(self.error("`{` nests too deeply"));
                    }
                    StatementKind::Open
                }
                Token::Mark(b'}') => {
                    self.skip();
                    if depth == 0 {
                        return Ok(statements);
                    }
                    depth -= 1;
                    StatementKind::Close
                }
                Token::Mark(b';') => {
                    self.skip();
                    continue;
                }
                Token::Mark(b'@') => {
                    self.skip();
                    let expected = !self.eat(b'!');
                    let guard = Some((self.word()?.to_owned(), expected));
                    StatementKind::Instruction(self.instruction(guard)?)
                }
                Token::Word(".loc") => StatementKind::Location { places: self.location()? },
                Token::Word(".reg") => self.registers()?,
                Token::Word(".pragma") => {
                    self.skip_past(b';')?;
                    continue;
                }
                Token::Word(".section") => {
                    self.section()?;
                    continue;
                }
                Token::Word(word) if word.starts_with('.') => {
                    let space = declared_space(word)
                        .ok_or_else(|| self.error(format!("unknown directive `{word}`")))?;
                    self.skip();
                    for declaration in self.declarations(space, false)? {
                        let kind = StatementKind::Variable(declaration);
                        statements.push(Statement { line, kind });
                    }
                    continue;
                }
                Token::Word(name) if self.peek_at(1) == Token::Mark(b':') => {
                    self.next += 2;
                    match self.label(name)? {
                        Some(kind) => kind,
                        None => continue,
                    }
                }
                Token::Word(_) => StatementKind::Instruction(self.instruction(None)?),
                _ => return Err(self.unexpected("a statement")),
            };
            statements.push(Statement { line, kind });
        }
    }

    /// What follows `name:`.
    fn label(&mut self, name: &str) -> Result<Option<StatementKind>, PtxError> {
        let name = name.to_owned();
        match self.peek() {
            Token::Word(".branchtargets") => {
                self.skip();
                let mut labels = vec![self.word()?.to_owned()];
                while self.eat(b',') {
                    labels.push(self.word()?.to_owned());
                }
                self.expect(b';')?;
                Ok(Some(StatementKind::BranchTargets { name, labels }))
            }
            Token::Word(".callprototype" | ".calltargets") => {
                self.skip_past(b';')?;
                Ok(None)
            }
            _ => Ok(Some(StatementKind::Label(name))),
        }
    }

    /// `.loc file line column[, function_name label[+offset], inlined_at file line column]`: file
    /// and line, then those where the function is called that they are in, and so on.
    pub(super) fn location(&mut self) -> Result<Vec<(u32, u32)>, PtxError> {
        self.skip();
        let position = self.file_position()?;
        while self.eat(b',') {
            match self.word()? {
                "function_name" => {
                    self.word()?;
                    self.offset(0)?;
                }
                "inlined_at" => {
                    let at = self.file_position()?;
                    self.inlined_at.insert(position, at);
                }
                word => return Err(self.error(format!("unknown `{word}` of `.loc`"))),
            }
        }
        let mut positions = vec![position];
        while let Some(&outer) = positions.last().and_then(|position| self.inlined_at.get(position))
        {
            // No function is inlined in itself, whatever the text says.
            if positions.contains(&outer) {
                break;
            }
            positions.push(outer);
        }
        Ok(positions.into_iter().map(|(file, line, _)| (file, line)).collect())
    }

    /// `file line column`.
    fn file_position(&mut self) -> Result<FilePosition, PtxError> {
        Ok((self.small("a file number")?, self.small("a line")?, self.small("a column")?))
    }

    /// `.reg .b32 %a, %r<10>;`
    fn registers(&mut self) -> Result<StatementKind, PtxError> {
        self.skip();
        let word = self.word()?;
        let ty = word.strip_prefix('.').and_then(Type::parse);
        let ty =
            ty.ok_or_else(|| self.error(format!("registers of `{word}` are not supported")))?;
        let mut names = Vec::new();
        loop {
            let name = self.word()?.to_owned();
            let mut count = None;
            if self.eat(b'<') {
                count = Some(self.integer()?);
                self.expect(b'>')?;
            }
            names.push(RegisterName { name, count });
            if self.eat(b';') {
                return Ok(StatementKind::Registers { ty, names });
            }
            self.expect(b',')?;
        }
    }

    fn instruction(&mut self, guard: Option<(String, bool)>) -> Result<Instruction, PtxError> {
        let opcode = self.word()?.to_owned();
        let mut operands = Vec::new();
        while !self.eat(b';') {
            if !operands.is_empty() {
                self.expect(b',')?;
            }
            operands.push(self.operand()?);
        }
        Ok(Instruction { guard, opcode, operands })
    }

    fn operand(&mut self) -> Result<Operand, PtxError> {
        if self.eat(b'[') {
            return self.address();
        }
        if self.eat(b'{') {
            return Ok(Operand::Vector(self.simple_operands(b'}')?));
        }
        if self.eat(b'(') {
            return Ok(Operand::List(self.simple_operands(b')')?));
        }
        let first = self.simple_operand()?;
        if !self.eat(b'|') {
            return Ok(first);
        }
        Ok(Operand::Pair(Box::new([first, self.simple_operand()?])))
    }

    /// `a, b` up to what closes it.
    fn simple_operands(&mut self, close: u8) -> Result<Vec<Operand>, PtxError> {
        let mut operands = Vec::new();
        while !self.eat(close) {
            if !operands.is_empty() {
                self.expect(b',')?;
            }
            operands.push(self.simple_operand()?);
        }
        Ok(operands)
    }

    /// A name or a number.
    fn simple_operand(&mut self) -> Result<Operand, PtxError> {
        let negated = self.eat(b'!');
        let negative = !negated && self.eat(b'-');
        let operand = match self.peek() {
            Token::Word("_") if !negated && !negative => Operand::Ignored,
            Token::Word(name) if !negative && !name.starts_with('.') => {
                self.skip();
                let name = name.to_owned();
                let offset = self.offset(0)?;
                return Ok(Operand::Name { name, negated, offset });
            }
            Token::Integer(value) if negative => Operand::Integer(value.wrapping_neg()),
            Token::Integer(value) if !negated => Operand::Integer(value),
            Token::Single(bits) if !negated => Operand::Single(bits ^ (u32::from(negative) << 31)),
            Token::Double(bits) if !negated => Operand::Double(bits ^ (u64::from(negative) << 63)),
            _ => return Err(self.unexpected("an operand")),
        };
        self.skip();
        Ok(operand)
    }

    /// What follows `[`.
    fn address(&mut self) -> Result<Operand, PtxError> {
        let base = match self.peek() {
            Token::Word(name) => {
                self.skip();
                Some(name.to_owned())
            }
            _ => None,
        };
        let offset = match self.peek() {
            Token::Integer(value) if base.is_none() => {
                self.skip();
                self.offset(value.cast_signed())?
            }
            _ => self.offset(0)?,
        };
        if self.eat(b']') {
            return Ok(Operand::Address { base, offset });
        }
        if !self.is_mark(b',') {
            return Err(self.unexpected("`]`"));
        }
        while !self.eat(b']') {
            if matches!(self.peek(), Token::Mark(b';') | Token::End) {
                return Err(self.unexpected("`]`"));
            }
            self.skip();
        }
        Ok(Operand::Other)
    }
}
