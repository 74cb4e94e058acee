//! Turns a model's name, or its shape in figures, into the bytes that one token takes in its cache.
//!
//! Input: `llama-3-8b` or `layers=32,kv_heads=8,head_dim=128,element_bytes=2,context=8192`. Output:
//! a [`ModelGeometry`]. A plane is what one layer keeps of one kind, keys or values: two per layer.
//! Does not know how a store lays planes out or rounds them to granules.

use std::str::FromStr;

/// The shapes known by name, from each model's published `config.json`: `num_hidden_layers`,
/// `num_key_value_heads`, `hidden_size / num_attention_heads`, the bytes of `torch_dtype`,
/// `max_position_embeddings`.
const KNOWN: [(&str, [u64; 5]); 4] = [
    ("llama-3-8b", [32, 8, 128, 2, 8192]),
    ("llama-3-70b", [80, 8, 128, 2, 8192]),
    ("qwen2.5-0.5b", [24, 2, 64, 2, 32_768]),
    ("qwen2.5-14b", [48, 8, 128, 2, 32_768]),
];

/// The keys of a shape in figures, in the order of the figures above.
const KEYS: [&str; 5] = ["layers", "kv_heads", "head_dim", "element_bytes", "context"];

const EXAMPLE: &str = "layers=32,kv_heads=8,head_dim=128,element_bytes=2,context=8192";

/// A model's shape, as far as its cache depends on it.
///
/// # Invariants
/// 1. No figure is 0.
/// 2. `2 × layers × kv_heads × head_dim × element_bytes × context_window` does not overflow, nor
///    does any part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelGeometry {
    name: String,
    layers: u64,
    plane_bytes_per_token: u64,
    bytes_per_token: u64,
    context_window: u64,
}

/// A model that was named or described wrongly.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum GeometryError {
    #[error("model {0:?}: not known: wanted one of {known}, or its figures; name one of these, or give {EXAMPLE}", known = known_names())]
    UnknownName(String),
    #[error("model {model:?}: {part:?} is no figure: wanted key=number; write it as in {EXAMPLE}")]
    NoFigure { model: String, part: String },
    #[error("model {model:?}: key {key:?} is not known: wanted {keys}; write it as in {EXAMPLE}", keys = KEYS.join(", "))]
    UnknownKey { model: String, key: String },
    #[error("model {model:?}: key {key} comes twice: wanted it once; remove one")]
    TwiceAKey { model: String, key: &'static str },
    #[error("model {model:?}: key {key} is missing: wanted {keys}; add {key}=number", keys = KEYS.join(", "))]
    NoKey { model: String, key: &'static str },
    #[error("model {model:?}: {key} is {seen:?}: wanted a whole number, 1 or more; correct it")]
    Figure { model: String, key: &'static str, seen: String },
    #[error("model {model:?}: its full context overflows 64 bits of bytes; lower its figures")]
    TooLarge { model: String },
}

impl ModelGeometry {
    /// As it was asked for: a known name, or the figures.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Each has a plane for its keys and one for its values.
    pub(crate) fn layers(&self) -> u64 {
        self.layers
    }

    /// Bytes of one token in one plane of one layer: `kv_heads × head_dim × element_bytes`.
    pub(crate) fn plane_bytes_per_token(&self) -> u64 {
        self.plane_bytes_per_token
    }

    /// Bytes of one token in all planes.
    pub(crate) fn bytes_per_token(&self) -> u64 {
        self.bytes_per_token
    }

    /// The most tokens, prompt and output together, that the model takes.
    pub(crate) fn context_window(&self) -> u64 {
        self.context_window
    }

    fn new(name: &str, figures: [u64; 5]) -> Option<Self> {
        let [layers, kv_heads, head_dim, element_bytes, context_window] = figures;
        let plane_bytes_per_token = kv_heads.checked_mul(head_dim)?.checked_mul(element_bytes)?;
        let bytes_per_token = layers.checked_mul(2)?.checked_mul(plane_bytes_per_token)?;
        bytes_per_token.checked_mul(context_window)?;
        Some(Self { name: name.to_owned(), layers, plane_bytes_per_token, bytes_per_token, context_window })
    }
}

impl FromStr for ModelGeometry {
    type Err = GeometryError;

    fn from_str(text: &str) -> Result<Self, GeometryError> {
        let figures = if text.contains('=') { figures_of(text)? } else { figures_by_name(text)? };
        Self::new(text, figures).ok_or_else(|| GeometryError::TooLarge { model: text.to_owned() })
    }
}

fn known_names() -> String {
    KNOWN.map(|(name, _)| name).join(", ")
}

fn figures_by_name(name: &str) -> Result<[u64; 5], GeometryError> {
    let found = KNOWN.iter().find(|(known, _)| *known == name);
    found.map(|(_, figures)| *figures).ok_or_else(|| GeometryError::UnknownName(name.to_owned()))
}

fn figures_of(model: &str) -> Result<[u64; 5], GeometryError> {
    let mut figures = [None; 5];
    for part in model.split(',') {
        let (key, slot, value) = figure_of(model, part, &mut figures)?;
        if slot.replace(value).is_some() {
            return Err(GeometryError::TwiceAKey { model: model.to_owned(), key });
        }
    }
    let mut given = [0; 5];
    for ((key, figure), given) in KEYS.iter().zip(figures).zip(&mut given) {
        *given = figure.ok_or_else(|| GeometryError::NoKey { model: model.to_owned(), key })?;
    }
    Ok(given)
}

/// One part's key, the slot that belongs to it, and its value.
fn figure_of<'slots>(
    model: &str,
    part: &str,
    slots: &'slots mut [Option<u64>; 5],
) -> Result<(&'static str, &'slots mut Option<u64>, u64), GeometryError> {
    let model = || model.to_owned();
    let no_figure = || GeometryError::NoFigure { model: model(), part: part.to_owned() };
    let (key, value) = part.split_once('=').ok_or_else(no_figure)?;
    let (key, value) = (key.trim(), value.trim());
    let known = KEYS.into_iter().zip(slots).find(|(known, _)| *known == key);
    let (key, slot) = known.ok_or_else(|| GeometryError::UnknownKey { model: model(), key: key.to_owned() })?;
    match value.parse() {
        Ok(figure) if figure > 0 => Ok((key, slot, figure)),
        _ => Err(GeometryError::Figure { model: model(), key, seen: value.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry(text: &str) -> ModelGeometry {
        text.parse().unwrap()
    }

    fn problem(text: &str) -> String {
        text.parse::<ModelGeometry>().unwrap_err().to_string()
    }

    #[test]
    fn known_models_have_their_published_bytes_per_token() {
        let seen = ["llama-3-8b", "llama-3-70b", "qwen2.5-0.5b", "qwen2.5-14b"]
            .map(geometry)
            .map(|g| (g.layers(), g.plane_bytes_per_token(), g.bytes_per_token(), g.context_window()));
        assert_eq!(
            seen,
            [
                (32, 2048, 131_072, 8192),
                (80, 2048, 327_680, 8192),
                (24, 256, 12_288, 32_768),
                (48, 2048, 196_608, 32_768)
            ]
        );
    }

    #[test]
    fn figures_say_the_same_as_a_name_in_any_order() {
        let (named, given) =
            (geometry("llama-3-8b"), geometry("context=8192, head_dim=128,kv_heads=8,layers=32,element_bytes=2"));
        assert_eq!(named.layers(), given.layers());
        assert_eq!(named.bytes_per_token(), given.bytes_per_token());
        assert_eq!(named.context_window(), given.context_window());
        assert_eq!(named.name(), "llama-3-8b");
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        assert_eq!(
            problem("llama-9"),
            "model \"llama-9\": not known: wanted one of llama-3-8b, llama-3-70b, qwen2.5-0.5b, qwen2.5-14b, or its \
             figures; name one of these, or give layers=32,kv_heads=8,head_dim=128,element_bytes=2,context=8192"
        );
    }

    #[test]
    fn each_wrong_figure_is_named() {
        let cases = [
            (("layers=32", "layers=0"), "layers is \"0\": wanted a whole number, 1 or more; correct it"),
            (("layers=32", "layers=-1"), "layers is \"-1\": wanted a whole number, 1 or more; correct it"),
            (
                ("layers=32", "layers=18446744073709551616"),
                "layers is \"18446744073709551616\": wanted a whole number, 1 or more; correct it",
            ),
            (
                ("layers=32", "layers=4611686018427387904"),
                "its full context overflows 64 bits of bytes; lower its figures",
            ),
            (
                ("context=8192", "context=1125899906842624"),
                "its full context overflows 64 bits of bytes; lower its figures",
            ),
            (("layers=32", "layers=32,layers=32"), "key layers comes twice: wanted it once; remove one"),
            (
                ("layers=32,", ""),
                "key layers is missing: wanted layers, kv_heads, head_dim, element_bytes, context; add layers=number",
            ),
            (
                ("layers=32", "32"),
                "\"32\" is no figure: wanted key=number; write it as in \
              layers=32,kv_heads=8,head_dim=128,element_bytes=2,context=8192",
            ),
            (
                ("layers", "Layers"),
                "key \"Layers\" is not known: wanted layers, kv_heads, head_dim, element_bytes, context; write it as in \
                 layers=32,kv_heads=8,head_dim=128,element_bytes=2,context=8192",
            ),
        ];
        for ((right, wrong), expected) in cases {
            let text = EXAMPLE.replacen(right, wrong, 1);
            assert_eq!(problem(&text), format!("model {text:?}: {expected}"));
        }
    }
}
