//! Lists as clients see them: in a fixed order, page by page.

use std::borrow::Cow;

use rmcp::model::{PaginatedRequestParams, Prompt, PromptArgument, Tool, ToolAnnotations};

use crate::catalogue::Catalogue;
use crate::served::{Action, ServedSkill};

/// Entries of one page.
pub(super) const PAGE: usize = 200;

/// A page of a list and the cursor of the next. The cursor is the name of the last entry that was given, so that nothing
/// is given twice or passed over when the list changes in between.
pub(super) fn paged<T>(
    items: Vec<T>,
    request: Option<&PaginatedRequestParams>,
    name: impl Fn(&T) -> &str,
) -> (Vec<T>, Option<String>) {
    page_after(items, request.and_then(|request| request.cursor.as_deref()), name)
}

/// The entries after a cursor, at most [`PAGE`]. The list is sorted by `name`.
pub(super) fn page_after<T>(
    mut items: Vec<T>,
    cursor: Option<&str>,
    name: impl Fn(&T) -> &str,
) -> (Vec<T>, Option<String>) {
    items.sort_by(|a, b| name(a).cmp(name(b)));
    if let Some(cursor) = cursor {
        items.retain(|item| name(item) > cursor);
    }
    let more = items.len() > PAGE;
    items.truncate(PAGE);
    let next = items.last().filter(|_| more).map(|item| name(item).to_owned());
    (items, next)
}

/// The tools of skills.
pub(super) fn tools(catalogue: &Catalogue) -> Vec<Tool> {
    catalogue.tools().filter_map(|skill| tool(skill)).collect()
}

fn tool(skill: &ServedSkill) -> Option<Tool> {
    let tool = skill.tool.as_ref()?;
    let schema = std::sync::Arc::clone(&tool.schema);
    let description = skill.metadata.tool_description.as_deref().unwrap_or(&skill.description).to_owned();
    let mut served = Tool::new(Cow::Owned(tool.name.clone()), Cow::Owned(description), schema);
    served.title = Some(skill.metadata.title.clone().unwrap_or_else(|| skill.name.clone()));
    // Only of texts we know that nothing is changed; of the others the client has to think the worst.
    if matches!(tool.action, Action::Prompt) {
        let hints = ToolAnnotations::from_raw(None, Some(true), Some(false), Some(true), Some(false));
        served.annotations = Some(hints);
    }
    Some(served)
}

/// Prompt skills as prompts.
pub(super) fn prompts(catalogue: &Catalogue) -> Vec<Prompt> {
    let query = || {
        PromptArgument::new("query")
            .with_description("What it is needed for; it is put before the text.")
            .with_required(false)
    };
    let prompts = catalogue.skills().iter().filter(|skill| skill.is_prompt).map(|skill| {
        let prompt = Prompt::new(skill.name(), Some(skill.description()), Some(vec![query()]));
        match &skill.metadata.title {
            Some(title) => prompt.with_title(title.as_str()),
            None => prompt,
        }
    });
    prompts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_of_a_list_are_the_list_also_when_it_changes_in_between() {
        let names: Vec<String> = (0..450).map(|n| format!("{n:03}")).collect();
        let (first, cursor) = page_after(names.clone(), None, |name| name);
        assert_eq!((first.len(), cursor.as_deref()), (PAGE, Some("199")));
        // The last one that was given is gone, and one has come before it.
        let mut later = names.clone();
        later.retain(|name| name != "199");
        later.insert(0, "0005".to_owned());
        let (second, cursor) = page_after(later, cursor.as_deref(), |name| name);
        assert_eq!((second.first().unwrap().as_str(), cursor.as_deref()), ("200", Some("399")));
        let (third, cursor) = page_after(names, cursor.as_deref(), |name| name);
        assert_eq!((third.len(), cursor), (50, None));
        assert_eq!(page_after(vec!["a"], Some("zzz"), |name| name), (Vec::new(), None));
    }
}
