//! The three levels of skills, as a model meets them: the lines in the prompt, a body, a file of a skill.
//!
//! ```sh
//! cargo run --bin disclose_skills -- examples/workspace
//! cargo run --bin disclose_skills -- examples/workspace field-note
//! cargo run --bin disclose_skills -- examples/workspace field-note references/tags.md
//! ```

use haversack::{ConsentQuestion, Haversack};
use haversack_agent_core::testing::ScriptedModel;
use haversack_examples::terminal::plain;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (project, rest) = words.split_first().ok_or("usage: disclose_skills PROJECT [NAME [FILE]]")?;
    // Looking at text is all that is done with it here, so this host agrees to skills by itself, and to nothing else.
    let haversack = Haversack::builder(ScriptedModel::new([]))
        .project(project)
        .consent(async |question: ConsentQuestion| {
            Some(question.subject == haversack::ConsentSubject::Skills)
        })
        .build()?;
    let equipped = haversack.prepare().await?;
    let reader = equipped.skills().ok_or("there are no skills")?;
    match rest {
        [] => {
            for skill in &equipped.report().skills {
                println!("{} ({}): {}", skill.name, plain(&skill.origin), plain(&skill.state.to_string()));
            }
            for section in &equipped.report().sections {
                println!(
                    "section {}: {} characters, about {} tokens",
                    section.name, section.chars, section.tokens
                );
            }
        }
        [name] => println!("{}", plain(&reader.load(name, 1)?.text)),
        [name, file, ..] => println!("{}", plain(&reader.resource(name, file, 1)?.text)),
    }
    Ok(())
}
