//! Random networks with branches on meshes of many sizes: each gets a schedule, and each schedule passes every check. That it
//! computes its network is a part of that: `check` follows every element.

use crate::onnx::{Graph, Node};
use crate::{errors, machine_text, options};
use chipless_gemini::Network;
use chipless_model::Limits;
use chipless_schedule::emit::{Written, searched};
use chipless_schedule::machine::Machine;
use fastrand::Rng;
use std::sync::atomic::AtomicBool;

/// A tensor of the network: its name, channels, rows and columns.
type Map = (String, [i64; 3]);

fn convolution(graph: &mut Graph, rng: &mut Rng, x: &Map, size: i64, groups: i64) -> Map {
    let [c, h, w] = x.1;
    let k = if groups > 1 {
        c
    } else {
        [4, 6, 8, 16][rng.usize(..4)]
    };
    let name = graph.next("conv");
    let weight = graph.random(rng, &[k, c / groups, size, size]);
    let padding = size / 2;
    let node = Node::new("Conv", &name, &[&x.0, &weight])
        .list("kernel_shape", &[size, size])
        .list("pads", &[padding; 4])
        .number("group", groups);
    graph.add(&node);
    (name, [k, h, w])
}

fn two(graph: &mut Graph, rng: &mut Rng, x: &Map, y: &Map) -> Map {
    let name = graph.next("add");
    let operation = ["Add", "Sub", "Mul"][rng.usize(..3)];
    graph.add(&Node::new(operation, &name, &[&x.0, &y.0]));
    (name, x.1)
}

fn joined(graph: &mut Graph, maps: &[&Map]) -> Map {
    let name = graph.next("concat");
    let names: Vec<&str> = maps.iter().map(|map| map.0.as_str()).collect();
    graph.add(&Node::new("Concat", &name, &names).number("axis", 1));
    let [_, h, w] = maps[0].1;
    (name, [maps.iter().map(|map| map.1[0]).sum(), h, w])
}

fn part(graph: &mut Graph, x: &Map) -> Map {
    let [c, h, w] = x.1;
    let name = graph.next("slice");
    let bounds = [c / 3, c, 1].map(|value| graph.integers(&[value]));
    let [start, end, axis] = &bounds;
    graph.add(&Node::new("Slice", &name, &[&x.0, start, end, axis]));
    (name, [c - c / 3, h, w])
}

fn pool(graph: &mut Graph, rng: &mut Rng, x: &Map) -> Map {
    let [c, h, w] = x.1;
    let name = graph.next("pool");
    let operation = ["MaxPool", "AveragePool"][rng.usize(..2)];
    let node = Node::new(operation, &name, &[&x.0]).list("kernel_shape", &[2, 2]);
    graph.add(&node.list("strides", &[2, 2]));
    (name, [c, h / 2, w / 2])
}

/// A network of some layers, each of which reads what came shortly before it.
fn network(seed: u64) -> Vec<u8> {
    let mut rng = Rng::with_seed(seed);
    let (rng, mut graph) = (&mut rng, Graph::default());
    let extent = [8, 12, 13][rng.usize(..3)];
    graph.input([3, extent, extent]);
    let input = ("input".to_owned(), [3, extent, extent]);
    let mut maps = vec![convolution(&mut graph, rng, &input, 3, 1)];
    for _ in 0..rng.usize(3..9) {
        let x = maps[maps.len() - 1 - rng.usize(..maps.len().min(3))].clone();
        let alike = |same: fn(&Map, &Map) -> bool| {
            maps.iter()
                .rev()
                .find(|y| y.0 != x.0 && same(y, &x))
                .cloned()
        };
        let map = match rng.u8(..8) {
            0 | 1 => convolution(&mut graph, rng, &x, 3, 1),
            2 => convolution(&mut graph, rng, &x, 3, x.1[0]),
            3 if x.1[1] > 3 => pool(&mut graph, rng, &x),
            4 => match alike(|y, x| y.1 == x.1) {
                Some(y) => two(&mut graph, rng, &x, &y),
                None => convolution(&mut graph, rng, &x, 1, 1),
            },
            5 | 6 => match alike(|y, x| y.1[1..] == x.1[1..]) {
                Some(y) => joined(&mut graph, &[&x, &y]),
                None => joined(&mut graph, &[&x, &x]),
            },
            7 => part(&mut graph, &x),
            _ => convolution(&mut graph, rng, &x, 1, 1),
        };
        maps.push(map);
    }
    let last = convolution(&mut graph, rng, &maps[maps.len() - 1].clone(), 1, 1);
    graph.output(&last.0);
    graph.bytes()
}

#[test]
fn random_networks_get_schedules_that_pass_every_check() {
    for seed in 0..chipless_rounds::rounds(24) as u64 {
        let mut rng = Rng::with_seed(seed);
        let mesh = ["[1, 1]", "[2, 2]", "[3, 2]", "[4, 4]"][rng.usize(..4)];
        let bytes = ["262144", "65536", "24576"][rng.usize(..3)];
        let batch = [1, 2, 4][rng.usize(..3)];
        let text = machine_text()
            .replace("\"mesh\": [2, 2]", &format!("\"mesh\": {mesh}"))
            .replace("\"stride\": 2", "\"stride\": 1")
            .replace(
                "\"l2\": {\"bytes\": 65536",
                &format!("\"l2\": {{\"bytes\": {bytes}"),
            );
        let label = format!("seed {seed}: {mesh}, {bytes} bytes, batch {batch}");
        let (machine, _) = Machine::read(&text).unwrap();
        let front = chipless_schedule::onnx::read(&network(seed), batch, &|_| None)
            .unwrap_or_else(|error| panic!("{label}: {error}"));
        let never = AtomicBool::new(false);
        let options = options(200, 1, seed, batch);
        let written = Written::of(&front, batch, true).unwrap();
        let of = (&front.network, &machine);
        let (_, best) = searched(&written, of, &options, &never, &mut |_| {})
            .unwrap_or_else(|error| panic!("{label}: {error}"));
        let network = Network::read(written.network_text().as_bytes(), &Limits::default()).unwrap();
        assert_eq!(errors(&best.text, Some(&network)), [""; 0], "{label}");
    }
}
