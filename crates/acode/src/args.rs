//! What can be typed after `acode`.

use std::{ffi::OsString, net::SocketAddr, path::PathBuf};

use agent_controller::llm::ToolCallMode;
use clap::{Args, Parser, Subcommand, ValueEnum};

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "acode",
    version,
    about = "An agent for the terminal that plans, asks, and builds",
    long_about = "An agent for the terminal that plans, asks, and builds.\n\n\
        Without a command it chats about the current folder. It looks around, asks, and writes a plan; once you approve the plan it \
        builds, and asks before it changes a file or runs a command. Whatever it waits for is stored: after a crash, or tomorrow, \
        `acode --continue` asks the same question again.",
    after_help = "Examples:\n  \
        acode                                     chat about this folder\n  \
        acode exec 'write a changelog'            run one task; stops with 2 when it needs you\n  \
        acode pending                             what waits for you, over all conversations\n  \
        acode answer call_1 'A note'              answer a question, by label, number or text\n  \
        acode plan call_2 reject --feedback 'shorter'\n  \
        acode --base-url http://127.0.0.1:11434/v1 --model qwen3\n\n\
        Exit codes: 0 complete, 1 failed, 2 waiting for a person, 64 wrong usage, 130 aborted by Ctrl-C.\n\
        NO_COLOR turns colours off; AC_NO_PROBE=1 does not look for local model servers; AC_API_KEY is the key for --base-url;\n\
        AC_LOG=info makes acode serve say more on standard error.",
    disable_help_subcommand = true,
    max_term_width = 110
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) options: Options,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// What goes with every command.
#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// Go on with the newest conversation (chat and exec)
    #[arg(long = "continue", global = true, conflicts_with = "thread")]
    pub(crate) resume: bool,

    /// Go on with this conversation (chat and exec)
    #[arg(long, global = true, value_name = "ID")]
    pub(crate) thread: Option<String>,

    /// Who decides when a tool asks, and on plans
    #[arg(long, global = true, value_enum, default_value_t = Approve::Ask)]
    pub(crate) approve: Approve,

    /// Print one event a line as JSON; `--json=all` adds the view after each
    #[arg(long, global = true, value_name = "WHICH", num_args = 0..=1, require_equals = true, default_missing_value = "events", hide_possible_values = true)]
    pub(crate) json: Option<Json>,

    /// The model, as PROVIDER/NAME
    #[arg(long, global = true, value_name = "PROVIDER/NAME")]
    pub(crate) model: Option<String>,

    /// An OpenAI-compatible server; requests go to URL/chat/completions
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) base_url: Option<String>,

    /// How models ask for tools: in their provider's form, as JSON that a schema constrains (small local models), or also as text
    #[arg(long, global = true, value_name = "native|json-action|text-repair")]
    pub(crate) tool_calls: Option<ToolCallMode>,

    /// Run calls like this without asking in this conversation: 'execute_command(git status*)', 'write_file(src/**)'; may be repeated
    #[arg(long, global = true, value_name = "PATTERN")]
    pub(crate) allow: Vec<String>,

    /// Ask before calls like this in this conversation, whatever else allows them
    #[arg(long, global = true, value_name = "PATTERN")]
    pub(crate) ask: Vec<String>,

    /// Never run calls like this in this conversation; beats everything that allows
    #[arg(long, global = true, value_name = "PATTERN")]
    pub(crate) deny: Vec<String>,

    /// Let commands use the network
    #[arg(long, global = true)]
    pub(crate) allow_network: bool,

    /// Let file tools and commands change this folder too; may be repeated
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) writable: Vec<PathBuf>,

    /// Where conversations are kept, instead of a folder per project under your data directory
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
}

/// Who decides when a tool asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Approve {
    /// You do: at the prompt, or later with `acode approve`
    Ask,
    /// As `ask`, but files may be changed
    Edits,
    /// Everything that no rule denies runs, and plans are approved
    All,
    /// Whatever would ask is declined, and plans are rejected
    None,
}

/// Which events are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Json {
    /// All but the view
    Events,
    /// With the view
    All,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run one task without a terminal; ends with 2 as soon as only you can move it
    Exec {
        /// What to do; may be left out when an interrupted conversation is only to go on
        #[arg(value_name = "TASK")]
        task: Option<String>,
    },
    /// List stored conversations, newest first
    Threads,
    /// List what waits for you, over all conversations
    Pending,
    /// Answer a question and go on
    Answer {
        /// The call, as `acode pending` shows it
        id: String,
        /// An option's label or number, or free text where that is allowed; several for a multiple choice. After `--`, also what begins
        /// with a dash
        #[arg(required = true, allow_negative_numbers = true)]
        value: Vec<String>,
    },
    /// Allow a call and go on; for a call in doubt: run it again
    Approve {
        /// The call, as `acode pending` shows it
        id: String,
        /// And do not ask again for this tool in this conversation
        #[arg(long)]
        always: bool,
    },
    /// Refuse a call and go on; for a call in doubt: record it as failed
    Decline {
        /// The call, as `acode pending` shows it
        id: String,
        /// What the model is told
        #[arg(long, allow_hyphen_values = true)]
        reason: Option<String>,
    },
    /// Decide on a plan and go on
    Plan {
        /// The call, as `acode pending` shows it
        id: String,
        /// What you decide
        #[arg(value_enum)]
        decision: PlanDecision,
        /// What should be different; the plan is then revised and submitted again
        #[arg(long, allow_hyphen_values = true)]
        feedback: Option<String>,
    },
    /// List what was allowed for longer than once
    Grants {
        #[command(subcommand)]
        command: Option<GrantsCommand>,
    },
    /// List the rules for single calls, of the settings and of each conversation
    Rules {
        #[command(subcommand)]
        command: Option<RulesCommand>,
    },
    /// Serve this project over HTTP, for a front end
    Serve {
        /// Where to listen. Without --auth only an address of this machine for itself
        #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4111")]
        listen: SocketAddr,
        /// A file of tokens, a line each: PRINCIPAL SHA256-HEX and, if any, RIGHTS; `acode token add` writes such lines
        #[arg(long, value_name = "FILE")]
        auth: Option<PathBuf>,
    },
    /// Tokens for `acode serve --auth`
    Token {
        #[command(subcommand)]
        command: TokenCommand,
    },
    /// Look after the stored conversations; no other acode may have them open
    Store {
        #[command(subcommand)]
        command: StoreCommand,
    },
}

/// What to do with the store.
#[derive(Debug, Clone, Copy, Subcommand)]
pub(crate) enum StoreCommand {
    /// Read every row and compare it with those that belong to it; ends with 1 if something is wrong
    Check,
    /// Mend what other rows tell how to mend; no row that cannot be read is touched
    Repair {
        /// Open a damaged store with what is left of it. Copy the folder first
        #[arg(long)]
        accept_loss: bool,
    },
    /// Give the room of what was deleted back to the disk
    Compact,
    /// Move a store that cannot be opened out of the way; nothing is deleted
    SetAside,
}

/// What to do with tokens.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token and print it, once; only its digest is kept
    Add {
        /// Whose it is: one word
        name: String,
        /// The file of tokens, instead of `tokens` in the project's data folder
        #[arg(long, value_name = "FILE")]
        auth: Option<PathBuf>,
        /// `state`: may set what decides permissions; `all`: may use every resource
        #[arg(long, value_name = "RIGHT", value_delimiter = ',')]
        rights: Vec<String>,
    },
}

/// A decision on a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlanDecision {
    /// Build it
    Approve,
    /// Do not; with feedback it is revised
    Reject,
}

/// What to do with grants.
#[derive(Debug, Subcommand)]
pub(crate) enum GrantsCommand {
    /// Take one back
    Revoke {
        /// The grant, as `acode grants` shows it
        id: String,
    },
}

/// What to do with rules.
#[derive(Debug, Subcommand)]
pub(crate) enum RulesCommand {
    /// Take a rule of a conversation back
    Forget {
        /// The conversation, as `acode rules` shows it
        conversation: String,
        /// The rule, as `acode rules` shows it
        pattern: String,
    },
}

/// Whether a line that the parser did not take asks for JSON.
pub(crate) fn wants_json(words: impl IntoIterator<Item = OsString>) -> bool {
    let mut options = words.into_iter().skip(1).take_while(|word| word != "--");
    options.any(|word| word.to_str().is_some_and(|word| word == "--json" || word.starts_with("--json=")))
}

impl Cli {
    /// What the parser cannot see.
    ///
    /// # Errors
    /// What is wrong and what to type instead.
    pub(crate) fn check(&self) -> Result<(), String> {
        let talks = matches!(self.command, None | Some(Command::Exec { .. }));
        if !talks && (self.options.resume || self.options.thread.is_some()) {
            return Err("--continue and --thread go with the chat and with exec; other commands find the conversation by the ID".into());
        }
        let rules = [&self.options.allow, &self.options.ask, &self.options.deny];
        if !talks && rules.iter().any(|list| !list.is_empty()) {
            return Err("--allow, --ask and --deny go with the chat and with exec, and are kept with the conversation".into());
        }
        match &self.command {
            Some(Command::Exec { task: Some(task) }) if task.trim().is_empty() => {
                Err("the task is empty; say what to do: acode exec 'TASK'".into())
            }
            Some(Command::Exec { task: None }) if !self.options.resume && self.options.thread.is_none() => {
                Err("say what to do: acode exec 'TASK'; without a task exec needs --continue or --thread".into())
            }
            Some(Command::Plan { decision: PlanDecision::Approve, feedback: Some(_), .. }) => {
                Err("--feedback goes with reject; an approved plan is built as it stands".into())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
