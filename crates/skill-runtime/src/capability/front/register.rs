//! What a proposal of a new node has to say.

use serde_json::{Value, json};

use crate::capability::node::CapabilityNode;
use crate::metadata::{Tier, Word as _};
use crate::reply::Arguments;

/// The node of `propose_register`, checked in the order of the format.
pub(super) fn new_node(arguments: Arguments<'_>) -> Result<CapabilityNode, String> {
    let spec = arguments.get("nodeSpec").ok_or("`nodeSpec` is required")?;
    let fields = Arguments::of(spec).ok_or("`nodeSpec` has to be an object")?;
    let within = |dimension: &'static str| -> Result<Arguments<'_>, String> {
        let value = fields.get(dimension).ok_or_else(|| format!("`nodeSpec.{dimension}` is required"))?;
        Arguments::of(value).ok_or_else(|| format!("`nodeSpec.{dimension}` has to be an object"))
    };
    let needs = |dimension: &'static str, field: &str, advice: &str| -> Result<String, String> {
        let value = within(dimension)?.text(field)?.map(str::to_owned);
        value.ok_or_else(|| format!("`nodeSpec.{dimension}.{field}` is required{advice}"))
    };
    let name = fields.text("name")?.ok_or("`nodeSpec.name` is required")?;
    let parent = fields.text("parent")?.ok_or("`nodeSpec.parent` is required")?;
    within("runtime")?;
    needs("runtime", "owner", "")?;
    needs("runtime", "enabledWhen", "; use `deny` until somebody decides otherwise")?;
    needs("prompt", "summary", "")?;
    let tier = needs("routing", "minTier", "")?;
    Tier::from_word(&tier)
        .ok_or_else(|| format!("`nodeSpec.routing.minTier` is none of {}", Tier::WORDS.join(", ")))?;
    needs("perms", "minSecurityLevel", "")?;
    let mut object = spec.as_object().cloned().unwrap_or_default();
    object.insert("id".to_owned(), format!("{parent}/{name}").into());
    object.remove("children");
    object.entry("skills").or_insert_with(|| json!({"bindable": false}));
    serde_json::from_value(Value::Object(object)).map_err(|error| format!("`nodeSpec` does not fit: {error}"))
}
