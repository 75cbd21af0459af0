//! Names that are nearly right.

/// How many near names are told.
const MAX_NEAR: usize = 3;

/// How many names are listed when none is near.
const MAX_LISTED: usize = 20;

/// The part of a name that is compared and shown, in characters: names of tools have at most 64.
const MAX_NAME: usize = 64;

/// The known names that are closest to a wrong one, best first, at most three.
///
/// Case, hyphens, underscores and dots do not count, so that `readFile` finds `read_file`; beyond that a third of the
/// letters may differ, or one name may hold the other.
///
/// ```
/// use haversack_agent_core::arguments::near_names;
///
/// let known = ["read_file", "write_file", "mcp__files__read"];
/// assert_eq!(near_names("ReadFile", known), ["read_file"]);
/// assert_eq!(near_names("files.read", known), ["mcp__files__read"]);
/// assert!(near_names("quux", known).is_empty());
/// ```
pub fn near_names<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let wrong = letters(name);
    if wrong.is_empty() {
        return Vec::new();
    }
    let mut near: Vec<(usize, &str)> = known
        .into_iter()
        .filter_map(|candidate| {
            let right = letters(candidate);
            let distance = edit_distance(&wrong, &right);
            // A part of at least four letters is no accident.
            let (short, long) = if wrong.len() < right.len() { (&wrong, &right) } else { (&right, &wrong) };
            let holds = short.len() >= 4 && long.windows(short.len()).any(|part| part == short.as_slice());
            let allowed = (wrong.len().max(right.len()) / 3).max(1);
            (distance <= allowed || holds).then_some((distance, candidate))
        })
        .collect();
    // By name among equals, so that the order of registration does not show.
    near.sort_unstable();
    near.into_iter().take(MAX_NEAR).map(|(_, candidate)| candidate).collect()
}

/// What to tell the model that called a tool which does not exist: the nearest names, or else what there is.
pub fn unknown_tool<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    // The name is the model's: no line breaks, and no longer than any real one.
    let shown: String = name.chars().filter(|c| !c.is_control()).take(MAX_NAME).collect();
    let quoted = |names: &[&str]| names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
    let near = near_names(name, known.iter().copied());
    let help = if !near.is_empty() {
        format!("Did you mean {}?", quoted(&near))
    } else if known.is_empty() {
        "There are no tools; answer in text.".to_owned()
    } else {
        let rest = known.len().saturating_sub(MAX_LISTED);
        let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
        format!("The tools are {}{more}.", quoted(known.get(..MAX_LISTED).unwrap_or(&known)))
    };
    format!("There is no tool `{shown}`. {help}")
}

fn letters(name: &str) -> Vec<char> {
    name.chars().filter(|c| c.is_alphanumeric()).take(MAX_NAME).flat_map(char::to_lowercase).collect()
}

/// Levenshtein's distance, by rows.
fn edit_distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (cell, y) in row.iter_mut().skip(1).zip(b) {
            let best = (diagonal + usize::from(x != y)).min(*cell + 1).min(left + 1);
            diagonal = std::mem::replace(cell, best);
            left = best;
        }
    }
    row.last().copied().unwrap_or_default()
}
