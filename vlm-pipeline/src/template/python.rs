//! Python's ways with text, where minijinja has its own.

use minijinja::value::{Rest, Tuple, ValueKind, from_args};
use minijinja::{Error, ErrorKind, Output, State, Value};

/// What `str.isspace` calls white space: Unicode's, and the four information separators.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// What `str.splitlines` breaks at.
fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// `str(value)`.
pub(super) fn to_str(value: &Value) -> String {
    match value.kind() {
        ValueKind::String => value.as_str().unwrap_or_default().to_owned(),
        ValueKind::Undefined => String::new(),
        _ => repr(value),
    }
}

/// `repr(value)`.
fn repr(value: &Value) -> String {
    match value.kind() {
        ValueKind::String => str_repr(value.as_str().unwrap_or_default()),
        ValueKind::Number if !value.is_integer() => {
            f64::try_from(value.clone()).map_or_else(|_| value.to_string(), float_repr)
        }
        ValueKind::Undefined => "Undefined".to_owned(),
        ValueKind::Map => {
            let items = value.try_iter().into_iter().flatten().map(|key| {
                let item = value.get_item(&key).unwrap_or_default();
                format!("{}: {}", repr(&key), repr(&item))
            });
            format!("{{{}}}", items.collect::<Vec<_>>().join(", "))
        }
        ValueKind::Seq => {
            let items = value.try_iter().into_iter().flatten().map(|item| repr(&item));
            let items = items.collect::<Vec<_>>();
            match (value.is_tuple(), items.as_slice()) {
                (true, [only]) => format!("({only},)"),
                (true, _) => format!("({})", items.join(", ")),
                (false, _) => format!("[{}]", items.join(", ")),
            }
        }
        _ => value.to_string(),
    }
}

/// Single quotes, unless the text holds some and no double ones.
fn str_repr(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for c in text.chars() {
        let code = u32::from(c);
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => out.extend(['\\', c]),
            c if is_printable(c) => out.push(c),
            _ if code < 0x100 => out.push_str(&format!("\\x{code:02x}")),
            _ if code < 0x1_0000 => out.push_str(&format!("\\u{code:04x}")),
            _ => out.push_str(&format!("\\U{code:08x}")),
        }
    }
    out.push(quote);
    out
}

/// Nearly `str.isprintable`: control and format characters, private ones, and white space but U+0020 are not.
fn is_printable(c: char) -> bool {
    let is_format = matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    let is_private = matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..);
    c == ' ' || !(c.is_control() || c.is_whitespace() || is_format || is_private)
}

/// `repr` of a float: the shortest digits, with an exponent below 1e-4 and from 1e16 on.
pub(super) fn float_repr(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = number.to_string();
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// Writes a value where `{{ }}` stands.
pub(super) fn write(out: &mut Output, _: &mut State, value: &Value) -> Result<(), Error> {
    out.write_str(&to_str(value)).map_err(Error::from)
}

/// The `string` filter.
pub(super) fn string(value: &Value) -> String {
    to_str(value)
}

/// The `trim` filter.
pub(super) fn trim(value: &Value, chars: Option<&str>) -> String {
    strip(&to_str(value), chars, true, true).to_owned()
}

/// `is sequence`: what has a length and can be indexed, so text and mappings too.
pub(super) fn is_sequence(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::String | ValueKind::Map | ValueKind::Undefined)
}

/// `is iterable`: text and mappings too.
pub(super) fn is_iterable(value: &Value) -> bool {
    is_sequence(value) || value.kind() == ValueKind::Iterable
}

fn strip<'t>(text: &'t str, chars: Option<&str>, left: bool, right: bool) -> &'t str {
    let drop = |c: char| chars.map_or_else(|| is_space(c), |chars| chars.contains(c));
    let text = if left { text.trim_start_matches(drop) } else { text };
    if right { text.trim_end_matches(drop) } else { text }
}

/// A method of Python's that minijinja does not know.
pub(super) fn method(state: &mut State, value: &Value, name: &str, args: &[Value]) -> Result<Value, Error> {
    match value.as_str().and_then(|text| text_method(text, name, args)) {
        Some(result) => result,
        None => minijinja_contrib::pycompat::unknown_method_callback(state, value, name, args),
    }
}

fn text_method(text: &str, name: &str, args: &[Value]) -> Option<Result<Value, Error>> {
    Some(match name {
        "strip" => one(args).map(|chars| strip(text, chars, true, true).into()),
        "lstrip" => one(args).map(|chars| strip(text, chars, true, false).into()),
        "rstrip" => one(args).map(|chars| strip(text, chars, false, true).into()),
        "split" => split(text, args, false),
        "rsplit" => split(text, args, true),
        "splitlines" => split_lines(text, args),
        "removeprefix" => affix(args).map(|affix| text.strip_prefix(affix).unwrap_or(text).into()),
        "removesuffix" => affix(args).map(|affix| text.strip_suffix(affix).unwrap_or(text).into()),
        "partition" => affix(args).map(|by| parts(text.split_once(by), (text, "", ""), by)),
        "rpartition" => affix(args).map(|by| parts(text.rsplit_once(by), ("", "", text), by)),
        "isspace" => Ok((!text.is_empty() && text.chars().all(is_space)).into()),
        _ => return None,
    })
}

fn one(args: &[Value]) -> Result<Option<&str>, Error> {
    let (chars,): (Option<&str>,) = from_args(args)?;
    Ok(chars)
}

fn affix(args: &[Value]) -> Result<&str, Error> {
    let (affix,): (&str,) = from_args(args)?;
    Ok(affix)
}

fn parts<'t>(
    found: Option<(&'t str, &'t str)>,
    otherwise: (&'t str, &'t str, &'t str),
    by: &'t str,
) -> Value {
    let (before, middle, after) = found.map_or(otherwise, |(before, after)| (before, by, after));
    Value::from(Tuple::from([before, middle, after].map(Value::from)))
}

/// `split` and `rsplit`: without a separator, runs of white space part and the ends are bare.
fn split(text: &str, args: &[Value], from_right: bool) -> Result<Value, Error> {
    let (separator, most, Rest(more)): (Option<&str>, Option<i64>, Rest<Value>) = from_args(args)?;
    if !more.is_empty() {
        return Err(Error::from(ErrorKind::TooManyArguments));
    }
    if separator == Some("") {
        return Err(Error::new(ErrorKind::InvalidOperation, "empty separator"));
    }
    let most = most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
    let pieces: Vec<&str> = match (separator, from_right) {
        (Some(by), false) => text.splitn(most.saturating_add(1), by).collect(),
        (Some(by), true) => {
            let mut pieces: Vec<&str> = text.rsplitn(most.saturating_add(1), by).collect();
            pieces.reverse();
            pieces
        }
        (None, false) => {
            let mut pieces = Vec::new();
            let mut rest = text.trim_start_matches(is_space);
            while !rest.is_empty() {
                let end =
                    if pieces.len() < most { rest.find(is_space).unwrap_or(rest.len()) } else { rest.len() };
                pieces.push(&rest[..end]);
                rest = rest[end..].trim_start_matches(is_space);
            }
            pieces
        }
        (None, true) => {
            let mut pieces = Vec::new();
            let mut rest = text.trim_end_matches(is_space);
            while !rest.is_empty() {
                let start = if pieces.len() < most {
                    rest.char_indices()
                        .rev()
                        .find(|&(_, c)| is_space(c))
                        .map_or(0, |(at, c)| at + c.len_utf8())
                } else {
                    0
                };
                pieces.push(&rest[start..]);
                rest = rest[..start].trim_end_matches(is_space);
            }
            pieces.reverse();
            pieces
        }
    };
    Ok(pieces.into_iter().collect())
}

fn split_lines(text: &str, args: &[Value]) -> Result<Value, Error> {
    let (keep,): (Option<bool>,) = from_args(args)?;
    let keep = keep.unwrap_or(false);
    let mut lines = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(is_line_end).unwrap_or(rest.len());
        let length = match rest[end..].chars().next() {
            Some('\r') if rest[end..].starts_with("\r\n") => 2,
            Some(c) => c.len_utf8(),
            None => 0,
        };
        lines.push(&rest[..if keep { end + length } else { end }]);
        rest = &rest[end + length..];
    }
    Ok(lines.into_iter().collect())
}
