//! The driver of the plan: one task per server that starts it, watches it and ends it.
//!
//! It knows nothing of MCP: it starts what a [`Connect`] connects. So its order of events is tested without processes.
//!
//! Each server has a *slot* with a number. A task may only change the slot that still has the number it was started with,
//! so a task that was overtaken by a new configuration cannot spoil its successor. A successor waits for the end of its
//! predecessor's task, so there are never two processes of one server.

pub(crate) mod connect;
mod slot;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, broadcast, oneshot, watch};
use tokio::task::JoinHandle;

use crate::manager::clock::Clock;
use crate::manager::event::{KEPT_EVENTS, ManagerEvent};
use crate::manager::plan::{Action, Backoff, decide};
use crate::manager::supervisor::connect::{Connect, Link as _, NotBegun, Wanted};
use crate::manager::supervisor::slot::{Phase, Slot, State};

/// What is shown of a slot.
pub(crate) enum Seen<C: Connect> {
    Absent,
    Starting,
    Running(C::Link),
    Failed(Arc<C::Error>),
    Exited { reason: Arc<str>, restart_in: Duration },
}

/// Ends all servers when it is dropped.
pub(crate) struct Supervisor<C: Connect> {
    shared: Arc<Shared<C>>,
}

struct Shared<C: Connect> {
    connect: Arc<C>,
    clock: Arc<dyn Clock>,
    backoff: Backoff,
    starts: Semaphore,
    events: broadcast::Sender<ManagerEvent>,
    /// Changes whenever a slot does.
    changes: watch::Sender<()>,
    state: Mutex<State<C>>,
}

impl<C: Connect> Supervisor<C> {
    pub(crate) fn new(connect: C, clock: Arc<dyn Clock>, backoff: Backoff, starts_at_once: usize) -> Self {
        let state = State {
            wanted: BTreeMap::new(),
            slots: BTreeMap::new(),
            leaving: BTreeMap::new(),
            next_number: 0,
            closed: false,
        };
        Self {
            shared: Arc::new(Shared {
                connect: Arc::new(connect),
                clock,
                backoff,
                starts: Semaphore::new(starts_at_once.clamp(1, Semaphore::MAX_PERMITS)),
                events: broadcast::Sender::new(KEPT_EVENTS),
                changes: watch::Sender::new(()),
                state: Mutex::new(state),
            }),
        }
    }

    /// Replaces what is wanted. Nothing starts or ends before the next [`Self::ensure`].
    pub(crate) fn want(&self, wanted: BTreeMap<Arc<str>, Wanted<C::Launch>>) {
        self.shared.lock().wanted = wanted;
    }

    /// Does what the plan says about the servers that `which` picks and all that are no longer wanted, and waits until
    /// none of those picked is starting.
    pub(crate) async fn ensure(&self, which: impl Fn(&str) -> bool) {
        // An end that a caller has seen must have been seen by the plan too.
        self.wait_while(|server, phase| {
            which(server) && matches!(phase, Phase::Running { link, .. } if link.has_ended())
        })
        .await;
        self.shared.act(&which);
        self.wait_while(|server, phase| which(server) && matches!(phase, Phase::Starting)).await;
    }

    async fn wait_while(&self, is_so: impl Fn(&str, &Phase<C>) -> bool) {
        let mut changes = self.shared.changes.subscribe();
        while self.shared.lock().slots.iter().any(|(server, slot)| is_so(server, &slot.phase)) {
            // The sender is in `self`, so this cannot fail.
            let _ = changes.changed().await;
        }
    }

    pub(crate) fn see(&self, server: &str) -> Seen<C> {
        let state = self.shared.lock();
        let Some(slot) = state.slots.get(server) else { return Seen::Absent };
        match &slot.phase {
            Phase::Starting => Seen::Starting,
            Phase::Running { link, .. } => Seen::Running(link.clone()),
            Phase::Failed { error, .. } => Seen::Failed(Arc::clone(error)),
            Phase::Exited { reason, at } => {
                let until = at.saturating_add(self.shared.backoff.pause(slot.exits));
                let restart_in = until.saturating_sub(self.shared.clock.now());
                Seen::Exited { reason: Arc::clone(reason), restart_in }
            }
        }
    }

    /// The servers whose failure was not given out before.
    pub(crate) fn take_new_failures(&self) -> Vec<Arc<str>> {
        let mut state = self.shared.lock();
        let mut new = Vec::new();
        for (server, slot) in &mut state.slots {
            if let Phase::Failed { was_reported, .. } = &mut slot.phase
                && !std::mem::replace(was_reported, true)
            {
                new.push(Arc::clone(server));
            }
        }
        new
    }

    pub(crate) fn events(&self) -> broadcast::Receiver<ManagerEvent> {
        self.shared.events.subscribe()
    }

    /// Ends all servers and forgets failures and exits; the next [`Self::ensure`] begins anew.
    pub(crate) fn reset(&self) {
        let mut state = self.shared.lock();
        let servers: Vec<_> = state.slots.keys().cloned().collect();
        for server in servers {
            state.dismiss(&server);
        }
        drop(state);
        self.shared.changes.send_replace(());
    }

    /// Ends all servers and waits for their end. Nothing starts any more.
    pub(crate) async fn close(&self) {
        self.reset();
        let leaving = {
            let mut state = self.shared.lock();
            state.closed = true;
            // Whatever was started between the two locks.
            let servers: Vec<_> = state.slots.keys().cloned().collect();
            for server in servers {
                state.dismiss(&server);
            }
            std::mem::take(&mut state.leaving)
        };
        for task in leaving.into_values() {
            // A task that panicked has dropped its connection, which ends the server.
            let _ = task.await;
        }
    }
}

impl<C: Connect> Drop for Supervisor<C> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.closed = true;
        let slots = std::mem::take(&mut state.slots);
        drop(state);
        for slot in slots.into_values() {
            match &slot.phase {
                // Here and now: the runtime may be on its way down, and its tasks may never run again.
                Phase::Running { link, .. } => link.end_now(),
                Phase::Starting => {
                    if let Some(task) = &slot.task {
                        task.abort();
                    }
                }
                Phase::Failed { .. } | Phase::Exited { .. } => {}
            }
        }
    }
}

impl<C: Connect> Shared<C> {
    fn lock(&self) -> MutexGuard<'_, State<C>> {
        // Each change below is whole before anything that could panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, event: ManagerEvent) {
        // Nobody listening is no error.
        let _ = self.events.send(event);
    }

    fn act(self: &Arc<Self>, which: &impl Fn(&str) -> bool) {
        let now = self.clock.now();
        let mut state = self.lock();
        if state.closed {
            return;
        }
        state.leaving.retain(|_, task| !task.is_finished());
        let mut servers: Vec<_> = state.wanted.keys().chain(state.slots.keys()).cloned().collect();
        servers.sort();
        servers.dedup();
        for server in servers {
            let wanted = state.wanted.get(&server).map(|wanted| wanted.key);
            if wanted.is_some() && !which(&server) {
                continue;
            }
            let present = state.slots.get(&server).map(|slot| (slot.key, slot.condition()));
            match decide(wanted, present, &self.backoff, now) {
                Action::Keep | Action::Wait { .. } => {}
                Action::Stop => state.dismiss(&server),
                Action::Start | Action::Restart => self.start(&mut state, &server),
            }
        }
        drop(state);
        self.changes.send_replace(());
    }

    fn start(self: &Arc<Self>, state: &mut State<C>, server: &Arc<str>) {
        let Some(Wanted { key, launch }) = state.wanted.get(server) else { return };
        let (key, launch) = (*key, Arc::clone(launch));
        let exits = state
            .slots
            .get(server)
            .filter(|slot| slot.key == key && matches!(slot.phase, Phase::Exited { .. }))
            .map_or(0, |slot| slot.exits);
        state.dismiss(server);
        let before = state.leaving.remove(server);
        let number = state.next_number;
        state.next_number += 1;
        let (stop, stopped) = oneshot::channel();
        let mut slot = Slot { number, key, phase: Phase::Starting, exits, _stop: stop, task: None };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => {
                let mark =
                    Mark { shared: Arc::clone(self), server: Arc::clone(server), number, is_settled: false };
                slot.task = Some(runtime.spawn(mark.run(launch, stopped, before)));
            }
            Err(_) => {
                let error = Arc::new(C::not_begun(NotBegun::NoRuntime));
                slot.phase = Phase::Failed { error, was_reported: false };
            }
        }
        state.slots.insert(Arc::clone(server), slot);
    }
}

/// A task's hold on its slot. A task that ends without a word (a panic, a runtime that goes down) leaves a failed start
/// or an exit behind, so that nobody waits for ever.
struct Mark<C: Connect> {
    shared: Arc<Shared<C>>,
    server: Arc<str>,
    number: u64,
    is_settled: bool,
}

impl<C: Connect> Mark<C> {
    async fn run(
        mut self,
        launch: Arc<C::Launch>,
        mut stopped: oneshot::Receiver<()>,
        before: Option<JoinHandle<()>>,
    ) {
        if let Some(before) = before {
            // A task that panicked has dropped its connection, which ends the server.
            let _ = before.await;
        }
        let connected = tokio::select! {
            biased;
            _ = &mut stopped => None,
            connected = self.connect(launch) => Some(connected),
        };
        match connected {
            None => self.settled(),
            Some(Err(error)) => self.failed(error),
            Some(Ok(link)) => self.watch(link, stopped).await,
        }
    }

    async fn connect(&self, launch: Arc<C::Launch>) -> Result<C::Link, C::Error> {
        // The semaphore is never closed.
        let _permit = self.shared.starts.acquire().await.ok();
        self.shared.tell(ManagerEvent::Starting { server: Arc::clone(&self.server) });
        Arc::clone(&self.shared.connect).connect(Arc::clone(&self.server), launch).await
    }

    async fn watch(&mut self, link: C::Link, mut stopped: oneshot::Receiver<()>) {
        let since = self.shared.clock.now();
        if self.change(|slot| slot.phase = Phase::Running { link: link.clone(), since }) {
            self.shared.tell(ManagerEvent::Ready { server: Arc::clone(&self.server) });
        }
        let ended = tokio::select! {
            biased;
            _ = &mut stopped => None,
            reason = link.ended() => Some(reason),
        };
        match ended {
            Some(reason) => {
                self.exited(reason.into(), since);
                // What it left behind.
                link.close().await;
            }
            None => {
                link.close().await;
                self.settled();
                self.shared.tell(ManagerEvent::Stopped { server: Arc::clone(&self.server) });
            }
        }
    }

    fn failed(&mut self, error: C::Error) {
        let reason: Arc<str> = C::describe(&error).into();
        let error = Arc::new(error);
        if self.change(|slot| slot.phase = Phase::Failed { error, was_reported: false }) {
            self.shared.tell(ManagerEvent::Failed { server: Arc::clone(&self.server), reason });
        }
        self.settled();
    }

    fn exited(&mut self, reason: Arc<str>, since: Duration) {
        let at = self.shared.clock.now();
        let is_ours = self.change(|slot| {
            slot.exits = self.shared.backoff.count(slot.exits, at.saturating_sub(since));
            slot.phase = Phase::Exited { reason: Arc::clone(&reason), at };
        });
        if is_ours {
            self.shared.tell(ManagerEvent::Exited { server: Arc::clone(&self.server), reason });
        }
        self.settled();
    }

    const fn settled(&mut self) {
        self.is_settled = true;
    }

    /// Changes the slot if it is still this task's.
    fn change(&self, change: impl FnOnce(&mut Slot<C>)) -> bool {
        let mut state = self.shared.lock();
        let slot = state.slots.get_mut(&self.server).filter(|slot| slot.number == self.number);
        let is_ours = slot.is_some();
        if let Some(slot) = slot {
            change(slot);
        }
        drop(state);
        self.shared.changes.send_replace(());
        is_ours
    }
}

impl<C: Connect> Drop for Mark<C> {
    fn drop(&mut self) {
        if self.is_settled {
            return;
        }
        let since = self.shared.lock().slots.get(&self.server).and_then(|slot| match slot.phase {
            Phase::Running { since, .. } if slot.number == self.number => Some(since),
            _ => None,
        });
        match since {
            Some(since) => self.exited("its task was given up".into(), since),
            None => self.failed(C::not_begun(NotBegun::Abandoned)),
        }
    }
}

#[cfg(test)]
mod tests;
