//! Finding and disclosing skills, beside the least a scan can do.
//!
//! `floor-head` lists a folder and reads the first 4 KiB of each `SKILL.md` in it; `floor-stat` lists it and asks for the
//! facts of each. A scan should take at most 1.5 times the first, a rescan with nothing changed 1.2 times the second. The
//! memory that a registry of 10,000 skills holds is printed before the measurements. Where the shared generator is
//! there, its tree is measured too.

#![expect(clippy::expect_used, reason = "a bench that cannot set itself up says so")]

use std::fs;
use std::hint::black_box;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use haversack_benches::skill_trees;
use haversack_skills::consent::Consent;
use haversack_skills::{CatalogueOptions, Filter, Limits, Reader, Registry, Root, Roots};

/// A folder of skills that goes away at the end.
struct Tree {
    _folder: tempfile::TempDir,
    skills: PathBuf,
    label: String,
}

/// A tree of our own.
fn made(count: usize) -> Tree {
    let folder = tempfile::tempdir().expect("a temporary folder");
    skill_trees::make(folder.path(), count).expect("a tree of skills");
    Tree { skills: folder.path().to_path_buf(), _folder: folder, label: format!("made-{count}") }
}

/// The tree of the shared generator, where that and a Python are there.
fn generated(count: usize) -> Option<Tree> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus/skills/gen_tree.py");
    if !script.is_file() {
        eprintln!("SKIPPED: {} is not there", script.display());
        return None;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let status = Command::new("python3").arg(script).arg(folder.path()).arg(count.to_string()).output();
    if !status.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: the shared generator did not run");
        return None;
    }
    Some(Tree { skills: folder.path().join("skills"), _folder: folder, label: format!("generated-{count}") })
}

fn folders(root: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(root).expect("a folder").map_while(Result::ok);
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path())
}

fn floor_head(root: &Path) -> usize {
    let mut buffer = vec![0; 4096];
    let mut read = 0;
    for folder in folders(root) {
        if let Ok(mut file) = fs::File::open(folder.join("SKILL.md")) {
            read += file.read(&mut buffer).unwrap_or(0);
        }
    }
    read
}

fn floor_stat(root: &Path) -> u64 {
    folders(root)
        .filter_map(|folder| fs::metadata(folder.join("SKILL.md")).ok())
        .map(|facts| facts.len())
        .sum()
}

fn registry(tree: &Tree) -> Registry {
    Registry::scan(&Roots::new().with_root(Root::user(&tree.skills)), &Limits::default())
}

/// What the process holds in memory, where the system tells.
fn resident_kib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn skills(criterion: &mut Criterion) {
    let mut trees = vec![made(1_000), made(10_000)];
    trees.extend(generated(1_000));
    for tree in &trees {
        let before = resident_kib();
        let mut registry = registry(tree);
        if let Some((before, after)) = before.zip(resident_kib()) {
            eprintln!(
                "{}: a registry of {} skills holds {} KiB",
                tree.label,
                registry.skills().len(),
                after - before
            );
        }
        let mut group = criterion.benchmark_group("skills");
        group.throughput(Throughput::Elements(registry.skills().len() as u64));
        group.sample_size(20);
        let id = |what| BenchmarkId::new(what, &tree.label);
        group.bench_function(id("floor-head"), |bench| bench.iter(|| floor_head(black_box(&tree.skills))));
        group.bench_function(id("scan"), |bench| bench.iter_with_large_drop(|| self::registry(tree)));
        group.bench_function(id("floor-stat"), |bench| bench.iter(|| floor_stat(black_box(&tree.skills))));
        group.bench_function(id("rescan"), |bench| bench.iter(|| registry.rescan()));
        let filter = Filter::new(Consent::not_needed());
        group.bench_function(id("snapshot"), |bench| {
            bench.iter_with_large_drop(|| registry.snapshot(&filter))
        });
        let snapshot = registry.snapshot(&filter);
        let options = CatalogueOptions::default();
        group.bench_function(id("catalogue"), |bench| {
            bench.iter(|| snapshot.catalogue(&options, &["src/main.rs"]))
        });
        let name = snapshot.skills().next().expect("a skill").name().to_owned();
        let reader = || Reader::new(snapshot.clone());
        group.bench_function(id("activate"), |bench| {
            bench.iter_batched(
                reader,
                |reader| reader.load(&name, 1).map(|reply| reply.bytes).ok(),
                criterion::BatchSize::SmallInput,
            );
        });
        let reader = reader();
        let _ = reader.search("files");
        group.bench_function(id("search"), |bench| {
            bench.iter(|| reader.search(black_box("answer questions")))
        });
        group.finish();
    }
}

criterion_group!(benches, skills);
criterion_main!(benches);
