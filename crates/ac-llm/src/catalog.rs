//! What is known of models: enough to list them, to warn of a full context, and to say what a run cost.
//!
//! The list holds models whose facts their providers publish; a model that is not in it works all the same. A host adds its own.

use ac_core::ModelId;

use crate::mode::ToolCallMode;

/// One model.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ModelInfo {
    /// `provider/name`.
    pub id: ModelId,
    /// Tokens that it reads and writes together.
    pub context_window: Option<u32>,
    /// Tokens that it writes at most.
    pub max_output: Option<u32>,
    /// What it can do.
    pub capabilities: ModelCapabilities,
    /// What it costs.
    pub price: Option<Price>,
    /// How it asks for tools, where that differs from its provider.
    pub tool_calls: Option<ToolCallMode>,
    /// Whether it can be asked right now.
    pub auth: AuthStatus,
}

/// What a model can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelCapabilities {
    /// Asks for tools in the provider's own form.
    pub tools: bool,
    /// Reads pictures.
    pub images: bool,
    /// Thinks before it answers.
    pub reasoning: bool,
}

/// US dollars for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Price {
    /// Read.
    pub input: f64,
    /// Written.
    pub output: f64,
    /// Read from a cache, where that is cheaper.
    pub cached_input: Option<f64>,
}

/// Whether there is a key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuthStatus {
    /// There is one.
    Ready,
    /// None is needed.
    NotNeeded,
    /// There is none; the first of these variables is the usual place for one.
    MissingKey {
        /// The variables that were looked at.
        vars: Vec<String>,
    },
}

impl ModelInfo {
    /// A model of which nothing is known but that it exists.
    pub fn new(id: impl Into<ModelId>) -> Self {
        Self {
            id: id.into(),
            context_window: None,
            max_output: None,
            capabilities: ModelCapabilities::default(),
            price: None,
            tool_calls: None,
            auth: AuthStatus::NotNeeded,
        }
    }

    /// The provider's part of the id.
    pub fn provider(&self) -> &str {
        self.id.as_str().split_once('/').map_or(self.id.as_str(), |(provider, _)| provider)
    }
}

impl Price {
    /// What these tokens cost, in US dollars.
    pub fn cost(&self, usage: &ac_core::Usage) -> f64 {
        let cached = usage.cached_input.unwrap_or(0).min(usage.input);
        let fresh = usage.input.saturating_sub(cached);
        let cached_price = self.cached_input.unwrap_or(self.input);
        #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
        let sum = fresh as f64 * self.input + cached as f64 * cached_price + usage.output as f64 * self.output;
        sum / 1e6
    }
}

/// `id, context, output, input price, cached price, output price, images, reasoning`.
type Row = (&'static str, u32, u32, f64, f64, f64, bool, bool);

/// Published list prices for the shortest context tier.
const KNOWN: &[Row] = &[
    ("openai/gpt-5", 400_000, 128_000, 1.25, 0.125, 10.0, true, true),
    ("openai/gpt-5-mini", 400_000, 128_000, 0.25, 0.025, 2.0, true, true),
    ("openai/gpt-5-nano", 400_000, 128_000, 0.05, 0.005, 0.4, true, true),
    ("openai/gpt-4.1", 1_047_576, 32_768, 2.0, 0.5, 8.0, true, false),
    ("openai/gpt-4.1-mini", 1_047_576, 32_768, 0.4, 0.1, 1.6, true, false),
    ("openai/gpt-4o", 128_000, 16_384, 2.5, 1.25, 10.0, true, false),
    ("openai/gpt-4o-mini", 128_000, 16_384, 0.15, 0.075, 0.6, true, false),
    ("openai/o3", 200_000, 100_000, 2.0, 0.5, 8.0, true, true),
    ("openai/o4-mini", 200_000, 100_000, 1.1, 0.275, 4.4, true, true),
    ("anthropic/claude-opus-4-5", 200_000, 64_000, 5.0, 0.5, 25.0, true, true),
    ("anthropic/claude-opus-4-1", 200_000, 32_000, 15.0, 1.5, 75.0, true, true),
    ("anthropic/claude-sonnet-4-5", 200_000, 64_000, 3.0, 0.3, 15.0, true, true),
    ("anthropic/claude-haiku-4-5", 200_000, 64_000, 1.0, 0.1, 5.0, true, true),
    ("google/gemini-2.5-pro", 1_048_576, 65_536, 1.25, 0.125, 10.0, true, true),
    ("google/gemini-2.5-flash", 1_048_576, 65_536, 0.3, 0.03, 2.5, true, true),
    ("google/gemini-2.5-flash-lite", 1_048_576, 65_536, 0.1, 0.01, 0.4, true, true),
    ("deepseek/deepseek-chat", 128_000, 8_192, 0.28, 0.028, 0.42, false, false),
    ("deepseek/deepseek-reasoner", 128_000, 65_536, 0.28, 0.028, 0.42, false, true),
    ("xai/grok-4", 256_000, 64_000, 3.0, 0.75, 15.0, true, true),
    ("xai/grok-code-fast-1", 256_000, 64_000, 0.2, 0.02, 1.5, false, true),
];

/// The models of [`KNOWN`], with an auth status that says nothing yet.
pub(crate) fn known() -> impl Iterator<Item = ModelInfo> {
    KNOWN.iter().map(|&(id, context, output, input, cached, written, images, reasoning)| ModelInfo {
        context_window: Some(context),
        max_output: Some(output),
        capabilities: ModelCapabilities { tools: true, images, reasoning },
        price: Some(Price { input, output: written, cached_input: Some(cached) }),
        ..ModelInfo::new(id)
    })
}
