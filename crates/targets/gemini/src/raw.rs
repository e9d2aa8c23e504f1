//! A file's own structures as a tree.

use crate::document::Document;
use crate::json::{Reader, Result};
use chipless_model::{Node, Value};

/// Values that the tree shows; a schedule has millions.
const SHOWN_VALUES: usize = 200_000;

impl Document<'_> {
    /// The file's own structures.
    pub fn raw(&self) -> Node {
        let mut budget = SHOWN_VALUES;
        let mut node = Node {
            name: "schedule".to_owned(),
            ..Node::default()
        };
        // The text was read before: there is no fault in it.
        let _ = tree(&mut Reader::new(self.text(), 0), &mut node, &mut budget);
        if budget == 0 {
            node.children.push(Node {
                name: "…".to_owned(),
                ..Node::from(format!("only the first {SHOWN_VALUES} values are shown"))
            });
        }
        node
    }
}

/// A value as a tree. Lists of numbers are one line.
fn tree(reader: &mut Reader<'_>, node: &mut Node, budget: &mut usize) -> Result<()> {
    let first = reader.peek();
    let start = reader.offset();
    node.offset = Some(start as u64);
    if *budget == 0 {
        return reader.skip();
    }
    *budget -= 1;
    match first {
        Some(b'{') => {
            let mut object = reader.object()?;
            while let Some(key) = reader.key(&mut object)? {
                let mut child = Node {
                    name: key.into_owned(),
                    ..Node::default()
                };
                tree(reader, &mut child, budget)?;
                if *budget > 0 {
                    node.children.push(child);
                }
            }
        }
        Some(b'[')
            if reader
                .clone()
                .each(|reader| reader.f64().map(drop))
                .is_err() =>
        {
            let mut list = reader.list()?;
            let mut index = 0;
            while reader.item(&mut list)? {
                let mut child = Node {
                    name: index.to_string(),
                    ..Node::default()
                };
                tree(reader, &mut child, budget)?;
                if *budget > 0 {
                    node.children.push(child);
                }
                index += 1;
            }
        }
        Some(b'"') => node.value = Some(Value::Text(reader.string()?.into_owned())),
        _ => {
            reader.skip()?;
            let text = reader.slice(start, reader.offset());
            let integer = text.parse::<i128>().ok().map(Value::Integer);
            let number = || text.parse::<f64>().ok().map(Value::Number);
            let words = || text.split_whitespace().collect::<Vec<_>>().join(" ");
            node.value = integer
                .or_else(number)
                .or_else(|| Some(Value::Text(words())));
        }
    }
    Ok(())
}
