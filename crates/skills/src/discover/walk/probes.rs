//! Trying the folders of one level for skills, on a few threads.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::discover::read::{self, Probe};
use crate::discover::walk::{Candidate, Walk};
use crate::folder::{Folder, Stamp};
use crate::roots::LinkPolicy;
use crate::skill::{self, FILE_NAME};

/// Places that a thread takes at a time.
const BATCH: usize = 64;

impl Walk<'_> {
    pub(super) fn probe(&self, root: &Folder, candidate: &Candidate, buffer: &mut Vec<u8>) -> Probe {
        let relative = &candidate.folder.relative;
        let path = &self.place.root.path;
        let folder = read::join(path, relative);
        let stamp = Stamp { identity: (0, 0), bytes: 0, modified: 0, changed: 0 };
        let (identity, through_link) = (candidate.folder.identity, candidate.folder.through_link);
        let found = skill::Found { root: self.index, through_link, folder: identity, stamp };
        if let Some(skill) = self.known.unchanged(root, relative, &folder, found) {
            return Probe::Skill(Arc::new(skill), read::join(relative, Path::new(FILE_NAME)));
        }
        let links = self.place.root.links == LinkPolicy::Follow;
        read::probe(root, read::Place { relative, folder, found, links }, self.limits.file_bytes, buffer)
    }

    /// Tries all candidates, on a few threads when there are many.
    pub(super) fn probe_all(&self, root: &Folder, candidates: &[Candidate]) -> Vec<Probe> {
        let batches: Vec<_> = candidates.chunks(BATCH).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            let mut buffer = Vec::new();
            let mut done = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(batch) = batches.get(number) else { return done };
                let probes: Vec<_> =
                    batch.iter().map(|candidate| self.probe(root, candidate, &mut buffer)).collect();
                done.push((number, probes));
            }
        };
        let mut done = thread::scope(|scope| {
            let helpers = self.limits.threads.min(batches.len().div_ceil(2)).saturating_sub(1);
            // A thread that cannot be had is not missed: the others take its work.
            let helpers: Vec<_> =
                (0..helpers).filter_map(|_| thread::Builder::new().spawn_scoped(scope, work).ok()).collect();
            let mut done = work();
            done.extend(helpers.into_iter().filter_map(|helper| helper.join().ok()).flatten());
            done
        });
        done.sort_unstable_by_key(|(number, _)| *number);
        done.into_iter().flat_map(|(_, probes)| probes).collect()
    }
}
