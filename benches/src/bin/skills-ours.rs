//! Our contestant among skill loaders: `--root DIR --iters N --case scan|rescan|activate|beside|memory`.
//!
//! One unit is one whole scan of the root, from nothing to a list of (name, description, location); with `rescan` one
//! look whether anything has changed; with `activate` the reading of one skill's body by its name. `beside` takes turns
//! with the floors ([`haversack_benches::skill_floors`]) in one run and reports the ratios; `memory` says what the first
//! scan of a fresh process adds to it. `make` makes a tree of `--count` skills there, and measures nothing.

use std::hint::black_box;
use std::path::Path;

use haversack_benches::contest::{Flags, Report, Resources, Sample, memory_kib};
use haversack_benches::{skill_floors, skill_trees};
use haversack_skills::consent::Consent;
use haversack_skills::{Filter, Limits, Reader, Registry, Rescan, Root, Roots};

fn main() {
    let flags = Flags::of_process();
    let case = flags.text("case", "scan");
    let root = Path::new(flags.required("root"));
    if case == "make" {
        return skill_trees::make(root, flags.number("count", 1_000)).expect("a tree of skills");
    }
    let iterations = flags.number("iters", 10);
    let contest = Contest {
        root,
        roots: Roots::new().with_root(Root::user(root)),
        limits: Limits::default().with_threads(flags.number("threads", 2)),
        iterations,
        warmup: flags.number("warmup", iterations / 10),
    };
    let report = Report::new("skills", "ours", case).with("threads", contest.limits.threads);
    let report = match case {
        "scan" => contest.scan(report),
        "rescan" => contest.rescan(report),
        "activate" => contest.activate(report),
        "beside" => contest.beside(report),
        "memory" => contest.memory(report),
        other => panic!("there is no case {other}"),
    };
    report.print();
}

struct Contest<'a> {
    root: &'a Path,
    roots: Roots,
    limits: Limits,
    iterations: usize,
    warmup: usize,
}

impl Contest<'_> {
    fn registry(&self) -> Registry {
        Registry::scan(&self.roots, &self.limits)
    }

    /// One unit of scanning: the list, down to each skill's location. It is given back, so that dropping it is no part
    /// of the unit.
    fn list(&self) -> Registry {
        let registry = self.registry();
        for skill in registry.skills() {
            let (_, description, _) = black_box((skill.name(), skill.description(), skill.folder()));
            assert!(!description.is_empty(), "every skill has a description");
        }
        registry
    }

    fn count(&self) -> usize {
        self.list().skills().len()
    }

    fn sample<T>(&self, report: Report, mut work: impl FnMut() -> T) -> Report {
        for _ in 0..self.warmup {
            work();
        }
        let mut sample = Sample::default();
        let before = Resources::now();
        for _ in 0..self.iterations {
            sample.time(&mut work);
        }
        report.sample(&sample).used_since(before)
    }

    fn scan(&self, report: Report) -> Report {
        let skills = self.count();
        self.sample(report.with("skills", skills), || {
            let registry = self.list();
            assert_eq!(registry.skills().len(), skills);
            registry
        })
    }

    fn rescan(&self, report: Report) -> Report {
        let mut registry = self.registry();
        let report = report.with("skills", registry.skills().len());
        self.sample(report, || assert_eq!(registry.rescan(), Rescan::Unchanged))
    }

    fn activate(&self, report: Report) -> Report {
        let registry = self.registry();
        let reader = Reader::new(registry.snapshot(&Filter::new(Consent::not_needed())));
        let names: Vec<_> = registry.skills().iter().map(|skill| skill.name().to_owned()).collect();
        let mut names = names.iter().cycle();
        let mut bytes = 0;
        let report = self.sample(report.with("skills", registry.skills().len()), || {
            let name = names.next().expect("there are skills");
            let reply = reader.load(name, 1).expect("a skill that was found can be read");
            assert!(!reply.text.is_empty());
            bytes += reply.bytes;
            // What is in context is only pointed to; here nothing is.
            reader.forget(name);
        });
        report.with("bytes", bytes)
    }

    /// Ours and the floors in turns, so that what else the machine does falls on all of them.
    fn beside(&self, report: Report) -> Report {
        let mut registry = self.registry();
        let skills = self.count();
        let [mut heads, mut scans, mut stats, mut rescans] = std::array::from_fn(|_| Side::default());
        for _ in 0..self.iterations {
            let (files, _) = heads.time(|| skill_floors::read_heads(self.root).expect("a folder of skills"));
            assert_eq!(files, skills, "the floor reads what the scan finds");
            scans.time(|| self.list());
            let (files, _) = stats.time(|| skill_floors::stat_all(self.root).expect("a folder of skills"));
            assert_eq!(files, skills);
            rescans.time(|| assert_eq!(registry.rescan(), Rescan::Unchanged));
        }
        report
            .with("skills", skills)
            .with("read_floor_us", heads.wall.percentile_us(0.5))
            .with("scan_us", scans.wall.percentile_us(0.5))
            .with("scan_ratio_best", ratio(&scans.wall, &heads.wall, 0.0))
            .with("scan_ratio_median", ratio(&scans.wall, &heads.wall, 0.5))
            .with("scan_ratio_cpu", ratio(&scans.cpu, &heads.cpu, 0.5))
            .with("stat_floor_us", stats.wall.percentile_us(0.5))
            .with("rescan_us", rescans.wall.percentile_us(0.5))
            .with("rescan_ratio_best", ratio(&rescans.wall, &stats.wall, 0.0))
            .with("rescan_ratio_median", ratio(&rescans.wall, &stats.wall, 0.5))
            .with("rescan_ratio_cpu", ratio(&rescans.cpu, &stats.cpu, 0.5))
    }

    fn memory(&self, report: Report) -> Report {
        let kib = |field| memory_kib(field).expect("the system says what a process holds");
        let before = kib("VmRSS");
        let registry = self.registry();
        let (after, peak) = (kib("VmRSS"), kib("VmHWM"));
        report
            .with("skills", registry.skills().len())
            .with("held_kib", after.saturating_sub(before))
            .with("peak_kib", peak.saturating_sub(before))
    }
}

/// One contestant's times: on the clock, and of the processor on all threads.
#[derive(Default)]
struct Side {
    wall: Sample,
    cpu: Sample,
}

impl Side {
    fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let before = Resources::now();
        let made = self.wall.time(work);
        self.cpu.push(Resources::now().since(before).cpu());
        made
    }
}

fn ratio(ours: &Sample, floor: &Sample, share: f64) -> f64 {
    ours.percentile_us(share) / floor.percentile_us(share)
}
