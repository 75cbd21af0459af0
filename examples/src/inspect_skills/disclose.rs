//! `catalogue`, `load`, `resource` and `search`: the three levels as a model sees them.

use std::error::Error;

use clap::Args;
use haversack_skills::{CatalogueOptions, LoadError, Reply, Style};
use serde_json::{Value, json};

use crate::inspect_skills::place::Place;

/// The arguments of `catalogue`.
#[derive(Debug, Args)]
pub struct CatalogueArguments {
    #[command(flatten)]
    place: Place,
    /// A file open in the host, relative to the project; may be given several times.
    #[arg(long, value_name = "FILE")]
    open: Vec<String>,
    /// Skills shown.
    #[arg(long)]
    lines: Option<usize>,
    /// Characters of a description.
    #[arg(long)]
    chars: Option<usize>,
    /// As XML.
    #[arg(long)]
    xml: bool,
}

/// The arguments of `load`.
#[derive(Debug, Args)]
pub struct LoadArguments {
    #[command(flatten)]
    place: Place,
    /// The skill.
    name: String,
    /// The page, from 1.
    #[arg(long, default_value_t = 1)]
    page: usize,
}

/// The arguments of `resource`.
#[derive(Debug, Args)]
pub struct ResourceArguments {
    #[command(flatten)]
    place: Place,
    /// The skill.
    name: String,
    /// The file, relative to the skill.
    path: String,
    /// The page, from 1.
    #[arg(long, default_value_t = 1)]
    page: usize,
}

/// The arguments of `search`.
#[derive(Debug, Args)]
pub struct SearchArguments {
    #[command(flatten)]
    place: Place,
    /// Words.
    query: String,
}

/// Renders the catalogue and the hints.
///
/// # Errors
///
/// When the call is at fault or standard output cannot be written.
pub fn catalogue(arguments: &CatalogueArguments) -> Result<(), Box<dyn Error>> {
    let snapshot = arguments.place.snapshot()?;
    let mut options = CatalogueOptions::default();
    options.lines = arguments.lines.unwrap_or(options.lines);
    options.description_chars = arguments.chars.unwrap_or(options.description_chars);
    if arguments.xml {
        options.style = Style::Xml;
    }
    let open: Vec<_> = arguments.open.iter().map(String::as_str).collect();
    let catalogue = snapshot.catalogue(&options, &open);
    let hints: Vec<_> = open.iter().filter_map(|file| snapshot.hint(file)).collect();
    let shown = catalogue.shown.iter().map(|shown| {
        json!({
            "name": shown.name,
            "shortened": shown.shortened,
            "attached": shown.attached,
            "tokens": shown.tokens,
        })
    });
    let value = json!({
        "text": catalogue.text,
        "tokens": catalogue.tokens,
        "shown": shown.collect::<Vec<_>>(),
        "omitted": catalogue.omitted,
        "hints": hints,
    });
    arguments.place.answer(&value, &catalogue.text)
}

/// Loads a page of a body.
///
/// # Errors
///
/// When the call is at fault, an unknown name or page among it, or standard output cannot be written.
pub fn load(arguments: &LoadArguments) -> Result<(), Box<dyn Error>> {
    let reply = arguments.place.reader()?.load(&arguments.name, arguments.page);
    answer(&arguments.place, reply, json!({ "name": arguments.name }))
}

/// Loads a page of a bundled file.
///
/// # Errors
///
/// As [`load`].
pub fn resource(arguments: &ResourceArguments) -> Result<(), Box<dyn Error>> {
    let ResourceArguments { place, name, path, page } = arguments;
    let reply = place.reader()?.resource(name, path, *page);
    answer(place, reply, json!({ "name": name, "path": path }))
}

/// Searches.
///
/// # Errors
///
/// When the call is at fault or standard output cannot be written.
pub fn search(arguments: &SearchArguments) -> Result<(), Box<dyn Error>> {
    let reader = arguments.place.reader()?;
    let found = reader.search(&arguments.query);
    let hits = found.hits.iter().map(|(name, score)| {
        let description = reader.snapshot().get(name).map(haversack_skills::Skill::description);
        json!({ "name": name, "description": description, "score": score })
    });
    let value = json!({ "query": arguments.query, "hits": hits.collect::<Vec<_>>(), "text": found.text });
    arguments.place.answer(&value, &found.text)
}

fn answer(place: &Place, reply: Result<Reply, LoadError>, mut value: Value) -> Result<(), Box<dyn Error>> {
    let fields = match &reply {
        Ok(reply) => json!({
            "page": reply.page,
            "pages": reply.pages,
            "bytes": reply.bytes,
            "pointer": reply.is_pointer,
            "text": reply.text,
        }),
        Err(error) => json!({ "error": error.to_string() }),
    };
    if let (Value::Object(value), Value::Object(fields)) = (&mut value, fields) {
        value.extend(fields);
    }
    match reply {
        Ok(reply) => place.answer(&value, &reply.text),
        Err(error) => {
            place.answer(&value, "")?;
            Err(error.into())
        }
    }
}
