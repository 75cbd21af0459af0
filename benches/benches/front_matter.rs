//! Reading front matter: ours beside a floor and two YAML libraries, over the front matters of the shared corpus (or, where
//! that is missing, over some made here). Each measurement reads all of them once.

use std::hint::black_box;
use std::path::PathBuf;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use haversack_skills::document::{Document, ParseOptions};
use saphyr::LoadableYamlNode as _;

/// Files cut off behind their closing fence, all of them strictly right, and their front matters with LF.
fn corpus() -> Vec<(Vec<u8>, String)> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus/skills/skills.jsonl");
    let texts: Vec<String> = match std::fs::read_to_string(path) {
        Ok(lines) => lines
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .filter_map(|record| Some(record["text"].as_str()?.to_owned()))
            .collect(),
        Err(_) => (0..500).map(made).collect(),
    };
    texts
        .iter()
        .filter_map(|text| {
            let document = Document::parse(text.as_bytes(), &ParseOptions::new());
            let front = document.front_matter().filter(|_| document.is_strict())?;
            let file = format!("---\n{front}---\n").into_bytes();
            Some((file, front.replace("\r\n", "\n")))
        })
        .collect()
}

fn made(number: usize) -> String {
    let words = "reads files and answers questions about them ".repeat(number % 9 + 1);
    format!(
        "---\nname: skill-{number}\ndescription: {words}\nversion: 1.0.{number}\nallowed-tools: [Read, \"Write\"]\n\
         metadata:\n  tags:\n    - a\n    - b\n  note: |\n    {words}\n---\n"
    )
}

/// The least that any reader does: looks at every byte once and finds the lines.
fn floor(file: &[u8]) -> usize {
    memchr::memchr2_iter(b'\n', b'\r', file).count() + usize::from(std::str::from_utf8(file).is_ok())
}

fn front_matter(criterion: &mut Criterion) {
    let corpus = corpus();
    let bytes: usize = corpus.iter().map(|(file, _)| file.len()).sum();
    let mut group = criterion.benchmark_group("front_matter");
    group.throughput(Throughput::Bytes(bytes as u64));
    let options = ParseOptions::new();
    let name = |what| BenchmarkId::new(what, corpus.len());
    group.bench_function(name("floor"), |bench| {
        bench.iter(|| corpus.iter().map(|(file, _)| floor(black_box(file))).sum::<usize>());
    });
    group.bench_function(name("haversack"), |bench| {
        bench.iter(|| {
            for (file, _) in &corpus {
                black_box(Document::parse(black_box(file), &options));
            }
        });
    });
    group.bench_function(name("haversack_to_json"), |bench| {
        bench.iter(|| {
            for (file, _) in &corpus {
                let document = Document::parse(black_box(file), &options);
                black_box(document.fields().map(haversack_skills::node::Fields::to_json));
            }
        });
    });
    group.bench_function(name("serde_yaml_ng"), |bench| {
        bench.iter(|| {
            for (_, front) in &corpus {
                let _ = black_box(serde_yaml_ng::from_str::<serde_json::Value>(black_box(front)));
            }
        });
    });
    group.bench_function(name("saphyr"), |bench| {
        bench.iter(|| {
            for (_, front) in &corpus {
                let _ = black_box(saphyr::Yaml::load_from_str(black_box(front)));
            }
        });
    });
    group.finish();
}

criterion_group!(benches, front_matter);
criterion_main!(benches);
