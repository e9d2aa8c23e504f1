//! Nothing beats the bounds: exhaustive enumeration of small networks tries to.

use crate::machine;
use chipless_schedule::network::{Kind, Layer, Network};
use chipless_schedule::tree::{Branch, Cut, Leaf, Tree};
use chipless_schedule::{evaluate, lower_bounds};

fn layer(
    name: &str,
    kind: Kind,
    output: [i64; 3],
    channels: i64,
    kernel: i64,
    previous: Vec<usize>,
) -> Layer {
    Layer {
        name: name.to_owned(),
        kind,
        output,
        channels,
        kernel: [kernel, kernel],
        stride: [1, 1],
        groups: 1,
        operands: if kind == Kind::Eltwise { 2 } else { 1 },
        order: [0, 1, 2],
        external: previous.is_empty().then_some([8, 6, 6]),
        previous,
        weights_from: Vec::new(),
    }
}

fn join() -> Network {
    let layers = vec![
        layer("a", Kind::Conv, [8, 6, 6], 8, 1, vec![]),
        layer("b", Kind::Conv, [8, 6, 6], 8, 3, vec![0]),
        layer("c", Kind::Eltwise, [8, 6, 6], 0, 1, vec![0, 1]),
    ];
    Network::new("join".to_owned(), layers).unwrap()
}

/// Partitions over so many cores.
fn partitions(cores: u16) -> Vec<[u16; 4]> {
    let mut all = Vec::new();
    for k in 1..=cores {
        for b in 1..=cores {
            for h in 1..=cores {
                for w in 1..=cores {
                    if k * b * h * w == cores {
                        all.push([k, b, h, w]);
                    }
                }
            }
        }
    }
    all
}

#[test]
fn enumeration_does_not_beat_the_bounds() {
    let (network, machine, batch) = (join(), machine(), 2);
    let bounds = lower_bounds(&network, &machine, batch);
    let lists: [&[u16]; 6] = [&[0], &[3], &[0, 1], &[2, 3], &[0, 1, 2, 3], &[3, 2, 1, 0]];
    let mut places = Vec::new();
    for list in lists {
        places.extend(
            partitions(list.len() as u16)
                .into_iter()
                .map(|part| (part, list.to_vec())),
        );
    }
    let leaf = |name: &str, batch: i64, (part, cores): &([u16; 4], Vec<u16>)| {
        Tree::Leaf(Leaf {
            layer: name.to_owned(),
            batch,
            part: Some(*part),
            order: None,
            cores: Some(cores.clone()),
        })
    };
    let branch = |cut: Cut, batch: i64, groups: i64, children: Vec<Tree>| {
        Tree::Cut(Branch {
            cut,
            batch,
            groups,
            children,
        })
    };
    let mut legal = 0;
    for (first, place) in places.iter().enumerate() {
        for (second, other) in places.iter().enumerate() {
            let third = &places[(first * 7 + second * 3) % places.len()];
            for (cut, groups) in [
                (Cut::Time, 1),
                (Cut::Time, 2),
                (Cut::Space, 1),
                (Cut::Space, 2),
            ] {
                let inner = batch / groups;
                let flat = vec![
                    leaf("a", inner, place),
                    leaf("b", inner, other),
                    leaf("c", inner, third),
                ];
                let nested = vec![
                    leaf("a", inner, place),
                    branch(
                        Cut::Time,
                        inner,
                        1,
                        vec![leaf("b", inner, other), leaf("c", inner, third)],
                    ),
                ];
                let apart: Vec<Tree> = flat.clone();
                for root in [
                    branch(Cut::Time, batch, 1, vec![branch(cut, batch, groups, flat)]),
                    branch(
                        Cut::Time,
                        batch,
                        1,
                        vec![branch(cut, batch, groups, nested)],
                    ),
                    branch(Cut::Time, batch, groups, apart),
                ] {
                    if let Ok((cost, _)) = evaluate(&network, &machine, batch, &root) {
                        legal += 1;
                        assert!(cost.energy >= bounds.energy, "{root:?}");
                        assert!(cost.delay as f64 >= bounds.delay, "{root:?}");
                        assert!(cost.dram >= bounds.dram, "{root:?}");
                    }
                }
            }
        }
    }
    assert!(legal > 5000, "{legal}");
}
