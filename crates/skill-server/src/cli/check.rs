//! `validate`, `compile` and `list`: what would be served, and what is wrong with it.

use std::path::Path;

use haversack_skill_runtime::SkillMode;
use haversack_skill_runtime::metadata::Metadata;
use haversack_skill_runtime::pipeline::{Definition, Origin, Store, ToolNode};
use haversack_skill_runtime::validate::{Context, validate as faults_of};
use haversack_skill_server::{Catalogue, ServedSkill};
use haversack_skills::diagnostic::Severity;
use haversack_skills::document::ParseOptions;
use haversack_skills::{Document, Limits, Registry};
use serde::Serialize;

use crate::cli::args::{CompileArgs, HostArgs, ListArgs, ValidateArgs};
use crate::cli::{Ending, host, out};

/// One thing about one skill.
#[derive(Serialize)]
struct Finding {
    file: String,
    skill: String,
    severity: &'static str,
    line: Option<u32>,
    message: String,
}

impl Finding {
    fn line(&self) -> String {
        let place = self.line.map(|line| format!(":{line}")).unwrap_or_default();
        format!("{}{place}: {}: {}", self.file, self.severity, self.message)
    }

    fn is_error(&self) -> bool {
        self.severity == "error"
    }
}

/// Says what is wrong with the skills of a folder.
pub(crate) fn validate(args: &ValidateArgs) -> Result<(), Ending> {
    let registry = scan(&args.dir)?;
    let mut findings = Vec::new();
    for skill in registry.skills().iter().chain(registry.invalid()) {
        look_at(&skill.file(), skill.name(), &mut findings);
    }
    for shadowed in registry.shadowed() {
        findings.push(Finding {
            file: shadowed.skill.file().display().to_string(),
            skill: shadowed.skill.name().to_owned(),
            severity: "error",
            line: None,
            message: format!("{} has the same name and comes first", shadowed.by.file().display()),
        });
    }
    let skills = registry.skills().len() + registry.invalid().len() + registry.shadowed().len();
    let errors = findings.iter().filter(|finding| finding.is_error()).count();
    if args.json {
        out::json(&serde_json::json!({"skills": skills, "errors": errors, "findings": findings}))?;
    } else {
        for finding in &findings {
            out::line(&finding.line())?;
        }
        out::line(&format!("{skills} skills, {errors} errors, {} warnings", findings.len() - errors))?;
    }
    if errors == 0 { Ok(()) } else { Err(Ending::Told) }
}

fn scan(dir: &Path) -> Result<Registry, Ending> {
    Ok(Registry::scan(&host::roots(&[dir.to_owned()])?, &Limits::default()))
}

fn look_at(file: &Path, skill: &str, findings: &mut Vec<Finding>) {
    let mut find = |severity, line, message| {
        let (file, skill) = (file.display().to_string(), skill.to_owned());
        findings.push(Finding { file, skill, severity, line, message });
    };
    let bytes = match std::fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) => return find("error", None, error.to_string()),
    };
    let document = Document::parse(&bytes, &ParseOptions::new());
    let folder = file.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let checked = haversack_skills::lint::check(&document, folder.as_deref());
    for found in document.diagnostics().iter().chain(&checked) {
        let severity = if found.severity == Severity::Error { "error" } else { "warning" };
        find(severity, Some(found.line), found.message.to_string());
    }
    let Some(fields) = document.fields() else { return };
    let reading = Metadata::read(fields);
    for finding in reading.findings.iter().filter(|finding| !finding.is_error()) {
        find("warning", Some(finding.line), finding.message.clone());
    }
    let source = String::from_utf8_lossy(&bytes);
    for fault in faults_of(&reading, &Context::default().with_source(&source)) {
        find("error", None, fault.to_string());
    }
    if let (SkillMode::Tool, Some(schema)) = (&reading.metadata.mode, &reading.metadata.tool_schema) {
        let origin = Origin::new(skill, &*source);
        let known = |tool: &str| Some(ToolNode::new(tool));
        for fault in
            haversack_skill_runtime::pipeline::compile(&origin, schema, &known).err().into_iter().flatten()
        {
            find("error", None, fault.to_string());
        }
    }
}

/// Compiles the pipelines of a folder.
pub(crate) async fn compile(args: CompileArgs) -> Result<(), Ending> {
    let (definitions, problems) =
        if args.servers.is_some() { against_servers(&args).await? } else { against_anything(&args.dir)? };
    if let Some(folder) = &args.state_dir {
        let mut store = Store::new();
        for definition in &definitions {
            store.insert(definition.clone());
        }
        store.save(&Store::file(folder), "")?;
    }
    if args.json {
        out::json(&serde_json::json!({"pipelines": definitions, "problems": problems}))?;
    } else {
        for definition in &definitions {
            let steps: Vec<_> = definition.steps.iter().map(|step| step.tool.as_str()).collect();
            let approval = definition.max_approval;
            out::line(&format!("{}: {} (wants {approval})", definition.skill_name, steps.join(", ")))?;
        }
        for problem in &problems {
            out::line(&format!("error: {problem}"))?;
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(Ending::Told) }
}

type Pipelines = (Vec<Definition>, Vec<String>);

fn against_anything(dir: &Path) -> Result<Pipelines, Ending> {
    let (mut definitions, mut problems) = (Vec::new(), Vec::new());
    for skill in scan(dir)?.skills() {
        let source = std::fs::read(skill.file())?;
        let source = String::from_utf8_lossy(&source);
        let document = Document::parse(source.as_bytes(), &ParseOptions::new());
        let Some(metadata) = document.fields().map(|fields| Metadata::read(fields).metadata) else {
            continue;
        };
        let (SkillMode::Tool, Some(schema)) = (&metadata.mode, &metadata.tool_schema) else { continue };
        let name = metadata.tree_id.as_deref().unwrap_or(skill.name());
        let origin = Origin::new(name, &*source)
            .with_description(skill.description())
            .with_folder(skill.folder().to_string_lossy());
        let known = |tool: &str| Some(ToolNode::new(tool));
        match haversack_skill_runtime::pipeline::compile(&origin, schema, &known) {
            Ok(definition) => definitions.push(definition),
            Err(faults) => problems.extend(faults.iter().map(ToString::to_string)),
        }
    }
    Ok((definitions, problems))
}

async fn against_servers(args: &CompileArgs) -> Result<Pipelines, Ending> {
    let host_args =
        HostArgs { skills_dir: vec![args.dir.clone()], servers: args.servers.clone(), ..HostArgs::bare() };
    let built = host::build(&host_args).await?;
    let catalogue = built.server.catalogue();
    let is_pipeline = |skill: &&std::sync::Arc<ServedSkill>| skill.metadata().mode == SkillMode::Tool;
    let (mut definitions, mut problems) = (Vec::new(), Vec::new());
    for skill in catalogue.skills().iter().filter(is_pipeline) {
        match skill.definition() {
            Some(definition) => definitions.push(definition.as_ref().clone()),
            None => problems.extend(problems_of(&catalogue, skill.name())),
        }
    }
    built.close().await;
    Ok((definitions, problems))
}

fn problems_of(catalogue: &Catalogue, skill: &str) -> Vec<String> {
    catalogue.problems().iter().filter(|problem| problem.skill == skill).map(ToString::to_string).collect()
}

/// Lists what would be served.
pub(crate) async fn list(args: ListArgs) -> Result<(), Ending> {
    let built = host::build(&args.host).await?;
    let catalogue = built.server.catalogue();
    if args.json {
        let skills: Vec<_> = catalogue.skills().iter().map(|skill| entry(skill)).collect();
        let problems: Vec<_> = catalogue
            .problems()
            .iter()
            .map(|problem| {
                serde_json::json!({"skill": problem.skill, "file": problem.file, "message": problem.message})
            })
            .collect();
        out::json(&serde_json::json!({"skills": skills, "problems": problems}))?;
    } else {
        for skill in catalogue.skills() {
            let mode = &skill.metadata().mode;
            let tool = skill.tool_name().unwrap_or("(no tool)");
            let line: String = skill.description().split_whitespace().collect::<Vec<_>>().join(" ");
            out::line(&format!("{tool}\t{mode}\t{line}"))?;
        }
        for problem in catalogue.problems() {
            out::line(&format!("not served: {problem}"))?;
        }
    }
    built.close().await;
    Ok(())
}

fn entry(skill: &ServedSkill) -> serde_json::Value {
    serde_json::json!({
        "name": skill.name(),
        "tool": skill.tool_name(),
        "mode": skill.metadata().mode.to_string(),
        "description": skill.description(),
        "folder": skill.folder(),
    })
}
