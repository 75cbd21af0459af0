//! Folders of skills made to measure.

use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

/// Makes skills of the sizes that real ones have: descriptions of 60 to 500 characters, bodies of 1 to 9 KiB.
///
/// # Errors
///
/// A folder or file cannot be written.
pub fn make(folder: &Path, count: usize) -> io::Result<()> {
    for number in 0..count {
        let words = "reads files and answers questions about them, ".repeat(number % 10 + 1);
        let mut text = format!("---\nname: skill-{number:05}\n");
        let _ = match number % 3 {
            0 => writeln!(text, "description: |\n  {words}"),
            1 => writeln!(text, "description: \"{words}\""),
            _ => writeln!(text, "description: {words}"),
        };
        let _ = write!(text, "license: MIT\nallowed-tools: Read, Write\n---\n\n# Skill {number}\n\n");
        text.push_str(&"Do this, then that, and look at the result.\n".repeat(25 + number % 180));
        let skill = folder.join(format!("skill-{number:05}"));
        fs::create_dir_all(&skill)?;
        fs::write(skill.join("SKILL.md"), text)?;
    }
    Ok(())
}
