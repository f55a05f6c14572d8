//! A client's variables, which live as long as it does.

use super::names::Names;
use super::value::Value;

#[derive(Clone, Copy, Debug, Default)]
enum Held {
    #[default]
    Nothing,
    Value(Value),
    /// Text whose value is found when it is asked for: of `-D`, or a column.
    Text,
}

/// Values by place.
#[derive(Clone, Debug)]
pub(super) struct Variables {
    held: Vec<Held>,
    texts: Vec<Vec<u8>>,
}

impl Variables {
    pub(super) fn new(count: usize) -> Self {
        Self { held: vec![Held::Nothing; count], texts: vec![Vec::new(); count] }
    }

    pub(super) fn set(&mut self, place: usize, value: Value) {
        self.held[place] = Held::Value(value);
    }

    pub(super) fn set_text(&mut self, place: usize, text: &[u8]) {
        self.held[place] = Held::Text;
        self.texts[place].clear();
        self.texts[place].extend_from_slice(text);
    }

    /// # Errors
    /// If the variable holds nothing, or text that is no value.
    pub(super) fn value(&self, place: usize, names: &Names) -> Result<Value, String> {
        match self.held[place] {
            Held::Value(value) => Ok(value),
            Held::Nothing => Err(format!("undefined variable \"{}\"", names.name(place))),
            Held::Text => Value::from_text(&self.texts[place]).ok_or_else(|| {
                let text = String::from_utf8_lossy(&self.texts[place]);
                format!("malformed variable \"{}\" value: \"{text}\"", names.name(place))
            }),
        }
    }

    /// Appends the variable as text; false if it holds nothing.
    pub(super) fn write(&self, place: usize, out: &mut Vec<u8>) -> bool {
        match self.held[place] {
            Held::Nothing => return false,
            Held::Value(value) => value.write(out),
            Held::Text => out.extend_from_slice(&self.texts[place]),
        }
        true
    }
}
