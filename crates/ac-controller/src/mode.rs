use std::sync::Arc;

use ac_core::{ModeId, ModelId, Tool};

/// A named operating profile: instructions, tools, what of them is visible, a model, and where its approved plans lead.
///
/// What a mode says holds for a run from its start to its end; only an approved plan moves a run to another mode.
///
/// ```
/// use ac_controller::Mode;
///
/// let plan = Mode::new("plan")
///     .name("Plan")
///     .instructions("Look, ask, and hand in a plan. Change nothing.")
///     .model("openai/gpt-5")
///     .available_tools(["view", "find_files", "ask_user", "submit_plan"])
///     .transitions_to("build");
/// assert!(plan.offers("view") && !plan.offers("write_file"));
/// assert_eq!(plan.target().map(|mode| mode.as_str()), Some("build"));
/// ```
#[derive(Clone)]
pub struct Mode {
    pub(crate) id: ModeId,
    pub(crate) name: String,
    pub(crate) instructions: Option<Arc<str>>,
    pub(crate) model: Option<ModelId>,
    pub(crate) tools: Option<Vec<Arc<dyn Tool>>>,
    pub(crate) additional_tools: Option<Vec<Arc<dyn Tool>>>,
    pub(crate) available_tools: Option<Arc<[Arc<str>]>>,
    pub(crate) transitions_to: Option<ModeId>,
    pub(crate) default: bool,
}

impl Mode {
    /// A mode that offers everything and says nothing.
    pub fn new(id: impl Into<ModeId>) -> Self {
        let id = id.into();
        Self {
            name: id.to_string(),
            id,
            instructions: None,
            model: None,
            tools: None,
            additional_tools: None,
            available_tools: None,
            transitions_to: None,
            default: false,
        }
    }

    /// What people call it. The id, unless set.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Added after the agent's and the controller's instructions, on a line of its own.
    #[must_use]
    pub fn instructions(mut self, text: impl Into<Arc<str>>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// The model of the mode, until a person selects another one.
    #[must_use]
    pub fn model(mut self, model: impl Into<ModelId>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Tools of the mode, besides those of the agent and the controller (SPEC T-5). Not together with
    /// [`additional_tools`](Self::additional_tools), which means the same.
    #[must_use]
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.get_or_insert_default().extend(tools);
        self
    }

    /// Tools of the mode, besides those of the agent and the controller.
    #[must_use]
    pub fn additional_tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.additional_tools.get_or_insert_default().extend(tools);
        self
    }

    /// The names of the tools that may be seen and called in this mode; all others do not exist for it. An empty list leaves none.
    #[must_use]
    pub fn available_tools<N: Into<Arc<str>>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.available_tools = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// The mode that an approved plan of this mode moves to. The default mode, unless set.
    #[must_use]
    pub fn transitions_to(mut self, mode: impl Into<ModeId>) -> Self {
        self.transitions_to = Some(mode.into());
        self
    }

    /// New sessions begin in this mode. The first mode of the list, where none says so.
    #[must_use]
    pub fn default(mut self) -> Self {
        self.default = true;
        self
    }

    /// Its id.
    pub fn id(&self) -> &ModeId {
        &self.id
    }

    /// What people call it.
    pub fn display_name(&self) -> &str {
        &self.name
    }

    /// Its own instructions, without those of the agent and the controller.
    pub fn own_instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    /// Its own model.
    pub fn default_model(&self) -> Option<&ModelId> {
        self.model.as_ref()
    }

    /// Where its approved plans lead, if it says so itself.
    pub fn target(&self) -> Option<&ModeId> {
        self.transitions_to.as_ref()
    }

    /// Whether a tool of this name may be seen and called.
    pub fn offers(&self, tool: &str) -> bool {
        self.available_tools.as_ref().is_none_or(|names| names.iter().any(|name| name.as_ref() == tool))
    }

    pub(crate) fn own_tools(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.iter().chain(&self.additional_tools).flatten()
    }
}

impl std::fmt::Debug for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mode")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("model", &self.model)
            .field("available_tools", &self.available_tools)
            .field("transitions_to", &self.transitions_to)
            .field("default", &self.default)
            .finish_non_exhaustive()
    }
}
