//! `tojson` as Python's `json.dumps` writes it, which transformers puts in Jinja2's place.

use std::fmt::Write as _;

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, ErrorKind, Value};

use super::python;

struct Style {
    ascii: bool,
    indent: Option<String>,
    item: String,
    key: String,
    sorted: bool,
}

/// `value | tojson(indent=..., ensure_ascii=..., separators=..., sort_keys=...)`.
pub(super) fn tojson(value: &Value, kwargs: Kwargs) -> Result<String, Error> {
    let indent = match kwargs.get::<Option<Value>>("indent")? {
        None => None,
        Some(indent) if indent.is_none() => None,
        Some(indent) => Some(match indent.as_str() {
            Some(text) => text.to_owned(),
            None => " ".repeat(usize::try_from(indent)?),
        }),
    };
    let ascii = kwargs.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false);
    let sorted = kwargs.get::<Option<bool>>("sort_keys")?.unwrap_or(false);
    let separators = kwargs.get::<Option<Value>>("separators")?.filter(|value| !value.is_none());
    kwargs.assert_all_used()?;
    let (item, key) = match separators {
        Some(pair) => {
            let pair: Vec<Value> = pair.try_iter()?.collect();
            match pair.as_slice() {
                [item, key] => (python::to_str(item), python::to_str(key)),
                _ => return Err(Error::new(ErrorKind::InvalidOperation, "separators must be a pair")),
            }
        }
        None if indent.is_some() => (",".to_owned(), ": ".to_owned()),
        None => (", ".to_owned(), ": ".to_owned()),
    };
    let mut text = String::new();
    write(&mut text, value, &Style { ascii, indent, item, key, sorted }, 0)?;
    Ok(text)
}

fn write(out: &mut String, value: &Value, style: &Style, depth: usize) -> Result<(), Error> {
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => out.push_str(&number(value)),
        ValueKind::String => write_string(out, value.as_str().unwrap_or_default(), style.ascii),
        ValueKind::Map => {
            let mut keys: Vec<Value> = value.try_iter()?.collect();
            if style.sorted {
                keys.sort();
            }
            let count = keys.len();
            out.push('{');
            for (at, key) in keys.into_iter().enumerate() {
                separate(out, style, at, depth);
                write_string(out, &key_text(&key)?, style.ascii);
                out.push_str(&style.key);
                write(out, &value.get_item(&key)?, style, depth + 1)?;
            }
            close(out, style, count, depth, '}');
        }
        ValueKind::Seq | ValueKind::Iterable => {
            out.push('[');
            let mut count = 0;
            for (at, item) in value.try_iter()?.enumerate() {
                separate(out, style, at, depth);
                write(out, &item, style, depth + 1)?;
                count += 1;
            }
            close(out, style, count, depth, ']');
        }
        kind => {
            return Err(Error::new(ErrorKind::InvalidOperation, format!("{kind} is not JSON serializable")));
        }
    }
    Ok(())
}

fn separate(out: &mut String, style: &Style, at: usize, depth: usize) {
    if at > 0 {
        out.push_str(&style.item);
    }
    new_line(out, style, depth + 1);
}

fn close(out: &mut String, style: &Style, count: usize, depth: usize, bracket: char) {
    if count > 0 {
        new_line(out, style, depth);
    }
    out.push(bracket);
}

fn new_line(out: &mut String, style: &Style, depth: usize) {
    if let Some(indent) = &style.indent {
        out.push('\n');
        out.extend(std::iter::repeat_n(indent.as_str(), depth));
    }
}

fn number(value: &Value) -> String {
    match f64::try_from(value.clone()) {
        Ok(number) if !value.is_integer() => match number {
            _ if number.is_nan() => "NaN".to_owned(),
            _ if number == f64::INFINITY => "Infinity".to_owned(),
            _ if number == f64::NEG_INFINITY => "-Infinity".to_owned(),
            _ => python::float_repr(number),
        },
        _ => value.to_string(),
    }
}

fn key_text(key: &Value) -> Result<String, Error> {
    match key.kind() {
        ValueKind::String => Ok(key.as_str().unwrap_or_default().to_owned()),
        ValueKind::Bool => Ok(if key.is_true() { "true" } else { "false" }.to_owned()),
        ValueKind::None => Ok("null".to_owned()),
        ValueKind::Number => Ok(number(key)),
        kind => {
            Err(Error::new(ErrorKind::InvalidOperation, format!("keys must be text or a number, not {kind}")))
        }
    }
}

fn write_string(out: &mut String, text: &str, ascii: bool) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if u32::from(c) < 0x20 || (ascii && !(' '..='~').contains(&c)) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing to a string cannot fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
