//! Several images of a network in half precision.
//!
//! The layers are those of one image, and a schedule has each of them take all images, so that weights are loaded once. A network whose
//! file leaves the number of images open may let one image change the result of another: it is computed for two images first, and the
//! second compared with the same image alone.

use crate::compare;
use crate::front::{Declared, Front};
use crate::import::{self, Shapes};
use crate::onnx::{self, Beside, Refused, proto};

/// A network for several images.
#[derive(Debug)]
pub(crate) struct Several {
    pub(crate) front: Front,
    /// Images that each layer takes.
    pub(crate) batch: i64,
    /// Why it has layers for each image.
    pub(crate) repeated: Option<String>,
}

/// Two results of the same numbers in single precision are no further apart: sums may have another order.
const SAME: f64 = 1e-4;

/// A network for so many images, more than one.
pub(crate) fn read(
    bytes: &[u8],
    (shapes, images): (&Shapes, i64),
    beside: Beside<'_>,
) -> Result<Several, Refused> {
    let Ok(one) = import::read(bytes, &of_one(bytes, shapes, images), beside) else {
        // Where the model takes no single one, its first axis counts steps or rows, which it needs together.
        return Ok(Several {
            front: import::read(bytes, shapes, beside)?,
            batch: 1,
            repeated: None,
        });
    };
    let why = match shared(bytes, &one, beside) {
        Ok(()) => {
            return Ok(Several {
                front: of_images(one, images),
                batch: images,
                repeated: None,
            });
        }
        Err(why) => why,
    };
    // Inputs without an axis of images are given as they are, which the model refuses or takes.
    let mut given = given(&one, images);
    given.extend(
        shapes
            .iter()
            .filter(|(_, shape)| shape.first() != Some(&1))
            .map(|(name, shape)| (name.clone(), shape.clone())),
    );
    let front = import::read(bytes, &given, beside)?;
    // Layers that only bring images together are none that is repeated.
    let repeats = front.network.layers.len() * 2 > one.network.layers.len() * 3;
    Ok(Several {
        front,
        batch: 1,
        repeated: why.filter(|_| repeats),
    })
}

/// The shapes of one image of so many. A first dimension that the model fixes counts something else.
pub fn of_one(bytes: &[u8], shapes: &Shapes, images: i64) -> Shapes {
    let mut shapes = shapes.clone();
    // To know which dimensions are open, the whole model is decoded.
    if images == 1 || shapes.is_empty() {
        return shapes;
    }
    let open = onnx::of_images(bytes);
    for (_, shape) in shapes.iter_mut().filter(|(name, _)| open.contains(name)) {
        if let [first, _, ..] = &mut shape[..]
            && *first == images
        {
            *first = 1;
        }
    }
    shapes
}

/// The shapes of the inputs, with so many images where one has an axis of them.
fn given(one: &Front, images: i64) -> Shapes {
    let declared = one
        .inputs
        .iter()
        .filter_map(|input| input.declared.as_ref());
    let shape = |of: &[i64]| match of {
        [1, rest @ ..] if !rest.is_empty() => [&[images], rest].concat(),
        all => all.to_vec(),
    };
    declared
        .map(|input| (input.name.clone(), shape(&input.shape)))
        .collect()
}

/// The network of one image for several.
fn of_images(mut one: Front, images: i64) -> Front {
    let inputs = one
        .inputs
        .iter_mut()
        .filter_map(|input| input.declared.as_mut());
    for declared in inputs.chain(&mut one.declared) {
        declared.shape[0] *= images;
    }
    one
}

/// Whether each layer can take all images; if not, why. Where one image changes the result of another, the model wants it so, and nothing
/// is said: the first axis may as well count steps.
fn shared(bytes: &[u8], one: &Front, beside: Beside<'_>) -> Result<(), Option<String>> {
    let inputs = one
        .inputs
        .iter()
        .filter_map(|input| input.declared.as_ref());
    let counts = |shape: &[i64]| shape.len() > 1 && shape[0] == 1;
    let lacks_axis = |side: &str, name: &str, shape: &[i64]| {
        format!("the {side} `{name}` of the shape {shape:?} has no first axis that counts images")
    };
    let lacking = inputs
        .clone()
        .find(|input| !counts(&input.shape))
        .map(|input| lacks_axis("input", &input.name, &input.shape));
    let (graph, _) = onnx::decoded(bytes).map_err(|refused| Some(refused.to_string()))?;
    // A model for one image, or one that fails with two, says nothing else of several than to compute each alone.
    let two = if leaves_open(&graph) {
        import::read(bytes, &given(one, 2), beside).ok()
    } else {
        None
    };
    let Some(two) = two else {
        let output = one
            .declared
            .iter()
            .find(|output| output.shape.first() != Some(&1));
        let output = output.map(|output| lacks_axis("output", &output.name, &output.shape));
        return lacking.or(output).map_or(Ok(()), |why| Err(Some(why)));
    };
    let follows = |(of_one, of_two): &(&Declared, &Declared)| match &of_one.shape[..] {
        [first, rest @ ..] => [&[first * 2], rest].concat() == of_two.shape,
        [] => false,
    };
    // A model that drops axes of one has no axis of images for one image.
    let doubles = |pair: &(&Declared, &Declared)| {
        follows(pair) || [&[2], &pair.0.shape[..]].concat() == pair.1.shape
    };
    let outputs = || one.declared.iter().zip(&two.declared);
    if outputs().any(|pair| doubles(&pair)) {
        let random = compare::random(&two, 1)?;
        let second: Vec<Vec<f64>> = random
            .iter()
            .zip(inputs)
            .map(|(all, input)| {
                let first = if counts(&input.shape) {
                    all.len() / 2
                } else {
                    0
                };
                all[first..].to_vec()
            })
            .collect();
        let both = compare::outputs(&two, &random, compare::Precision::Single)?;
        let alone = compare::outputs(one, &second, compare::Precision::Single)?;
        for (pair, (both, alone)) in outputs().zip(both.iter().zip(&alone)) {
            if !doubles(&pair) {
                continue;
            }
            let difference = compare::difference(&pair.0.name, &both[both.len() / 2..], alone);
            if difference.relative_error.is_none_or(|error| error > SAME) {
                return Err(None);
            }
        }
    }
    let apart = outputs().find(|pair| !follows(pair)).map(|(of_one, of_two)| {
        format!(
            "the output `{}` has the shape {:?} for one image and {:?} for two: images do not follow each other in it",
            of_one.name, of_one.shape, of_two.shape
        )
    });
    lacking.or(apart).map_or(Ok(()), |why| Err(Some(why)))
}

/// Whether the file leaves the first dimension of an input open.
fn leaves_open(graph: &proto::Graph) -> bool {
    let fixed = |input: &proto::ValueInfo| {
        let tensor = input.r#type.as_ref()?.tensor_type.as_ref()?;
        tensor
            .shape
            .as_ref()?
            .dim
            .first()?
            .dim_value
            .filter(|extent| *extent > 0)
    };
    let is_constant = |input: &proto::ValueInfo| {
        graph
            .initializer
            .iter()
            .any(|tensor| tensor.name == input.name)
    };
    graph
        .input
        .iter()
        .any(|input| !is_constant(input) && fixed(input).is_none())
}
