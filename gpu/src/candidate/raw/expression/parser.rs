//! The grammar of expressions:
//!
//! ```text
//! choice   = binary [ "?" choice ":" choice ]
//! binary   = unary { operator unary }          with C's operators on integers and its precedences
//! unary    = { "-" | "+" | "!" | "~" | cast } atom
//! cast     = "(" type ")"
//! atom     = number | size | "(" choice ")" | "sizeof" "(" type ")" | type "(" choice ")"
//!          | "ceil" "(" choice ")" | "min" "(" choice "," choice ")" | "max" …
//! ```

use super::super::parameter::{Element, is_type};
use super::super::rule_error::RuleError;
use super::super::words::is_name;
use super::{Binary, Expression, Size, Unary};

/// Operators and pairs of parentheses, at most.
const MOST_PARTS: usize = 32;

pub(super) fn parse(text: &str) -> Result<Expression, RuleError> {
    let mut parser = Parser { text, rest: text, parts: 0 };
    let whole = parser.choice()?;
    if parser.rest.trim_start().is_empty() { Ok(whole) } else { Err(parser.unexpected()) }
}

struct Parser<'t> {
    text: &'t str,
    rest: &'t str,
    parts: usize,
}

impl<'t> Parser<'t> {
    fn choice(&mut self) -> Result<Expression, RuleError> {
        let condition = self.binary(0)?;
        if !self.take("?") {
            return Ok(condition);
        }
        self.count()?;
        let then = self.choice()?;
        self.expect(":")?;
        Ok(Expression::Choice(Box::new([condition, then, self.choice()?])))
    }

    /// Operators from a precedence on.
    fn binary(&mut self, precedence: usize) -> Result<Expression, RuleError> {
        let Some(operators) = Binary::OPERATORS.get(precedence) else { return self.unary() };
        let mut left = self.binary(precedence + 1)?;
        while let Some(operator) = self.operator(operators) {
            self.count()?;
            let right = self.binary(precedence + 1)?;
            left = Expression::Binary(operator, Box::new([left, right]));
        }
        Ok(left)
    }

    fn operator(&mut self, operators: &[(&str, Binary)]) -> Option<Binary> {
        self.rest = self.rest.trim_start();
        let is_here = |(symbol, _): &&(&str, Binary)| self.rest.starts_with(symbol);
        let &(symbol, operator) = operators.iter().find(is_here)?;
        let rest = self.rest.get(symbol.len()..)?;
        // `<` is no beginning of `<<`.
        let is_longer = matches!(symbol, "<" | ">") && rest.starts_with(symbol);
        if is_longer {
            return None;
        }
        self.rest = rest;
        Some(operator)
    }

    fn unary(&mut self) -> Result<Expression, RuleError> {
        if self.take("+") || self.take_cast() {
            self.count()?;
            return self.unary();
        }
        for (symbol, unary) in Unary::ALL {
            if self.take(symbol.encode_utf8(&mut [0; 4])) {
                self.count()?;
                return Ok(Expression::Unary(unary, Box::new(self.unary()?)));
            }
        }
        self.atom()
    }

    fn atom(&mut self) -> Result<Expression, RuleError> {
        if self.take("(") {
            return self.closed();
        }
        self.take("std::");
        let before = self.rest;
        let word = self.word();
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            self.rest = before;
            return self.number();
        }
        if let Some(size) = Size::ALL.into_iter().find(|size| size.name() == word) {
            return Ok(Expression::Size(size));
        }
        match word {
            "ceil" | "ceilf" => {
                self.expect("(")?;
                // All else is whole as it is.
                Ok(match self.closed()? {
                    Expression::Binary(Binary::Quotient, pair) => {
                        Expression::Binary(Binary::Ceiling, pair)
                    }
                    whole => whole,
                })
            }
            "min" | "max" => {
                let binary = if word == "min" { Binary::Minimum } else { Binary::Maximum };
                // As in `std::min<int>(a, b)`.
                if self.take("<") {
                    self.type_words().ok_or_else(|| self.unexpected())?;
                    self.expect(">")?;
                }
                self.expect("(")?;
                self.count()?;
                let first = self.choice()?;
                self.expect(",")?;
                Ok(Expression::Binary(binary, Box::new([first, self.closed()?])))
            }
            "sizeof" => {
                self.expect("(")?;
                let words = self.type_words().unwrap_or_default();
                let bytes = Element::of_words(&words).map(Element::bytes);
                let bytes = bytes.ok_or_else(|| self.unexpected())?;
                self.expect(")")?;
                Ok(Expression::Number(bytes as u64))
            }
            "static_cast" => {
                self.expect("<")?;
                self.type_words().ok_or_else(|| self.unexpected())?;
                self.expect(">")?;
                self.expect("(")?;
                self.closed()
            }
            word if is_type(word) && self.take("(") => self.closed(),
            _ => {
                self.rest = before;
                Err(self.unexpected())
            }
        }
    }

    /// `256`, `256u`, `0x100`, or `256.0f`, whose fraction must be 0.
    fn number(&mut self) -> Result<Expression, RuleError> {
        let before = self.rest;
        let word = self.word();
        let digits = word.strip_prefix("0x").or(word.strip_prefix("0X"));
        let (digits, radix) = digits.map_or((word, 10), |digits| (digits, 16));
        // Digits of a fraction, as far as there is one.
        if radix == 10 && word.bytes().all(|byte| byte.is_ascii_digit()) && self.take(".") {
            let fraction = self.word().trim_end_matches(['f', 'F']);
            if !fraction.bytes().all(|byte| byte == b'0') {
                self.rest = before;
                return Err(self.unexpected());
            }
        }
        let digits = digits.trim_end_matches(['u', 'U', 'l', 'L']);
        u64::from_str_radix(digits, radix).map(Expression::Number).map_err(|_| {
            self.rest = before;
            self.unexpected()
        })
    }

    /// Takes `(type)`, as before what it is applied to.
    fn take_cast(&mut self) -> bool {
        let before = self.rest;
        if self.take("(") && self.type_words().is_some() && self.take(")") {
            return true;
        }
        self.rest = before;
        false
    }

    /// The words of a type, which is one of numbers.
    fn type_words(&mut self) -> Option<Vec<&'t str>> {
        let mut words = Vec::new();
        loop {
            let before = self.rest;
            let word = self.word();
            if !is_type(word) {
                self.rest = before;
                break;
            }
            words.push(word);
        }
        Some(words).filter(|words| !words.is_empty())
    }

    /// What is left of a word of letters, digits and underscores, which may be empty.
    fn word(&mut self) -> &'t str {
        self.rest = self.rest.trim_start();
        let end = self.rest.find(|c| !is_name(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    /// The rest of a parenthesised expression.
    fn closed(&mut self) -> Result<Expression, RuleError> {
        self.count()?;
        let inside = self.choice()?;
        self.expect(")")?;
        Ok(inside)
    }

    /// Counts one more part: that bounds the depth of the tree, and with it that of the recursions
    /// over it.
    fn count(&mut self) -> Result<(), RuleError> {
        self.parts += 1;
        if self.parts <= MOST_PARTS { Ok(()) } else { Err(self.unexpected()) }
    }

    fn expect(&mut self, symbol: &str) -> Result<(), RuleError> {
        if self.take(symbol) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn take(&mut self, symbol: &str) -> bool {
        self.rest = self.rest.trim_start();
        let rest = self.rest.strip_prefix(symbol);
        self.rest = rest.unwrap_or(self.rest).trim_start();
        rest.is_some()
    }

    fn unexpected(&self) -> RuleError {
        RuleError::expression(self.text, self.rest)
    }
}
