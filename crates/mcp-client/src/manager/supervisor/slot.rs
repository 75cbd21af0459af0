//! What is known of each server: wanted, starting, running, failed, exited, and those that are on their way out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::fingerprint::Fingerprint;
use crate::manager::plan::Condition;
use crate::manager::supervisor::connect::{Connect, Wanted};

pub(super) struct State<C: Connect> {
    pub(super) wanted: BTreeMap<Arc<str>, Wanted<C::Launch>>,
    pub(super) slots: BTreeMap<Arc<str>, Slot<C>>,
    /// Tasks of slots that are gone, until their servers have ended.
    pub(super) leaving: BTreeMap<Arc<str>, JoinHandle<()>>,
    pub(super) next_number: u64,
    pub(super) closed: bool,
}

pub(super) struct Slot<C: Connect> {
    pub(super) number: u64,
    pub(super) key: Fingerprint,
    pub(super) phase: Phase<C>,
    /// Exits in a row before this start.
    pub(super) exits: u32,
    /// Dropped with the slot, which ends the server.
    pub(super) _stop: oneshot::Sender<()>,
    pub(super) task: Option<JoinHandle<()>>,
}

pub(super) enum Phase<C: Connect> {
    Starting,
    Running { link: C::Link, since: Duration },
    Failed { error: Arc<C::Error>, was_reported: bool },
    Exited { reason: Arc<str>, at: Duration },
}

impl<C: Connect> Slot<C> {
    pub(super) fn condition(&self) -> Condition {
        match &self.phase {
            Phase::Starting => Condition::Starting,
            Phase::Running { .. } => Condition::Running,
            Phase::Failed { .. } => Condition::Failed,
            Phase::Exited { at, .. } => Condition::Exited { exits: self.exits, at: *at },
        }
    }
}

impl<C: Connect> State<C> {
    /// Takes a slot away and lets its server end on its own.
    pub(super) fn dismiss(&mut self, server: &Arc<str>) {
        if let Some(task) = self.slots.remove(server).and_then(|mut slot| slot.task.take())
            && !task.is_finished()
        {
            self.leaving.insert(Arc::clone(server), task);
        }
    }
}
