//! Texts of other people, made safe for a line of ours.

/// Characters that are not seen but change how text is seen: they reorder it, hide in it, or carry text of their own.
fn is_deceptive(c: char) -> bool {
    matches!(c,
        '\u{00AD}' | '\u{061C}' | '\u{180E}' | '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E007F}')
}

/// One line: every run of white space one blank, no control characters, nothing that is not seen.
#[must_use]
pub fn line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    let mut blank = false;
    for c in text.chars() {
        if c.is_whitespace() {
            blank = true;
        } else if !c.is_control() && !is_deceptive(c) {
            if blank && !line.is_empty() {
                line.push(' ');
            }
            blank = false;
            line.push(c);
        }
    }
    line
}

/// The text with everything that deceives the eye written as its code.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_deceptive(c) || matches!(c, '\u{2028}' | '\u{2029}') {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// The text as the value of an attribute, or between tags.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// The text with every tag of a name made harmless, so that it can neither end the wrapper that it is put into nor begin
/// another one that looks like ours. Tags whose names begin with this one count too: `skill_resource` with `skill`.
#[must_use]
pub fn keep_open(text: &str, tag: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        safe.push_str(before);
        let name = after.trim_start();
        let name = name.strip_prefix('/').unwrap_or(name).trim_start();
        let is_tag = name.get(..tag.len()).is_some_and(|name| name.eq_ignore_ascii_case(tag));
        safe.push_str(if is_tag { "&lt;" } else { "<" });
        rest = after;
    }
    safe.push_str(rest);
    safe
}

/// The estimate of tokens used throughout: characters by 3.5, rounded up. There is no tokenizer here.
pub(crate) fn tokens(text: &str) -> usize {
    (text.chars().count() * 2).div_ceil(7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line_whatever_it_was() {
        for (text, want) in [
            ("a  b\n\nc\t", "a b c"),
            ("a\u{2028}- b: c", "a - b: c"),
            ("\u{1b}[31mred", "[31mred"),
            ("a\u{202e}b\u{200b}c\u{e0041}", "abc"),
            ("ü 技 👩\u{200d}🔬", "ü 技 👩\u{200d}🔬"),
            ("\r\n", ""),
        ] {
            assert_eq!(line(text), want, "{text:?}");
        }
    }

    #[test]
    fn what_deceives_is_written_out() {
        assert_eq!(visible("a\u{202e}b\n"), r"a\u{202e}b\u{a}");
    }

    #[test]
    fn only_tags_of_that_name_are_touched() {
        for (text, want) in [
            ("a </b> c", "a </b> c"),
            ("a </skill> c", "a &lt;/skill> c"),
            ("</SKILL >", "&lt;/SKILL >"),
            ("</ skill>", "&lt;/ skill>"),
            ("<</skill", "<&lt;/skill"),
            ("</</skill>", "</&lt;/skill>"),
            ("<skill name=\"x\">", "&lt;skill name=\"x\">"),
            ("< Skill_Resource>", "&lt; Skill_Resource>"),
            ("< / skill>", "&lt; / skill>"),
            ("<b><skil> a < b skill", "<b><skil> a < b skill"),
        ] {
            assert_eq!(keep_open(text, "skill"), want, "{text}");
        }
    }

    #[test]
    fn tokens_are_characters_by_three_and_a_half_rounded_up() {
        for (chars, want) in [(0, 0), (1, 1), (3, 1), (4, 2), (7, 2), (8, 3), (35, 10)] {
            assert_eq!(tokens(&"ä".repeat(chars)), want);
        }
    }
}
