//! Collections by indentation, and the document around them.

use std::borrow::Cow;

use crate::diagnostic::Code;
use crate::node::{Content, Entry, Node, Position, Type};
use crate::yaml::cursor::{Fault, KEY_TOO_LONG, MAX_KEY_CHARS, Reader};
use crate::yaml::plain::{Surroundings, UNQUOTED_COLON};
use crate::yaml::scalar::core_type;

/// Fields that room is made for at once: most mappings have fewer.
const USUAL_FIELDS: usize = 8;

/// What a value in a block belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parent {
    Document,
    /// A key in this column.
    Key(usize),
    /// A dash; the collection that owns it stands in this column.
    Dash(usize),
}

impl Parent {
    /// The least indentation of what belongs to it.
    const fn inside(self) -> usize {
        match self {
            Self::Document => 0,
            Self::Key(column) | Self::Dash(column) => column + 1,
        }
    }
}

/// A key of a block mapping.
struct Key<'a> {
    text: Cow<'a, str>,
    start: Position,
    /// Whether the reader stands on a colon that belongs to it.
    has_colon: bool,
    /// Whether it is a `? key`, or empty: then a collection may begin behind its colon.
    is_explicit: bool,
}

impl<'a> Key<'a> {
    const fn implicit(text: Cow<'a, str>, start: Position) -> Self {
        Self { text, start, has_colon: true, is_explicit: false }
    }

    const fn empty(start: Position) -> Self {
        Self { text: Cow::Borrowed(""), start, has_colon: true, is_explicit: true }
    }
}

impl<'a> Reader<'a> {
    /// Reads the value behind a colon, a dash or a `---`. `may_nest`: a block collection may begin on the same line.
    pub(crate) fn value(&mut self, parent: Parent, may_nest: bool, depth: usize) -> Result<Node<'a>, Fault> {
        let empty_at = self.here();
        let tab = self.skip_blanks();
        if self.at_line_rest() {
            return self.value_below(parent, empty_at, depth);
        }
        self.block_node(parent, may_nest && !tab, depth)
    }

    /// Reads a value that begins on a later line, or finds that there is none.
    fn value_below(&mut self, parent: Parent, empty_at: Position, depth: usize) -> Result<Node<'a>, Fault> {
        let behind = self.pos;
        self.next_in_block()?;
        let column = self.indent();
        if !self.is_at_end() && !self.at_document_mark() {
            if column >= parent.inside() {
                return self.block_node(parent, true, depth);
            }
            if parent == Parent::Key(column) && self.at_indicator(b'-') {
                return self.block_list(column, true, depth);
            }
            if parent == Parent::Key(column) && matches!(self.peek(), b'|' | b'>') {
                return self.block_node(parent, false, depth);
            }
        }
        self.count(depth)?;
        Ok(Node::new(Content::Scalar(Cow::Borrowed(""), Type::Null), empty_at, behind.min(self.pos) as u32))
    }

    /// Reads the value here. `may_nest`: a block collection may begin on this line.
    pub(crate) fn block_node(
        &mut self,
        parent: Parent,
        may_nest: bool,
        depth: usize,
    ) -> Result<Node<'a>, Fault> {
        let start = self.here();
        let column = self.indent();
        let properties = self.properties()?;
        let is_bare = properties.is_empty();
        if !is_bare && self.at_line_rest() {
            let at = self.here();
            let node = self.value_below(parent, at, depth)?;
            return self.with_properties(properties, node);
        }
        let can_start = may_nest && is_bare;
        match self.peek() {
            b'-' if self.at_indicator(b'-') => {
                self.may_start(can_start, "a list cannot begin on this line")?;
                self.block_list(column, false, depth)
            }
            b':' if may_nest && !is_bare && self.at_indicator(b':') => {
                self.block_map(column, start, Some(Key::empty(start)), depth)
            }
            b'?' | b':' if self.at_indicator(self.peek()) => {
                self.may_start(can_start, "a mapping cannot begin on this line")?;
                self.block_map(column, start, None, depth)
            }
            b'|' | b'>' => {
                self.count(depth)?;
                let text = self.block_scalar(parent.inside().max(1))?;
                let node = self.node(Content::Scalar(text, Type::Text), start);
                self.with_properties(properties, node)
            }
            b'*' if is_bare => {
                let node = self.alias(depth)?;
                self.skip_blanks();
                if self.at_indicator(b':') {
                    return Err(
                        self.fault(Code::KeyNotText, "an alias cannot be a key; write the key itself")
                    );
                }
                self.value_end()?;
                Ok(node)
            }
            _ => {
                let node = self.inline_node(parent, depth)?;
                if !self.at_key_colon(Surroundings::Block(0)) {
                    self.value_end()?;
                    return self.with_properties(properties, node);
                }
                let key = self.key_of(node, may_nest)?;
                self.uncount_key();
                self.block_map(column, start, Some(key), depth)
            }
        }
    }

    fn may_start(&mut self, may: bool, message: &str) -> Result<(), Fault> {
        if may {
            return Ok(());
        }
        let message = format!("{message}; begin it on the next line, or put the value in quotes");
        Err(self.fault(Code::InlineBlock, message))
    }

    /// A value that may turn out to be a key: quoted, plain or between brackets.
    fn inline_node(&mut self, parent: Parent, depth: usize) -> Result<Node<'a>, Fault> {
        let start = self.here();
        match self.peek() {
            b'"' | b'\'' => {
                self.count(depth)?;
                let text = self.quoted()?;
                Ok(self.node(Content::Scalar(text, Type::Text), start))
            }
            b'[' | b'{' => self.flow_collection(depth),
            _ => {
                self.count(depth)?;
                self.check_plain_start()?;
                let text = self.plain(Surroundings::Block(parent.inside()))?;
                let kind = core_type(&text);
                Ok(self.node(Content::Scalar(text, kind), start))
            }
        }
    }

    fn check_plain_start(&mut self) -> Result<(), Fault> {
        match self.peek() {
            b'#' | b',' | b']' | b'}' | b'%' | b'@' | b'`' | b'*' | b'&' | b'!' | b'|' | b'>' => Err(self
                .fault(
                    Code::ReservedCharacter,
                    "this character cannot begin a value; put the value in quotes",
                )),
            _ => Ok(()),
        }
    }

    /// Makes a key of a node that a colon follows.
    fn key_of(&mut self, node: Node<'a>, may_nest: bool) -> Result<Key<'a>, Fault> {
        self.skip_blanks();
        let start = node.position();
        if !may_nest {
            return Err(self.fault(Code::UnquotedColon, UNQUOTED_COLON));
        }
        let is_long = self.pos - start.offset as usize > MAX_KEY_CHARS
            && self.slice(start.offset as usize, self.pos).chars().nth(MAX_KEY_CHARS).is_some();
        if start.line != self.line() || is_long {
            return Err(self.fault(Code::KeyTooLong, KEY_TOO_LONG));
        }
        match node.into_content() {
            Content::Scalar(text, _) => Ok(Key::implicit(text, start)),
            _ => Err(self.fault_at(
                Code::KeyNotText,
                start.offset as usize,
                "a list or a mapping cannot be a key; put it in quotes",
            )),
        }
    }

    /// After a value on its line: only blanks and a comment may follow.
    fn value_end(&mut self) -> Result<(), Fault> {
        let end = self.pos;
        self.skip_blanks();
        if self.at_line_rest() {
            self.pos = end;
            return Ok(());
        }
        Err(self.fault(
            Code::TextAfterValue,
            "text behind a value that is complete; put the whole value in quotes",
        ))
    }

    /// Reads a list whose dashes stand in `column`; `in_key` where its key stands there too.
    fn block_list(&mut self, column: usize, in_key: bool, depth: usize) -> Result<Node<'a>, Fault> {
        self.count(depth)?;
        let start = self.here();
        let mut items = Vec::new();
        let mut end = self.pos;
        loop {
            self.pos += 1;
            items.push(self.value(Parent::Dash(column), true, depth + 1)?);
            end = end.max(items.last().map_or(end, |item| item.span().end));
            self.next_in_block()?;
            if self.is_at_end() || self.indent() < column || self.at_document_mark() {
                break;
            }
            if self.indent() > column {
                return Err(self.fault(Code::BadIndentation, BAD_INDENTATION));
            }
            if !self.at_indicator(b'-') {
                if in_key {
                    break;
                }
                return Err(
                    self.fault(Code::BadIndentation, "a dash is missing here, or blanks before the line")
                );
            }
        }
        Ok(Node::new(Content::List(items), start, end as u32))
    }

    /// Reads a mapping whose keys stand in `column`; the first one may have been read.
    fn block_map(
        &mut self,
        column: usize,
        start: Position,
        mut first: Option<Key<'a>>,
        depth: usize,
    ) -> Result<Node<'a>, Fault> {
        self.count(depth)?;
        let mut entries = Vec::with_capacity(USUAL_FIELDS);
        let mut end = self.pos;
        loop {
            let key = match first.take() {
                Some(key) => key,
                None => self.block_key(column, depth)?,
            };
            let value = self.entry_value(column, &key, depth)?;
            end = end.max(value.span().end);
            entries.push(Entry { key: key.text, key_start: key.start, value });
            self.next_in_block()?;
            if self.is_at_end() || self.indent() < column || self.at_document_mark() {
                break;
            }
            if self.indent() > column {
                return Err(self.fault(Code::BadIndentation, BAD_INDENTATION));
            }
        }
        let fields = self.fields(entries);
        Ok(Node::new(Content::Map(fields), start, end as u32))
    }

    /// Reads the colon and what follows it; after a `? key` both may be missing.
    fn entry_value(&mut self, column: usize, key: &Key<'a>, depth: usize) -> Result<Node<'a>, Fault> {
        if !key.has_colon {
            self.count(depth + 1)?;
            let at = self.here();
            return Ok(self.node(Content::Scalar(Cow::Borrowed(""), Type::Null), at));
        }
        self.pos += 1;
        self.value(Parent::Key(column), key.is_explicit, depth + 1)
    }

    /// Reads one key and steps to its colon.
    fn block_key(&mut self, column: usize, depth: usize) -> Result<Key<'a>, Fault> {
        let start = self.here();
        match self.peek() {
            b':' if self.at_indicator(b':') => Ok(Key::empty(start)),
            b'?' if self.at_indicator(b'?') => self.explicit_key(column, depth),
            b'-' if self.at_indicator(b'-') => {
                Err(self.fault(Code::BadIndentation, "a list item cannot stand among keys; indent it"))
            }
            b'*' => Err(self.fault(Code::KeyNotText, "an alias cannot be a key; write the key itself")),
            _ => {
                let properties = self.properties()?;
                if !properties.is_empty() && self.at_indicator(b':') {
                    return Ok(Key::empty(start));
                }
                let node = self.key_node(depth)?;
                if !self.at_key_colon(Surroundings::Block(0)) {
                    return Err(self.fault(Code::MissingColon, MISSING_COLON));
                }
                self.key_of(node, true)
            }
        }
    }

    /// A key is one line of plain text, or quoted.
    fn key_node(&mut self, depth: usize) -> Result<Node<'a>, Fault> {
        let start = self.here();
        match self.peek() {
            b'"' | b'\'' => {
                let text = self.quoted()?;
                Ok(self.node(Content::Scalar(text, Type::Text), start))
            }
            b'[' | b'{' => self.flow_collection(depth + 1),
            _ => {
                self.check_plain_start()?;
                let text = self.plain_key();
                Ok(self.node(Content::Scalar(Cow::Borrowed(text), Type::Text), start))
            }
        }
    }

    /// `? key`, any node whose value is a scalar.
    fn explicit_key(&mut self, column: usize, depth: usize) -> Result<Key<'a>, Fault> {
        self.pos += 1;
        let node = self.value(Parent::Dash(column), true, depth + 1)?;
        self.next_in_block()?;
        if self.indent() > column && !self.is_at_end() {
            return Err(self.fault(Code::BadIndentation, BAD_INDENTATION));
        }
        let has_colon = self.indent() == column && self.at_indicator(b':');
        let start = node.position();
        match node.into_content() {
            Content::Scalar(text, _) => Ok(Key { text, start, has_colon, is_explicit: true }),
            _ => Err(Fault {
                code: Code::KeyNotText,
                at: start,
                message: "a list or a mapping cannot be a key; put it in quotes".to_owned(),
            }),
        }
    }
}

pub(crate) const BAD_INDENTATION: &str = "this line fits no column above it; indent it like its neighbours";
const MISSING_COLON: &str = "a key needs a colon and a blank behind it";
