//! A tool of one's own, as a typed function.

use std::sync::Arc;

use agent_controller::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Converts a temperature.
#[derive(Deserialize, JsonSchema)]
struct Convert {
    /// In degrees of the other scale.
    degrees: f64,
    /// The scale to convert to.
    to: Scale,
}

#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Scale {
    Celsius,
    Fahrenheit,
}

#[derive(Serialize)]
struct Converted {
    degrees: f64,
    scale: Scale,
}

pub fn convert() -> Arc<dyn Tool> {
    TypedTool::new("convert", |Convert { degrees, to }, _cx| async move {
        let degrees = match to {
            Scale::Celsius => (degrees - 32.0) / 1.8,
            Scale::Fahrenheit => degrees * 1.8 + 32.0,
        };
        if degrees.is_finite() { Ok(Converted { degrees, scale: to }) } else { Err(ToolError::failed("that is too hot")) }
    })
    .category(ToolCategory::Read)
    .effect(ToolEffect::ReadOnly)
    .build()
}
