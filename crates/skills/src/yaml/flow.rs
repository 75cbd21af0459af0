//! Collections between brackets.

use std::borrow::Cow;

use crate::diagnostic::Code;
use crate::node::{Content, Entry, Node, Position, Type};
use crate::yaml::cursor::{Fault, KEY_TOO_LONG, MAX_KEY_CHARS, Reader, is_flow_mark, is_space};
use crate::yaml::plain::Surroundings;
use crate::yaml::scalar::core_type;

/// A value between brackets, and whether a colon may follow it without a blank, as in JSON.
struct Item<'a> {
    node: Node<'a>,
    is_json_like: bool,
}

impl<'a> Reader<'a> {
    /// Reads a `[list]` or `{mapping}`; the reader stands on its opening bracket.
    pub(crate) fn flow_collection(&mut self, depth: usize) -> Result<Node<'a>, Fault> {
        self.count(depth)?;
        if self.peek() == b'[' { self.flow_list(depth) } else { self.flow_map(depth) }
    }

    fn flow_list(&mut self, depth: usize) -> Result<Node<'a>, Fault> {
        let start = self.here();
        self.pos += 1;
        let mut items = Vec::new();
        loop {
            self.next_in_flow(start)?;
            if self.peek() == b']' {
                break;
            }
            items.push(self.flow_list_item(depth + 1)?);
            self.next_in_flow(start)?;
            match self.peek() {
                b',' => self.pos += 1,
                b']' => break,
                _ => return Err(self.bad_flow("a comma or ] is missing here")),
            }
        }
        self.pos += 1;
        Ok(self.node(Content::List(items), start))
    }

    /// An item of a list: a value, or a single pair without braces.
    fn flow_list_item(&mut self, depth: usize) -> Result<Node<'a>, Fault> {
        let start = self.here();
        if self.at_indicator(b'?') {
            self.count(depth)?;
            self.pos += 1;
            let entry = self.flow_explicit_entry(depth)?;
            let fields = self.fields(vec![entry]);
            return Ok(self.node(Content::Map(fields), start));
        }
        let item = self.flow_item(depth)?;
        let end = self.pos;
        self.skip_blanks();
        if !self.at_flow_colon(item.is_json_like) {
            return Ok(item.node);
        }
        let is_long = self.slice(start.offset as usize, end).chars().nth(MAX_KEY_CHARS).is_some();
        if start.line != self.line() {
            return Err(self.bad_flow("a comma or ] is missing before this colon"));
        }
        if is_long {
            return Err(self.fault(Code::KeyTooLong, KEY_TOO_LONG));
        }
        self.count(depth)?;
        let entry = self.flow_entry(item.node, depth)?;
        let fields = self.fields(vec![entry]);
        Ok(self.node(Content::Map(fields), start))
    }

    fn flow_map(&mut self, depth: usize) -> Result<Node<'a>, Fault> {
        let start = self.here();
        self.pos += 1;
        let mut entries = Vec::new();
        loop {
            self.next_in_flow(start)?;
            match self.peek() {
                b'}' => break,
                b'?' if self.at_indicator(b'?') => {
                    self.pos += 1;
                    entries.push(self.flow_explicit_entry(depth)?);
                }
                _ => entries.push(self.flow_map_entry(depth)?),
            }
            self.next_in_flow(start)?;
            match self.peek() {
                b',' => self.pos += 1,
                b'}' => break,
                _ => return Err(self.bad_flow("a comma or } is missing here")),
            }
        }
        self.pos += 1;
        let fields = self.fields(entries);
        Ok(self.node(Content::Map(fields), start))
    }

    fn flow_map_entry(&mut self, depth: usize) -> Result<Entry<'a>, Fault> {
        let item = self.flow_item(depth + 1)?;
        let mark = self.mark();
        self.skip_lines();
        if self.at_flow_colon(item.is_json_like) {
            return self.flow_entry(item.node, depth);
        }
        self.back_to(mark);
        let empty = self.empty_here();
        self.entry(item.node, empty)
    }

    /// `? key : value`, behind the question mark.
    fn flow_explicit_entry(&mut self, depth: usize) -> Result<Entry<'a>, Fault> {
        self.skip_lines();
        let item = self.flow_item(depth + 1)?;
        self.skip_lines();
        if self.at_flow_colon(item.is_json_like) {
            return self.flow_entry(item.node, depth);
        }
        let empty = self.empty_here();
        self.entry(item.node, empty)
    }

    /// The value of `key`; the reader stands on the colon.
    fn flow_entry(&mut self, key: Node<'a>, depth: usize) -> Result<Entry<'a>, Fault> {
        self.pos += 1;
        let empty = self.empty_here();
        self.skip_lines();
        if matches!(self.peek(), b',' | b']' | b'}' | 0) {
            self.count(depth + 1)?;
            return self.entry(key, empty);
        }
        let item = self.flow_item(depth + 1)?;
        self.entry(key, item.node)
    }

    fn entry(&mut self, key: Node<'a>, value: Node<'a>) -> Result<Entry<'a>, Fault> {
        let key_start = key.position();
        self.uncount_key();
        match key.into_content() {
            Content::Scalar(key, _) => Ok(Entry { key, key_start, value }),
            _ => Err(Fault {
                code: Code::KeyNotText,
                at: key_start,
                message: "a list or a mapping cannot be a key; put it in quotes".to_owned(),
            }),
        }
    }

    fn at_flow_colon(&self, is_json_like: bool) -> bool {
        let next = self.at(self.pos + 1);
        self.peek() == b':' && (is_json_like || is_space(next) || is_flow_mark(next))
    }

    /// One value between brackets; nothing at all is an empty one where a colon follows.
    fn flow_item(&mut self, depth: usize) -> Result<Item<'a>, Fault> {
        if self.at_document_mark() {
            return Err(self.bad_flow("a document mark cannot stand between brackets"));
        }
        let start = self.here();
        let properties = self.properties()?;
        if !properties.is_empty() {
            self.skip_lines();
        }
        let mut is_json_like = true;
        let node = match self.peek() {
            b'[' | b'{' => self.flow_collection(depth)?,
            b'*' if properties.is_empty() => return self.flow_alias(depth),
            b'"' | b'\'' => {
                self.count(depth)?;
                let text = self.quoted()?;
                self.node(Content::Scalar(text, Type::Text), start)
            }
            byte => {
                is_json_like = false;
                self.count(depth)?;
                let is_end = matches!(byte, b',' | b']' | b'}') && !properties.is_empty();
                let text =
                    if is_end || self.at_flow_colon(false) { Cow::Borrowed("") } else { self.flow_plain()? };
                let kind = core_type(&text);
                self.node(Content::Scalar(text, kind), start)
            }
        };
        Ok(Item { node: self.with_properties(properties, node)?, is_json_like })
    }

    fn flow_alias(&mut self, depth: usize) -> Result<Item<'a>, Fault> {
        let node = self.alias(depth)?;
        self.skip_blanks();
        if self.at_flow_colon(false) {
            return Err(self.fault(Code::KeyNotText, "an alias cannot be a key; write the key itself"));
        }
        Ok(Item { node, is_json_like: false })
    }

    fn flow_plain(&mut self) -> Result<Cow<'a, str>, Fault> {
        let next = self.at(self.pos + 1);
        match self.peek() {
            b'-' if !is_space(next) => {}
            b'?' | b':' if !is_space(next) && !is_flow_mark(next) => {}
            b'-' | b'?' | b':' | b',' | b']' | b'}' | 0 => {
                return Err(self.bad_flow("a value is missing here"));
            }
            b'#' | b'|' | b'>' | b'%' | b'@' | b'`' | b'*' => {
                return Err(
                    self.fault(Code::ReservedCharacter, "this character cannot begin a value; use quotes")
                );
            }
            _ => {}
        }
        self.plain(Surroundings::Flow)
    }

    fn empty_here(&mut self) -> Node<'a> {
        let here = self.here();
        self.node(Content::Scalar(Cow::Borrowed(""), Type::Null), here)
    }

    /// Steps to the next thing between brackets.
    fn next_in_flow(&mut self, opening: Position) -> Result<(), Fault> {
        self.skip_lines();
        if self.is_at_end() {
            let message = "this bracket is never closed; close it, or put the value in quotes".to_owned();
            return Err(Fault { code: Code::UnclosedFlow, at: opening, message });
        }
        Ok(())
    }

    fn bad_flow(&mut self, message: &str) -> Fault {
        self.fault(Code::BadFlow, message)
    }
}
