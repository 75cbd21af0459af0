//! What may stand before a value: an anchor and a tag. And aliases, which name an anchor.

use crate::diagnostic::Code;
use crate::node::{Content, Node, Type};
use crate::yaml::cursor::{Fault, Reader, is_flow_mark, is_space};

/// The anchor and tag before a value.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Properties<'a> {
    anchor: Option<&'a str>,
    tag: Option<Tag>,
}

/// The tags that mean something here: text, or anything else, which is read and dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tag {
    Text,
    Other,
}

impl Properties<'_> {
    pub(crate) const fn is_empty(&self) -> bool {
        self.anchor.is_none() && self.tag.is_none()
    }
}

impl<'a> Reader<'a> {
    /// Reads an anchor and a tag in either order, and the blanks behind each.
    pub(crate) fn properties(&mut self) -> Result<Properties<'a>, Fault> {
        let mut found = Properties::default();
        loop {
            match self.peek() {
                b'&' if found.anchor.is_none() => found.anchor = Some(self.anchor_name()?),
                b'!' if found.tag.is_none() => found.tag = Some(self.tag()?),
                b'&' | b'!' => {
                    return Err(self.fault(Code::BadProperty, "a value can have one anchor and one tag"));
                }
                _ => return Ok(found),
            }
            self.skip_blanks();
        }
    }

    /// Gives the value what its properties say, and remembers it under its anchor.
    pub(crate) fn with_properties(
        &mut self,
        found: Properties<'a>,
        mut node: Node<'a>,
    ) -> Result<Node<'a>, Fault> {
        if found.tag == Some(Tag::Text)
            && let Content::Scalar(_, kind) = node.content_mut()
        {
            *kind = Type::Text;
        }
        if let Some(name) = found.anchor {
            self.count_anchor(&node)?;
            self.anchors.insert(name, node.clone());
        }
        Ok(node)
    }

    /// Reads `*name` and writes out what it names.
    pub(crate) fn alias(&mut self, depth: usize) -> Result<Node<'a>, Fault> {
        let start = self.here();
        let name = self.anchor_name()?;
        let Some(node) = self.anchors.get(name) else {
            let message =
                format!("the alias *{name} names no anchor before it; put the value in quotes if it is text");
            return Err(self.fault_at(Code::UnknownAlias, start.offset as usize, message));
        };
        let mut copy = node.clone();
        self.count_alias(&copy, depth)?;
        let end = self.pos as u32;
        let (at, until) = copy.place_mut();
        (*at, *until) = (start, end);
        Ok(copy)
    }

    fn anchor_name(&mut self) -> Result<&'a str, Fault> {
        let start = self.pos + 1;
        let mut end = start;
        while !is_space(self.at(end)) && !is_flow_mark(self.at(end)) {
            end += 1;
        }
        if end == start {
            return Err(
                self.fault(Code::BadProperty, "an anchor or alias needs a name; put the value in quotes")
            );
        }
        self.pos = end;
        Ok(self.slice(start, end))
    }

    fn tag(&mut self) -> Result<Tag, Fault> {
        let start = self.pos;
        let verbatim = self.at(start + 1) == b'<';
        let mut end = start + 1;
        while !is_space(self.at(end)) && (verbatim || !is_flow_mark(self.at(end))) {
            end += 1;
            if verbatim && self.at(end - 1) == b'>' {
                break;
            }
        }
        let tag = self.slice(start, end);
        let kind = match tag {
            "!" | "!!str" | "!<tag:yaml.org,2002:str>" | "!<!>" => Tag::Text,
            _ => Tag::Other,
        };
        if !self.is_right_tag(tag, verbatim, end) {
            let message = "a word with an exclamation mark before it is a tag, and this one is malformed or unknown; \
                           put the value in quotes";
            return Err(self.fault(Code::BadProperty, message));
        }
        self.pos = end;
        Ok(kind)
    }

    /// `!`, `!word`, `!!word`, `!<uri>`; `!handle!word` only where a directive could have declared the handle.
    fn is_right_tag(&self, tag: &str, verbatim: bool, end: usize) -> bool {
        let is_ended = is_space(self.at(end)) || matches!(self.at(end), b',' | b']' | b'}');
        let uri = tag.strip_prefix("!<").and_then(|rest| rest.strip_suffix('>'));
        let named = if verbatim { uri.filter(|uri| !uri.is_empty()) } else { tag.get(1..) };
        let is_named = named
            .is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || is_tag_mark(byte)));
        if verbatim || !is_named || !is_ended {
            return is_named && is_ended;
        }
        let word = tag.strip_prefix("!!").or_else(|| tag.strip_prefix('!')).unwrap_or(tag);
        match word.split_once('!') {
            Some((_, rest)) => self.directives && !rest.is_empty(),
            None => tag != "!!",
        }
    }
}

/// What may stand in a tag beside letters and digits (YAML 1.2, production 39).
const fn is_tag_mark(byte: u8) -> bool {
    matches!(
        byte,
        b'%' | b'#'
            | b';'
            | b'/'
            | b'?'
            | b':'
            | b'@'
            | b'&'
            | b'='
            | b'+'
            | b'$'
            | b','
            | b'_'
            | b'.'
            | b'!'
            | b'~'
            | b'*'
            | b'\''
            | b'('
            | b')'
            | b'['
            | b']'
            | b'-'
    )
}
