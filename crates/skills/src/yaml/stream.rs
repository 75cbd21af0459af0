//! The document: its directives, marks and end.

use crate::diagnostic::Code;
use crate::node::Node;
use crate::yaml::block::{BAD_INDENTATION, Parent};
use crate::yaml::cursor::{Fault, Reader};

impl<'a> Reader<'a> {
    /// Reads the one document; `None` where there is none.
    pub(crate) fn document(&mut self) -> Result<Option<Node<'a>>, Fault> {
        self.next_in_block()?;
        while self.indent() == 0 && self.peek() == b'%' {
            self.directives = true;
            self.skip_line();
            self.next_in_block()?;
        }
        let root = if self.at_document_mark() && self.peek() == b'-' {
            self.pos += 3;
            Some(self.value(Parent::Document, false, 0)?)
        } else if self.directives {
            return Err(
                self.fault(Code::SecondDocument, "a % directive needs a --- line behind it; take it out")
            );
        } else if self.is_at_end() {
            return Ok(None);
        } else if self.at_document_mark() {
            return Err(self.fault(Code::SecondDocument, SECOND_DOCUMENT));
        } else {
            Some(self.block_node(Parent::Document, true, 0)?)
        };
        self.document_end()?;
        Ok(root)
    }

    fn document_end(&mut self) -> Result<(), Fault> {
        self.next_in_block()?;
        while self.at_document_mark() && self.peek() == b'.' {
            self.pos += 3;
            self.next_in_block()?;
            if !self.is_at_end() && !self.at_document_mark() {
                return Err(self.fault(Code::SecondDocument, SECOND_DOCUMENT));
            }
        }
        if self.is_at_end() {
            Ok(())
        } else if self.at_document_mark() {
            Err(self.fault(Code::SecondDocument, SECOND_DOCUMENT))
        } else {
            Err(self.fault(Code::BadIndentation, BAD_INDENTATION))
        }
    }
}

const SECOND_DOCUMENT: &str = "a front matter is one document; take out what follows its end";
