//! From the objects of a `.pt` file to a plan.
//!
//! The plan is the one that the vendor's own writer makes of the graph, and what that writer loses besides: types, scales
//! and shapes of tensors between nodes, and the branches of `conditional`.

use super::plan::{Array, DEEPEST, Declared, Error, Graph, Node, Numbers, Origin, Plan, Tensor};
use super::rules;
use crate::saved::{self, Object, Objects, Value};
use crate::saved::{Class, Elements, Fields};
use crate::yaml::shortened;
use chipless_model::{Limits, Place, Rule};
use indexmap::IndexMap;
use serde_json::Value as Json;
use std::collections::HashMap;
use std::sync::Arc;

/// Lists within lists of a constant.
const DEEPEST_CONSTANT: usize = 8;

impl Plan<'_> {
    /// Reads a `.pt` file: an archive with a pickled graph. Nothing in it is executed.
    ///
    /// # Errors
    /// An archive or pickle that is damaged, that asks for a class or a call that graphs do not have, that holds no graph,
    /// or that exceeds a limit.
    pub fn read_saved(bytes: &[u8], limits: &Limits) -> Result<Plan<'static>, Error> {
        Plan::read_pickle(&saved::data(bytes, limits)?, limits)
    }

    /// Reads a pickled graph as it stands in the archive. Nothing in it is executed.
    ///
    /// # Errors
    /// As [`read_saved`](Plan::read_saved).
    pub fn read_pickle(pickle: &[u8], limits: &Limits) -> Result<Plan<'static>, Error> {
        let objects = saved::read(pickle, limits)?;
        if objects.instance(objects.root, Class::Graph).is_none() {
            let message = format!(
                "expected a graph (GraphProto), found {}",
                objects.kind(objects.root)
            );
            return Err(wrong(&rules::SAVED, String::new(), message));
        }
        let mut reader = Reader {
            objects: &objects,
            arrays: HashMap::new(),
            left: limits.declarations,
            limits,
        };
        let main = reader.graph(objects.root, String::new(), 0)?;
        let mut plan = Plan {
            text: "",
            origin: Origin::Saved,
            main,
            findings: Vec::new(),
        };
        plan.look();
        Ok(plan)
    }
}

fn wrong(rule: &'static Rule, pointer: String, message: impl Into<String>) -> Error {
    Box::new(rule.at(Place::file().in_part(pointer), message.into()))
}

struct Reader<'o, 'p> {
    objects: &'o Objects<'p>,
    /// Arrays that were decoded, by object: graphs may share them.
    arrays: HashMap<usize, Arc<Array>>,
    /// Nodes, tensors and graphs that may still be made: shared objects count each time.
    left: u64,
    limits: &'o Limits,
}

impl<'p> Reader<'_, 'p> {
    fn spend(&mut self, pointer: &str) -> Result<(), Error> {
        self.left = self.left.checked_sub(1).ok_or_else(|| {
            let message = format!(
                "more nodes and tensors than the limit declarations = {}",
                self.limits.declarations
            );
            wrong(&rules::LIMIT, pointer.to_owned(), message)
        })?;
        Ok(())
    }

    fn expected<T>(
        &self,
        pointer: &str,
        field: &str,
        what: &str,
        found: Value<'p>,
    ) -> Result<T, Error> {
        let message = format!(
            "expected {what} as {field}, found {}",
            self.objects.kind(found)
        );
        Err(wrong(&rules::SAVED, pointer.to_owned(), message))
    }

    fn text(&self, fields: Fields<'_, 'p>, field: &str, pointer: &str) -> Result<String, Error> {
        match fields.get(field) {
            Value::Text(text) => Ok(text.to_owned()),
            Value::None => Ok(String::new()),
            other => self.expected(pointer, field, "text", other),
        }
    }

    fn items(
        &self,
        fields: Fields<'_, 'p>,
        field: &str,
        pointer: &str,
    ) -> Result<Vec<Value<'p>>, Error> {
        match fields.get(field) {
            Value::None => Ok(Vec::new()),
            value => match self.objects.items(value) {
                Some(items) => Ok(items.to_vec()),
                None => self.expected(pointer, field, "a list", value),
            },
        }
    }

    /// A dictionary with text keys; the last entry of a key counts, at the place of the first.
    fn entries(
        &self,
        fields: Fields<'_, 'p>,
        field: &str,
        pointer: &str,
    ) -> Result<IndexMap<&'p str, Value<'p>>, Error> {
        let value = fields.get(field);
        let entries = match (value, self.objects.entries(value)) {
            (Value::None, _) => &[],
            (_, Some(entries)) => entries,
            (_, None) => return self.expected(pointer, field, "a dictionary", value),
        };
        entries
            .iter()
            .map(|(key, value)| match key {
                Value::Text(key) => Ok((*key, *value)),
                other => self.expected(pointer, field, "text for the keys", *other),
            })
            .collect()
    }

    fn graph(&mut self, value: Value<'p>, pointer: String, depth: usize) -> Result<Graph, Error> {
        self.spend(&pointer)?;
        if depth > DEEPEST {
            let message = format!(
                "expected subgraphs at most {DEEPEST} deep, found deeper ones, or a graph within itself"
            );
            return Err(wrong(&rules::LIMIT, pointer, message));
        }
        let Some(fields) = self.objects.instance(value, Class::Graph) else {
            return self.expected(&pointer, "a subgraph", "a graph", value);
        };
        let mut graph = Graph {
            name: self.text(fields, "name", &pointer)?,
            inputs: self.tensors(fields, "inputs", &pointer)?,
            outputs: self.tensors(fields, "outputs", &pointer)?,
            parameters: self.tensors(fields, "parameters", &pointer)?,
            ..Graph::default()
        };
        if !matches!(fields.get("reshaper"), Value::None) {
            let message = "expected a graph without a reshaper (a module of torch), found one";
            return Err(wrong(&rules::SAVED, format!("{pointer}/reshaper"), message));
        }
        let mut names: HashMap<usize, String> = HashMap::new();
        for (name, inner) in self.entries(fields, "subgraphs", &pointer)? {
            let place = subgraph_pointer(&pointer, name);
            let inner_graph = self.graph(inner, place, depth + 1)?;
            if let Value::Object(number) = inner {
                names.entry(number).or_insert_with(|| name.to_owned());
            }
            graph.subgraphs.insert(name.to_owned(), inner_graph);
        }
        for (index, node) in self
            .items(fields, "nodes", &pointer)?
            .into_iter()
            .enumerate()
        {
            let place = format!("{pointer}/nodes/{index}");
            self.spend(&place)?;
            let Some(of_node) = self.objects.instance(node, Class::Node) else {
                return self.expected(&place, "a node", "a node", node);
            };
            let mut node = Node {
                name: self.text(of_node, "name", &place)?,
                op_name: self.operation(of_node, &place)?,
                at: (of_node.offset as u64, 0),
                ..Node::default()
            };
            for (port, tensor) in self.entries(of_node, "inputs", &place)? {
                let name = self.declared(tensor, &mut graph, &place)?;
                node.inputs.insert(port.to_owned(), name);
            }
            for tensor in self.items(of_node, "outputs", &place)? {
                let name = self.declared(tensor, &mut graph, &place)?;
                node.outputs.push(name);
            }
            for (name, value) in self.entries(of_node, "constants", &place)? {
                self.constant(name, value, &mut node, &mut graph, &place)?;
            }
            self.bodies(
                of_node,
                &mut node,
                &mut graph,
                &mut names,
                (&pointer, &place),
                depth,
            )?;
            node.pointer = place;
            graph.nodes.push(node);
        }
        graph.pointer = pointer;
        Ok(graph)
    }

    /// The name of a node's operation; none for a plain call.
    fn operation(&self, node: Fields<'_, 'p>, pointer: &str) -> Result<Option<String>, Error> {
        let value = node.get("optype");
        match (value, self.objects.instance(value, Class::Operation)) {
            (Value::None, _) => Ok(None),
            (_, Some(operation)) => self.text(operation, "name", pointer).map(Some),
            (_, None) => self.expected(pointer, "optype", "an operation", value),
        }
    }

    /// The graphs that a node calls, by the names that they have in the graph around it.
    fn bodies(
        &mut self,
        fields: Fields<'_, 'p>,
        node: &mut Node,
        graph: &mut Graph,
        names: &mut HashMap<usize, String>,
        (pointer, place): (&str, &str),
        depth: usize,
    ) -> Result<(), Error> {
        let mut bodies = self.entries(fields, "subgraphs", place)?;
        // Releases before 3.18 have one subgraph without a key.
        let alone = fields.get("subgraph");
        if !matches!(alone, Value::None) && bodies.is_empty() {
            bodies.insert("body", alone);
        }
        for (key, body) in bodies {
            let Value::Object(number) = body else {
                return self.expected(place, "subgraphs", "graphs", body);
            };
            let name = if let Some(name) = names.get(&number) {
                name.clone()
            } else {
                let stem = self
                    .objects
                    .instance(body, Class::Graph)
                    .map(|fields| self.text(fields, "name", place))
                    .transpose()?;
                let stem = stem
                    .filter(|stem| !stem.is_empty())
                    .unwrap_or_else(|| key.to_owned());
                let mut name = stem.clone();
                let mut number_of = 1;
                while graph.subgraphs.contains_key(&name) {
                    number_of += 1;
                    name = format!("{stem}.{number_of}");
                }
                let inner = self.graph(body, subgraph_pointer(pointer, &name), depth + 1)?;
                graph.subgraphs.insert(name.clone(), inner);
                names.insert(number, name.clone());
                name
            };
            if key == "body" {
                node.subgraph = Some(name);
            } else {
                node.subgraphs.insert(key.to_owned(), name);
            }
        }
        Ok(())
    }

    fn tensors(
        &mut self,
        fields: Fields<'_, 'p>,
        field: &str,
        pointer: &str,
    ) -> Result<Vec<Tensor>, Error> {
        let items = self.items(fields, field, pointer)?;
        items
            .into_iter()
            .enumerate()
            .map(|(index, tensor)| {
                let place = format!("{pointer}/{field}/{index}");
                let mut made = self.tensor(tensor, &place)?;
                let value = self
                    .objects
                    .instance(tensor, Class::Tensor)
                    .map_or(Value::None, |fields| fields.get("value"));
                if field == "parameters" && !matches!(value, Value::None) {
                    made.value = Some(self.array(value, &format!("{place}/value"))?);
                }
                Ok(made)
            })
            .collect()
    }

    /// A tensor without its value.
    fn tensor(&mut self, value: Value<'p>, pointer: &str) -> Result<Tensor, Error> {
        self.spend(pointer)?;
        let Some(fields) = self.objects.instance(value, Class::Tensor) else {
            return self.expected(pointer, "a tensor", "a tensor", value);
        };
        let dtype = match fields.get("dtype") {
            Value::Text(text) => text.to_owned(),
            _ => String::new(),
        };
        let shape = self.items(fields, "shape", pointer)?;
        let lengths: Option<Vec<u64>> = shape
            .iter()
            .map(|length| match length {
                Value::Integer(length) => u64::try_from(*length).ok(),
                _ => None,
            })
            .collect();
        let Some(shape) = lengths else {
            let message = "expected lengths from 0 on as shape, found others";
            return Err(wrong(&rules::SAVED, pointer.to_owned(), message));
        };
        let quanta = match fields.get("quanta") {
            Value::Integer(quanta) => Some(quanta as f64),
            Value::Real(quanta) => Some(quanta),
            _ => None,
        };
        Ok(Tensor {
            name: self.text(fields, "name", pointer)?,
            dtype,
            shape,
            quanta,
            value: None,
        })
    }

    /// A tensor at a node: its name, while the graph learns what it is.
    fn declared(
        &mut self,
        value: Value<'p>,
        graph: &mut Graph,
        pointer: &str,
    ) -> Result<String, Error> {
        let tensor = self.tensor(value, pointer)?;
        if !graph.tensors.contains_key(&tensor.name) {
            let declared = Declared {
                dtype: tensor.dtype,
                shape: tensor.shape,
                quanta: tensor.quanta,
            };
            graph.tensors.insert(tensor.name.clone(), declared);
        }
        Ok(tensor.name)
    }

    fn array(&mut self, value: Value<'p>, pointer: &str) -> Result<Arc<Array>, Error> {
        let number = match value {
            Value::Object(number) => number,
            Value::Integer(one) => {
                return Ok(Arc::new(Array {
                    shape: Vec::new(),
                    numbers: Numbers::Integers(vec![one]),
                }));
            }
            Value::Real(one) => {
                return Ok(Arc::new(Array {
                    shape: Vec::new(),
                    numbers: Numbers::Reals(vec![one]),
                }));
            }
            other => return self.expected(pointer, "the value", "an array", other),
        };
        if let Some(known) = self.arrays.get(&number) {
            return Ok(known.clone());
        }
        let Some(Object::Array(array)) = self.objects.object(value) else {
            return self.expected(pointer, "the value", "an array", value);
        };
        let Some(state) = &array.state else {
            let message = "expected an array with its elements, found one without";
            return Err(wrong(&rules::SAVED, pointer.to_owned(), message));
        };
        let elements = state
            .elements()
            .map_err(|message| wrong(&rules::SAVED, pointer.to_owned(), message))?;
        let array = Arc::new(Array {
            shape: state.shape.clone(),
            numbers: match elements {
                Elements::Integers(all) => Numbers::Integers(all),
                Elements::Reals(all) => Numbers::Reals(all),
            },
        });
        self.arrays.insert(number, array.clone());
        Ok(array)
    }

    /// A constant of a node. The table of a `lut` becomes a parameter and the address of its first entry, as in a plan.
    fn constant(
        &mut self,
        name: &str,
        value: Value<'p>,
        node: &mut Node,
        graph: &mut Graph,
        pointer: &str,
    ) -> Result<(), Error> {
        let Some(table) = self.objects.instance(value, Class::Table) else {
            let value = self.json(value, pointer, name, 0)?;
            node.constants.insert(name.to_owned(), value);
            return Ok(());
        };
        let place = format!("{pointer}/constants/{name}");
        let (x, y) = (
            self.array(table.get("x"), &place)?,
            self.array(table.get("y"), &place)?,
        );
        let (Numbers::Integers(addresses), Numbers::Integers(entries)) = (&x.numbers, &y.numbers)
        else {
            return Err(wrong(
                &rules::SAVED,
                place,
                "expected addresses and entries of a table that are integers, found reals",
            ));
        };
        let first = addresses.iter().min().copied();
        let (Some(first), true) = (first, addresses.len() == entries.len()) else {
            let message = format!(
                "expected as many entries of a table as addresses, found {} and {}",
                entries.len(),
                addresses.len()
            );
            return Err(wrong(&rules::SAVED, place, message));
        };
        let parameter = format!(
            "{}.table_values",
            node.outputs.first().map_or(&*node.name, |name| name)
        );
        node.constants.insert(
            "function".to_owned(),
            self.text(table, "name", &place)?.into(),
        );
        node.constants.insert("table_min".to_owned(), first.into());
        node.inputs
            .insert("table_values".to_owned(), parameter.clone());
        let shape = vec![entries.len() as u64];
        graph.parameters.push(Tensor {
            name: parameter,
            dtype: "int32".to_owned(),
            shape,
            quanta: None,
            value: Some(y),
        });
        Ok(())
    }

    fn json(
        &mut self,
        value: Value<'p>,
        pointer: &str,
        name: &str,
        depth: usize,
    ) -> Result<Json, Error> {
        self.spend(pointer)?;
        let place = || format!("{pointer}/constants/{name}");
        if depth > DEEPEST_CONSTANT {
            let message =
                format!("expected lists at most {DEEPEST_CONSTANT} deep, found deeper ones");
            return Err(wrong(&rules::LIMIT, place(), message));
        }
        Ok(match value {
            Value::None => Json::Null,
            Value::Bool(value) => value.into(),
            Value::Integer(value) => value.into(),
            Value::Real(value) => value.into(),
            Value::Text(value) => value.into(),
            Value::Object(_) => match self.objects.object(value) {
                Some(Object::List(items) | Object::Tuple(items)) => {
                    let items = items.clone();
                    items
                        .into_iter()
                        .map(|item| self.json(item, pointer, name, depth + 1))
                        .collect::<Result<Vec<_>, _>>()?
                        .into()
                }
                Some(Object::Dict(entries)) => {
                    let mut object = serde_json::Map::new();
                    for (key, value) in entries.clone() {
                        let Value::Text(key) = key else {
                            return self.expected(pointer, name, "text for the keys", key);
                        };
                        object.insert(key.to_owned(), self.json(value, pointer, name, depth + 1)?);
                    }
                    Json::Object(object)
                }
                Some(Object::Array(_)) => {
                    let array = self.array(value, &place())?;
                    match &array.numbers {
                        Numbers::Integers(all) => all.clone().into(),
                        Numbers::Reals(all) => all.clone().into(),
                    }
                }
                // A `print` names a function, and so on: nothing that an execution needs.
                Some(Object::Skipped) => Json::Null,
                _ => {
                    let message = format!(
                        "expected numbers, text and lists as the constant `{}`, found {}",
                        shortened(name),
                        self.objects.kind(value)
                    );
                    return Err(wrong(&rules::SAVED, place(), message));
                }
            },
        })
    }
}

fn subgraph_pointer(pointer: &str, name: &str) -> String {
    format!("{pointer}/subgraphs/{}", super::plan::escaped(name))
}
