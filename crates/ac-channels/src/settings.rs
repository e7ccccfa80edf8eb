//! How one platform of a controller behaves.

/// How one platform of a controller behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChannelSettings {
    /// Answers grow before the reader's eyes, where the platform can change messages. On, unless set.
    pub streaming: bool,
    /// What people see of tool calls.
    pub tools: ToolDisplay,
    /// What happens to calls that need an approval, where the platform has no buttons.
    pub without_buttons: WithoutButtons,
    /// How many earlier messages the first mention brings along. Ten, unless set.
    pub context: usize,
    /// Media types that are handed to the model as files; text always is. Others are described in words (SPEC N-8).
    pub inline_files: Vec<String>,
    /// The largest file that is fetched, in bytes. 10 MiB, unless set.
    pub max_file: usize,
}

impl Default for ChannelSettings {
    fn default() -> Self {
        let inline = ["image/png", "image/jpeg", "image/webp", "application/pdf"];
        Self {
            streaming: true,
            tools: ToolDisplay::default(),
            without_buttons: WithoutButtons::default(),
            context: 10,
            inline_files: inline.map(str::to_owned).to_vec(),
            max_file: 10 * 1024 * 1024,
        }
    }
}

impl ChannelSettings {
    /// What holds unless something else is set.
    pub fn new() -> Self {
        Self::default()
    }

    /// See [`streaming`](Self::streaming).
    #[must_use]
    pub fn streaming(mut self, on: bool) -> Self {
        self.streaming = on;
        self
    }

    /// See [`tools`](Self::tools).
    #[must_use]
    pub fn tools(mut self, tools: ToolDisplay) -> Self {
        self.tools = tools;
        self
    }

    /// See [`without_buttons`](Self::without_buttons).
    #[must_use]
    pub fn without_buttons(mut self, what: WithoutButtons) -> Self {
        self.without_buttons = what;
        self
    }
}

/// What people see of tool calls. What needs an answer is always shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ToolDisplay {
    /// A message for each call, changed when it is done.
    Cards,
    /// A line for each call, in the text.
    Text,
    /// One line for all calls of a step.
    #[default]
    Grouped,
    /// Nothing.
    Hidden,
}

/// What happens to calls that need an approval, where the platform cannot show one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WithoutButtons {
    /// The conversation's own runs do not ask, so that they do not hang (SPEC N-15). `deny` rules and the mode's allow-list hold; runs that
    /// were started elsewhere ask there.
    #[default]
    RunWithoutAsking,
    /// The call waits, and the conversation is told where it can be answered.
    Park {
        /// Where: an address, a command.
        answer_at: String,
    },
    /// The call is declined.
    Decline,
}
