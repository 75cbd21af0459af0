//! Prompt mode: a skill's text, with the question that it is read for.

use std::borrow::Cow;

/// The text of a skill in prompt mode: its body without the blanks before it; behind a query, if there is one.
///
/// ```
/// use haversack_skill_runtime::prompt::prompt_text;
///
/// assert_eq!(prompt_text("a/b", "\n\n  Do it.\n", None), "Do it.\n");
/// assert_eq!(prompt_text("a/b", "Do it.\n", Some(" how? ")), "## Query\nhow?\n\n## SKILL: a/b\n\nDo it.\n");
/// ```
pub fn prompt_text<'b>(id: &str, body: &'b str, query: Option<&str>) -> Cow<'b, str> {
    let body = body.trim_start();
    match query.map(str::trim).filter(|query| !query.is_empty()) {
        Some(query) => Cow::Owned(format!("## Query\n{query}\n\n## SKILL: {id}\n\n{body}")),
        None => Cow::Borrowed(body),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_stands_before_the_body_and_a_blank_one_is_none() {
        for (body, query, text) in [
            ("\n\n\n  P body\n", None, "P body\n"),
            ("\n\n\n  P body\n", Some("   "), "P body\n"),
            ("P body\n", Some("  hi?  "), "## Query\nhi?\n\n## SKILL: t/p\n\nP body\n"),
            ("", Some("hi?"), "## Query\nhi?\n\n## SKILL: t/p\n\n"),
        ] {
            assert_eq!(prompt_text("t/p", body, query), text, "{query:?}");
        }
    }
}
