//! A set of tools by exposed name.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use ac_core::{Tool, ToolDefinition};

/// Tools by exposed name, in the order in which they were added. Definitions are asked once, when a tool is added.
#[derive(Clone, Default)]
pub struct ToolSet {
    tools: Vec<(ToolDefinition, Arc<dyn Tool>)>,
    index: HashMap<String, usize>,
    /// The last choice: a set is asked for the same one again and again.
    chosen: Arc<Mutex<Option<Choice>>>,
}

/// The names that were asked for, and their definitions.
type Choice = (Vec<Arc<str>>, Arc<[ToolDefinition]>);

/// Two tools of one name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("two tools are called `{name}`; give one of them another name")]
pub struct DuplicateTool {
    /// The name.
    pub name: String,
}

impl ToolSet {
    /// No tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool.
    ///
    /// # Errors
    /// When the name is taken.
    pub fn add(&mut self, tool: Arc<dyn Tool>) -> Result<(), DuplicateTool> {
        let definition = tool.definition();
        let at = self.tools.len();
        if self.index.contains_key(&definition.name) {
            return Err(DuplicateTool { name: definition.name });
        }
        self.index.insert(definition.name.clone(), at);
        // Not emptied: a clone that this tool is not added to may share it.
        self.chosen = Arc::default();
        self.tools.push((definition, tool));
        Ok(())
    }

    /// Adds several tools.
    ///
    /// # Errors
    /// When a name is taken; the tools before it were added.
    pub fn extend(&mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Result<(), DuplicateTool> {
        tools.into_iter().try_for_each(|tool| self.add(tool))
    }

    /// The tool of this name.
    pub fn get(&self, name: &str) -> Option<(&ToolDefinition, &Arc<dyn Tool>)> {
        let (definition, tool) = self.tools.get(*self.index.get(name)?)?;
        Some((definition, tool))
    }

    /// The definitions of these tools, as far as they are there, in the order of the names. Asked for the same names again it copies
    /// nothing.
    pub fn choose(&self, names: &[Arc<str>]) -> Arc<[ToolDefinition]> {
        let mut chosen = self.chosen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, definitions)) = chosen.as_ref().filter(|(known, _)| known == names) {
            return definitions.clone();
        }
        let definitions: Arc<[_]> = names.iter().filter_map(|name| self.get(name)).map(|(definition, _)| definition.clone()).collect();
        *chosen = Some((names.to_vec(), definitions.clone()));
        definitions
    }

    /// All definitions, in order.
    pub fn definitions(&self) -> impl Iterator<Item = &ToolDefinition> {
        self.tools.iter().map(|(definition, _)| definition)
    }

    /// All tools, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&ToolDefinition, &Arc<dyn Tool>)> {
        self.tools.iter().map(|(definition, tool)| (definition, tool))
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }
}

impl std::fmt::Debug for ToolSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.definitions().map(|definition| &definition.name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AskUser, SubmitPlan};

    fn names(of: &[ToolDefinition]) -> Vec<&str> {
        of.iter().map(|definition| definition.name.as_str()).collect()
    }

    #[test]
    fn a_choice_is_made_once_and_again_when_the_names_or_the_tools_are_others() {
        let mut set = ToolSet::new();
        set.add(Arc::new(AskUser)).unwrap();
        let before = set.clone();
        let both: Vec<Arc<str>> = vec!["submit_plan".into(), "ask_user".into()];
        let first = set.choose(&both);
        assert_eq!(names(&first), ["ask_user"], "one is not there");
        assert!(Arc::ptr_eq(&first, &set.choose(&both)), "nothing is copied");
        assert_eq!(names(&set.choose(&[])), [""; 0]);

        set.add(Arc::new(SubmitPlan)).unwrap();
        assert_eq!(names(&set.choose(&both)), ["submit_plan", "ask_user"], "in the order of the names");
        assert_eq!(names(&before.choose(&both)), ["ask_user"], "a clone has its own tools");
    }
}
