//! Which tools an agent gets, and which it does not get although it would inherit them.

use std::collections::BTreeMap;
use std::sync::Arc;

use haversack_agent_core::tool_context::Tool;

use crate::agent::decay::tools_for;
use crate::agent::live::Live;
use crate::agent::task::AgentTool;

/// The tools of one agent, and those that it does not get although it would inherit them.
pub(super) struct Tools {
    pub(super) given: BTreeMap<String, Arc<dyn Tool>>,
    pub(super) withheld: BTreeMap<String, &'static str>,
}

impl AgentTool {
    pub(super) fn tools_of(&self, live: &Arc<Live>) -> Tools {
        let contract = live.contract();
        let names = tools_for(&self.skill.config, self.parent_tools.iter().map(String::as_str));
        let whitelist: Arc<[String]> = names.into();
        let mut tools = Tools { given: BTreeMap::new(), withheld: BTreeMap::new() };
        for tool in &self.shared.tools {
            let name = tool.spec().name.to_string();
            if !whitelist.contains(&name) {
                continue;
            }
            let facts = self.shared.facts(&name);
            let agent = tool.spec().origin.starts_with("agent:");
            let why = if contract.constraints.no_network && !facts.offline {
                Some("the contract allows no network, and the host does not say that the tool needs none")
            } else if contract.constraints.sandbox_required && !facts.sandboxed {
                Some("the contract requires a sandbox, and the host does not say that the tool runs in one")
            } else if agent && (contract.constraints.no_spawn || !contract.may_dispatch_to(&name)) {
                Some("the contract does not allow starting it")
            } else {
                None
            };
            match why {
                Some(why) => drop(tools.withheld.insert(name, why)),
                None => drop(tools.given.insert(name, Arc::clone(tool))),
            }
        }
        for skill in &self.shared.skills {
            let name = &skill.tool_name;
            if !whitelist.contains(name) {
                continue;
            }
            if contract.may_dispatch_to(&skill.name) {
                let below = Self::new(&self.shared, skill, Some(Arc::clone(live)), Arc::clone(&whitelist));
                tools.given.insert(name.clone(), Arc::new(below));
            } else {
                tools.withheld.insert(name.clone(), "the contract does not allow starting it");
            }
        }
        tools
    }
}
