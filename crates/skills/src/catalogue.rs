//! Level 1: the block of a system prompt that says which skills there are.
//!
//! A pure function of a snapshot, its options and the files open in the host: same input, same bytes.

use crate::page::shorten;
use crate::skill::Skill;
use crate::snapshot::Snapshot;
use crate::text;

/// Skills in a catalogue by default.
pub(crate) const LINES: usize = 12;
/// Characters of a description in a catalogue by default.
pub(crate) const DESCRIPTION_CHARS: usize = 240;
/// What a catalogue calls the tool by default.
pub(crate) const TOOL: &str = "skill";

/// How a catalogue is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Style {
    /// A heading and one line a skill: `- name: description`.
    #[default]
    List,
    /// `<available_skills>` with an element a skill, as several hosts write it.
    Xml,
}

/// What a catalogue may hold, and how it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CatalogueOptions {
    /// Skills shown; 12.
    pub lines: usize,
    /// Characters of a description, the ellipsis of a shortened one included; 240.
    pub description_chars: usize,
    /// Estimated tokens of the whole block; no bound of its own by default. Skills are left out from the end until it
    /// fits, and counted.
    pub tokens: Option<usize>,
    /// How it is written.
    pub style: Style,
    /// The name of the tool that loads a skill; `skill`.
    pub tool: String,
}

impl Default for CatalogueOptions {
    fn default() -> Self {
        let (style, tool) = (Style::default(), TOOL.to_owned());
        Self { lines: LINES, description_chars: DESCRIPTION_CHARS, tokens: None, style, tool }
    }
}

impl CatalogueOptions {
    /// Sets [`CatalogueOptions::lines`].
    #[must_use]
    pub fn with_lines(mut self, lines: usize) -> Self {
        self.lines = lines;
        self
    }

    /// Sets [`CatalogueOptions::description_chars`].
    #[must_use]
    pub fn with_description_chars(mut self, chars: usize) -> Self {
        self.description_chars = chars;
        self
    }

    /// Sets [`CatalogueOptions::tokens`].
    #[must_use]
    pub fn with_tokens(mut self, tokens: usize) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Sets [`CatalogueOptions::style`].
    #[must_use]
    pub fn with_style(mut self, style: Style) -> Self {
        self.style = style;
        self
    }

    /// Sets [`CatalogueOptions::tool`].
    #[must_use]
    pub fn with_tool(mut self, tool: impl Into<String>) -> Self {
        self.tool = tool.into();
        self
    }
}

/// One skill of a catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shown {
    /// Its name.
    pub name: String,
    /// Whether its description was shortened.
    pub shortened: bool,
    /// Whether an open file asked for it.
    pub attached: bool,
    /// Estimated tokens of its entry.
    pub tokens: usize,
}

/// A rendered catalogue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Catalogue {
    /// The block for the system prompt, without a line end after it. Empty when there is no skill for a model, so that a
    /// host without skills sends what it would send without this library.
    pub text: String,
    /// The skills in it, in its order.
    pub shown: Vec<Shown>,
    /// The names that did not fit, in order. A model reaches them by searching.
    pub omitted: Vec<String>,
    /// Estimated tokens of the whole block: characters by 3.5, rounded up.
    pub tokens: usize,
}

impl Snapshot {
    /// The catalogue of these skills. Skills that match an open file (named relative to the workspace) come first.
    ///
    /// ```
    /// use haversack_skills::{CatalogueOptions, Filter, Limits, Registry, Root, Roots, consent::Consent};
    ///
    /// # let user = tempfile::tempdir()?;
    /// # for (name, text) in [("forms", "Fills in PDF forms."), ("style", "House style.\nautoAttach: ['**/*.css']")] {
    /// #     std::fs::create_dir(user.path().join(name))?;
    /// #     std::fs::write(user.path().join(name).join("SKILL.md"), format!("---\nname: {name}\ndescription: {text}\n---\n"))?;
    /// # }
    /// let registry = Registry::scan(&Roots::new().with_root(Root::user(user.path())), &Limits::default());
    /// let snapshot = registry.snapshot(&Filter::new(Consent::not_needed()));
    ///
    /// let catalogue = snapshot.catalogue(&CatalogueOptions::default(), &["site/main.css"]);
    /// let lines: Vec<_> = catalogue.text.lines().skip(2).collect();
    /// assert_eq!(lines, ["- style: House style.", "- forms: Fills in PDF forms."]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn catalogue(&self, options: &CatalogueOptions, open_files: &[&str]) -> Catalogue {
        let attached = |skill: &Skill| open_files.iter().any(|file| skill.attaches_to(file));
        let skills = self.skills().filter(|skill| skill.is_for_model());
        let (mut first, rest): (Vec<_>, Vec<_>) =
            skills.map(|skill| (skill, attached(skill))).partition(|(_, attached)| *attached);
        first.extend(rest);
        if first.is_empty() {
            return Catalogue::default();
        }
        let mut kept = first.len().min(options.lines);
        let entries: Vec<_> = first.iter().take(kept).map(|(skill, _)| entry(skill, options)).collect();
        let sizes = Sizes::new(&entries, options, first.len());
        while kept > 0 && options.tokens.is_some_and(|tokens| sizes.tokens(kept) > tokens) {
            kept -= 1;
        }
        let text =
            render(entries.iter().take(kept).map(|(text, _)| text.as_str()), first.len() - kept, options);
        let shown =
            first.iter().zip(&entries).take(kept).map(|((skill, attached), (text, shortened))| Shown {
                name: skill.name().to_owned(),
                shortened: *shortened,
                attached: *attached,
                tokens: text::tokens(text),
            });
        let omitted = first.iter().skip(kept).map(|(skill, _)| skill.name().to_owned()).collect();
        Catalogue { shown: shown.collect(), omitted, tokens: text::tokens(&text), text }
    }

    /// The line that tells a model which skills an open file asks for, to be put behind the user's first message of a
    /// run; `None` when there are none. All that match are named, shown in the catalogue or not.
    #[must_use]
    pub fn hint(&self, open_file: &str) -> Option<String> {
        let matching = self.skills().filter(|skill| skill.is_for_model() && skill.attaches_to(open_file));
        let names: Vec<_> = matching.map(|skill| text::escape(&text::line(skill.name()))).collect();
        let file = text::escape(&text::line(open_file));
        (!names.is_empty())
            .then(|| format!("<skills_hint>Skills for {file}: {}</skills_hint>", names.join(", ")))
    }
}

/// One entry, and whether its description was shortened. Nothing in it can end the line or the element it stands in.
fn entry(skill: &Skill, options: &CatalogueOptions) -> (String, bool) {
    let name = text::line(skill.name());
    let (description, shortened) = shorten(&text::line(skill.description()), options.description_chars);
    let entry = match options.style {
        Style::List => format!("- {name}: {description}"),
        Style::Xml => {
            let (name, description) = (text::escape(&name), text::escape(&description));
            format!("<skill>\n<name>{name}</name>\n<description>{description}</description>\n</skill>")
        }
    };
    (entry, shortened)
}

fn opening(options: &CatalogueOptions) -> String {
    let tool = &options.tool;
    let opening = format!(
        "These are instructions of this project, its team and its user. Before you do work that one of them covers, load it \
         by calling the `{tool}` tool with its name, at most once in a conversation."
    );
    match options.style {
        Style::List => format!("# Skills\n{opening}"),
        Style::Xml => format!("{opening}\n<available_skills>"),
    }
}

fn closing(omitted: usize, options: &CatalogueOptions) -> Option<String> {
    let tool = &options.tool;
    let (noun, them) = if omitted == 1 { ("skill is", "it") } else { ("skills are", "them") };
    let more = (omitted > 0).then(|| {
        format!("({omitted} more {noun} not shown. Find {them} by calling the `{tool}` tool with `search`.)")
    });
    match options.style {
        Style::List => more,
        Style::Xml => {
            Some(["</available_skills>".to_owned()].into_iter().chain(more).collect::<Vec<_>>().join("\n"))
        }
    }
}

fn render<'a>(entries: impl Iterator<Item = &'a str>, omitted: usize, options: &CatalogueOptions) -> String {
    let mut text = opening(options);
    for part in entries.map(str::to_owned).chain(closing(omitted, options)) {
        text.push('\n');
        text.push_str(&part);
    }
    text
}

/// The size of the block for every number of entries, so that fitting a budget takes one pass.
struct Sizes<'a> {
    options: &'a CatalogueOptions,
    all: usize,
    opening: usize,
    /// Characters of the first entries, line ends included.
    sums: Vec<usize>,
}

impl<'a> Sizes<'a> {
    fn new(entries: &[(String, bool)], options: &'a CatalogueOptions, all: usize) -> Self {
        let mut sum = 0;
        let mut sums = vec![0];
        for (text, _) in entries {
            sum += text.chars().count() + 1;
            sums.push(sum);
        }
        Self { options, all, opening: opening(options).chars().count(), sums }
    }

    fn tokens(&self, kept: usize) -> usize {
        let closing = closing(self.all - kept, self.options).map_or(0, |text| text.chars().count() + 1);
        let chars = self.opening + self.sums.get(kept).copied().unwrap_or_default() + closing;
        (chars * 2).div_ceil(7)
    }
}
