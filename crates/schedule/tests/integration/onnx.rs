//! ONNX files, written field by field (`onnx.proto`).

use fastrand::Rng;

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 127 {
        bytes.push(value as u8 | 128);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn integer(field: u64, value: i64) -> Vec<u8> {
    [varint(field << 3), varint(value as u64)].concat()
}

fn bytes(field: u64, content: &[u8]) -> Vec<u8> {
    let mut all = [varint(field << 3 | 2), varint(content.len() as u64)].concat();
    all.extend(content);
    all
}

fn tensor(name: &str, kind: i64, shape: &[i64], data: &[u8]) -> Vec<u8> {
    let mut all: Vec<u8> = shape
        .iter()
        .flat_map(|extent| integer(1, *extent))
        .collect();
    all.extend([integer(2, kind), bytes(8, name.as_bytes()), bytes(9, data)].concat());
    all
}

fn value(name: &str, shape: &[i64]) -> Vec<u8> {
    let dimensions: Vec<u8> = shape
        .iter()
        .flat_map(|extent| bytes(1, &integer(1, *extent)))
        .collect();
    let tensor = [integer(1, 1), bytes(2, &dimensions)].concat();
    [bytes(1, name.as_bytes()), bytes(2, &bytes(1, &tensor))].concat()
}

/// A node; its result is called as it is.
pub(crate) struct Node(Vec<u8>);

impl Node {
    pub(crate) fn new(operation: &str, name: &str, inputs: &[&str]) -> Node {
        let mut all: Vec<u8> = inputs
            .iter()
            .flat_map(|input| bytes(1, input.as_bytes()))
            .collect();
        let name = name.as_bytes();
        all.extend(
            [
                bytes(2, name),
                bytes(3, name),
                bytes(4, operation.as_bytes()),
            ]
            .concat(),
        );
        Node(all)
    }

    pub(crate) fn number(mut self, name: &str, number: i64) -> Node {
        let attribute = [
            bytes(1, name.as_bytes()),
            integer(3, number),
            integer(20, 2),
        ]
        .concat();
        self.0.extend(bytes(5, &attribute));
        self
    }

    pub(crate) fn real(mut self, name: &str, number: f32) -> Node {
        let mut attribute = bytes(1, name.as_bytes());
        attribute.extend(varint(2 << 3 | 5));
        attribute.extend(number.to_le_bytes());
        attribute.extend(integer(20, 1));
        self.0.extend(bytes(5, &attribute));
        self
    }

    pub(crate) fn text(mut self, name: &str, text: &str) -> Node {
        let attribute = [
            bytes(1, name.as_bytes()),
            bytes(4, text.as_bytes()),
            integer(20, 3),
        ]
        .concat();
        self.0.extend(bytes(5, &attribute));
        self
    }

    /// One more result.
    pub(crate) fn also(mut self, name: &str) -> Node {
        self.0.extend(bytes(2, name.as_bytes()));
        self
    }

    pub(crate) fn list(mut self, name: &str, list: &[i64]) -> Node {
        let mut attribute = bytes(1, name.as_bytes());
        attribute.extend(list.iter().flat_map(|number| integer(8, *number)));
        attribute.extend(integer(20, 7));
        self.0.extend(bytes(5, &attribute));
        self
    }
}

impl Node {
    /// A graph inside of the node: a branch, the body of a loop.
    pub(crate) fn graph(mut self, name: &str, graph: &Graph) -> Node {
        let attribute = [
            bytes(1, name.as_bytes()),
            bytes(6, &graph.all),
            integer(20, 5),
        ]
        .concat();
        self.0.extend(bytes(5, &attribute));
        self
    }
}

/// A graph under construction.
#[derive(Clone, Default)]
pub(crate) struct Graph {
    all: Vec<u8>,
    count: usize,
}

impl Graph {
    pub(crate) fn next(&mut self, what: &str) -> String {
        self.count += 1;
        format!("{what}{}", self.count)
    }

    pub(crate) fn add(&mut self, node: &Node) {
        self.all.extend(bytes(1, &node.0));
    }

    /// Floats of a shape.
    pub(crate) fn random(&mut self, rng: &mut Rng, shape: &[i64]) -> String {
        let name = self.next("weight");
        let count = shape.iter().product::<i64>();
        let data: Vec<u8> = (0..count)
            .flat_map(|_| (rng.f32() - 0.5).to_le_bytes())
            .collect();
        self.all.extend(bytes(5, &tensor(&name, 1, shape, &data)));
        name
    }

    pub(crate) fn floats(&mut self, shape: &[i64], values: &[f32]) -> String {
        let data: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.constant(1, shape, &data)
    }

    /// A constant of an ONNX type.
    pub(crate) fn constant(&mut self, kind: i64, shape: &[i64], data: &[u8]) -> String {
        let name = self.next("constant");
        self.all.extend(bytes(5, &tensor(&name, kind, shape, data)));
        name
    }

    pub(crate) fn integers(&mut self, values: &[i64]) -> String {
        let name = self.next("integers");
        let data: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        let shape = [values.len() as i64];
        self.all.extend(bytes(5, &tensor(&name, 7, &shape, &data)));
        name
    }

    pub(crate) fn input(&mut self, [c, h, w]: [i64; 3]) {
        self.input_of(&[1, c, h, w]);
    }

    pub(crate) fn input_of(&mut self, shape: &[i64]) {
        self.input_named("input", shape);
    }

    pub(crate) fn input_named(&mut self, name: &str, shape: &[i64]) {
        self.all.extend(bytes(11, &value(name, shape)));
    }

    pub(crate) fn output(&mut self, name: &str) {
        self.all.extend(bytes(12, &value(name, &[])));
    }

    pub(crate) fn bytes(self) -> Vec<u8> {
        self.of_version(17)
    }

    /// With the operations of this version.
    pub(crate) fn of_version(self, version: i64) -> Vec<u8> {
        let operations = bytes(8, &[bytes(1, b""), integer(2, version)].concat());
        [integer(1, 8), bytes(7, &self.all), operations].concat()
    }
}
