//! Providers that need no set-up but a key.

use http::{HeaderName, HeaderValue};

use super::{Api, Auth, ChatQuirks, Profile};

/// Every one of them.
pub fn all() -> Vec<Profile> {
    vec![
        openai(),
        anthropic(),
        google(),
        openrouter(),
        groq(),
        mistral(),
        deepseek(),
        xai(),
        together(),
        cerebras(),
        ollama(),
        lmstudio(),
        vllm(),
        llamacpp(),
        openai_chat(),
        ollama_native(),
    ]
}

fn chat(name: &str, base_url: &str, quirks: ChatQuirks) -> Profile {
    Profile { chat: quirks, ..Profile::new(name, Api::OpenAiChat, base_url) }
}

/// OpenAI over Responses.
pub fn openai() -> Profile {
    Profile::new("openai", Api::OpenAiResponses, "https://api.openai.com/v1").key_from(["OPENAI_API_KEY"])
}

/// OpenAI over Chat Completions.
pub fn openai_chat() -> Profile {
    let quirks = ChatQuirks { max_tokens: "max_completion_tokens", ..ChatQuirks::default() };
    chat("openai-chat", "https://api.openai.com/v1", quirks).key_from(["OPENAI_API_KEY"])
}

/// Anthropic.
pub fn anthropic() -> Profile {
    let mut profile = Profile::new("anthropic", Api::Anthropic, "https://api.anthropic.com/v1")
        .key_from(["ANTHROPIC_API_KEY"])
        .header(HeaderName::from_static("anthropic-version"), HeaderValue::from_static("2023-06-01"));
    profile.auth = Auth::Header(HeaderName::from_static("x-api-key"));
    profile
}

/// Google Gemini.
pub fn google() -> Profile {
    let base = "https://generativelanguage.googleapis.com/v1beta";
    let mut profile =
        Profile::new("google", Api::Gemini, base).key_from(["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"]);
    profile.auth = Auth::Header(HeaderName::from_static("x-goog-api-key"));
    profile
}

/// OpenRouter: `openrouter/MAKER/MODEL`. Claude behind it is read from a cache where the request is marked.
pub fn openrouter() -> Profile {
    let mut profile = chat("openrouter", "https://openrouter.ai/api/v1", ChatQuirks::default()).key_from(["OPENROUTER_API_KEY"]);
    profile.cache_marks = true;
    profile
}

/// Groq.
pub fn groq() -> Profile {
    let quirks = ChatQuirks { max_tokens: "max_completion_tokens", ..ChatQuirks::default() };
    chat("groq", "https://api.groq.com/openai/v1", quirks).key_from(["GROQ_API_KEY"])
}

/// Mistral.
pub fn mistral() -> Profile {
    let quirks = ChatQuirks { usage_option: false, short_call_ids: true, ..ChatQuirks::default() };
    chat("mistral", "https://api.mistral.ai/v1", quirks).key_from(["MISTRAL_API_KEY"])
}

/// DeepSeek. Within a tool loop it wants its thinking back.
pub fn deepseek() -> Profile {
    let quirks = ChatQuirks { replay_reasoning: true, ..ChatQuirks::default() };
    chat("deepseek", "https://api.deepseek.com", quirks).key_from(["DEEPSEEK_API_KEY"])
}

/// xAI.
pub fn xai() -> Profile {
    let quirks = ChatQuirks { max_tokens: "max_completion_tokens", ..ChatQuirks::default() };
    chat("xai", "https://api.x.ai/v1", quirks).key_from(["XAI_API_KEY"])
}

/// Together.
pub fn together() -> Profile {
    chat("together", "https://api.together.xyz/v1", ChatQuirks::default()).key_from(["TOGETHER_API_KEY"])
}

/// Cerebras.
pub fn cerebras() -> Profile {
    let quirks = ChatQuirks { max_tokens: "max_completion_tokens", ..ChatQuirks::default() };
    chat("cerebras", "https://api.cerebras.ai/v1", quirks).key_from(["CEREBRAS_API_KEY"])
}

/// Azure OpenAI at its endpoint (`https://RESOURCE.openai.azure.com`), over the version-free path. The model's name is the deployment's.
pub fn azure(endpoint: &str) -> Profile {
    let base = format!("{}/openai/v1", endpoint.trim_end_matches('/'));
    let quirks = ChatQuirks { max_tokens: "max_completion_tokens", ..ChatQuirks::default() };
    let mut profile = chat("azure", &base, quirks).key_from(["AZURE_OPENAI_API_KEY", "AZURE_API_KEY"]);
    profile.auth = Auth::Header(HeaderName::from_static("api-key"));
    profile
}

/// Ollama on this machine.
pub fn ollama() -> Profile {
    chat("ollama", "http://127.0.0.1:11434/v1", ChatQuirks::default()).with_local_models()
}

/// Ollama on this machine, over its own protocol.
pub fn ollama_native() -> Profile {
    Profile::new("ollama-native", Api::Ollama, "http://127.0.0.1:11434").with_local_models()
}

/// LM Studio on this machine.
pub fn lmstudio() -> Profile {
    chat("lmstudio", "http://127.0.0.1:1234/v1", ChatQuirks::default()).with_local_models()
}

/// vLLM on this machine.
pub fn vllm() -> Profile {
    chat("vllm", "http://127.0.0.1:8000/v1", ChatQuirks::default()).with_local_models()
}

/// llama.cpp's server on this machine.
pub fn llamacpp() -> Profile {
    chat("llamacpp", "http://127.0.0.1:8080/v1", ChatQuirks { replay_reasoning: true, ..ChatQuirks::default() }).with_local_models()
}
