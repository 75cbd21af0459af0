//! A contract at work: what is used is charged to it and to all contracts above, before anything more is started.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::agent::contract::{Contract, Exhausted};

/// A contract at work, and the one above.
#[derive(Debug)]
pub(crate) struct Live {
    contract: Mutex<Contract>,
    above: Option<Arc<Self>>,
}

impl Live {
    pub(crate) fn new(contract: Contract, above: Option<Arc<Self>>) -> Self {
        Self { contract: Mutex::new(contract), above }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Contract> {
        self.contract.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn contract(&self) -> Contract {
        self.lock().clone()
    }

    fn line(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |live| live.above.as_deref())
    }

    pub(crate) fn charge_tokens(&self, tokens: u64) {
        for live in self.line() {
            let used = &mut live.lock().used.tokens;
            *used = used.saturating_add(tokens);
        }
    }

    /// Charges work. Only to this contract: the agent above waits meanwhile, and is charged for its call as a whole.
    pub(crate) fn charge_time(&self, time: Duration) {
        let used = &mut self.lock().used.millis;
        *used = used.saturating_add(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    }

    /// Takes one command, if this contract and all above have one left.
    pub(crate) fn take_command(&self) -> Result<(), Exhausted> {
        let mut held: Vec<MutexGuard<'_, Contract>> = self.line().map(Self::lock).collect();
        if let Some(exhausted) = held.iter().find_map(|contract| contract.commands_exhausted()) {
            return Err(exhausted);
        }
        for contract in &mut held {
            contract.used.bash_calls += 1;
        }
        Ok(())
    }

    /// The first limit of this contract or one above beyond which nothing goes on.
    pub(crate) fn work_exhausted(&self) -> Option<Exhausted> {
        self.line().find_map(|live| live.lock().work_exhausted())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(tokens: u64, commands: u64, above: Option<Arc<Live>>) -> Arc<Live> {
        let mut contract = Contract::new("c", "s", "t").unwrap();
        contract.constraints.max_tokens = Some(tokens);
        contract.constraints.max_bash_calls = Some(commands);
        Arc::new(Live::new(contract, above))
    }

    #[test]
    fn what_an_agent_uses_is_used_up_for_all_above_it() {
        let top = live(100, 2, None);
        let middle = live(80, 2, Some(Arc::clone(&top)));
        let below = live(50, 9, Some(Arc::clone(&middle)));
        below.charge_tokens(49);
        assert!(below.work_exhausted().is_none());
        middle.charge_tokens(31);
        assert_eq!(
            below.work_exhausted(),
            Some(Exhausted::Tokens { used: 80, max: 80 }),
            "its parent has none left"
        );
        assert_eq!((top.contract().used.tokens, middle.contract().used.tokens), (80, 80));
        assert!(top.work_exhausted().is_none());

        assert!(below.take_command().is_ok() && middle.take_command().is_ok());
        assert_eq!(below.take_command(), Err(Exhausted::BashCalls { used: 2, max: 2 }));
        assert_eq!(
            (below.contract().used.bash_calls, top.contract().used.bash_calls),
            (1, 2),
            "a refusal costs nothing"
        );
        below.charge_time(Duration::from_secs(1));
        assert_eq!((below.contract().used.millis, top.contract().used.millis), (1000, 0));
    }
}
