//! Every operation once, and again with damaged bytes.

use super::*;
use chipless_model::Kind;
use proptest::prelude::*;

/// A block that runs.
#[expect(
    clippy::match_same_arms,
    clippy::too_many_lines,
    reason = "a table: one line for each operation"
)]
fn sample(operation: Operation) -> Block {
    let tensors = |elements: &[u32], dims: &[u32]| {
        elements
            .iter()
            .fold(block(), |block, element| block.tensor(*element, dims))
    };
    let image = |elements: &[u32]| tensors(elements, &[3, 4, 2, 1]);
    match operation {
        Operation::BitwiseAnd | Operation::BitwiseOr | Operation::BitwiseXor => image(&[I32; 3]),
        Operation::AdaptiveAveragePool => block()
            .tensor(F16, &[3, 4, 2, 1])
            .tensor(I32, &[2])
            .tensor(F16, &[1, 1, 2, 1]),
        Operation::AdaptiveMaxPool => block()
            .tensor(F16, &[3, 4, 2, 1])
            .tensor(I32, &[2])
            .tensor(F16, &[1, 1, 2, 1])
            .tensor(I32, &[1, 1, 2, 1]),
        Operation::BatchToSpace => block()
            .tensor(F16, &[3, 2, 2, 4])
            .tensor(F16, &[6, 4, 2, 1])
            .longs(&[1, 1, 2, 2, 77])
            .longs(&[0; 10]),
        Operation::BitwiseNot => image(&[I32; 2]),
        Operation::Bucketize => block()
            .tensor(F16, &[3, 4])
            .tensor(F16, &[5])
            .tensor(I32, &[3, 4])
            .long(1),
        Operation::Convolution => block()
            .tensor(F16, &[3, 4, 2, 1])
            .tensor(F16, &[3, 3, 2, 3])
            .tensor(F16, &[3, 4, 3, 1])
            .longs(&[1; 9]),
        Operation::CtcGreedyDecoder => block()
            .tensor(F16, &[3, 2, 4])
            .tensor(F16, &[2, 4])
            .tensor(F16, &[1, 1, 4, 2])
            .long(1),
        Operation::EmbeddingBagPacked => block()
            .tensor(F16, &[3, 4])
            .tensor(I32, &[2, 2])
            .tensor(F16, &[3, 2])
            .long(i64::MAX),
        Operation::EmbeddingBagOffsets => block()
            .tensor(F16, &[3, 4])
            .tensor(I32, &[5])
            .tensor(I32, &[2])
            .tensor(F16, &[3, 2])
            .longs(&[i64::MAX, -1]),
        Operation::FakeQuantize => (0..4)
            .fold(image(&[F16]), |block, _| block.tensor(F32, &[1, 1, 1, 1]))
            .tensor(F16, &[3, 4, 2, 1])
            .longs(&[16, -1]),
        Operation::DynamicReshape => block()
            .bounded(F16, &[1, 1], 0x4001_8000)
            .tensor(I32, &[2])
            .bounded(F16, &[1, 1], 0x4001_8040)
            .long(0),
        Operation::Fourier | Operation::InverseFourier => block()
            .tensor(F16, &[2, 3, 2])
            .tensor(F16, &[18])
            .tensor(F16, &[2, 3, 2])
            .longs(&[1, 1]),
        Operation::InverseRealFourier => block()
            .tensor(F16, &[2, 2, 2])
            .tensor(F16, &[18])
            .tensor(F16, &[3, 2])
            .longs(&[1, 1]),
        Operation::RealFourier => block()
            .tensor(F16, &[3, 2])
            .tensor(F16, &[18])
            .tensor(F16, &[2, 2, 2])
            .longs(&[1, 0]),
        Operation::FullyConnected => block()
            .tensor(F16, &[3, 4])
            .tensor(F16, &[3, 5])
            .tensor(F16, &[5, 4])
            .long(i64::MAX),
        Operation::Gather => block()
            .tensor(F16, &[3, 4, 2, 1])
            .tensor(I32, &[1, 1, 2, 1])
            .tensor(F16, &[3, 2, 2, 1])
            .longs(&[1, 1, 2]),
        Operation::GruSequence => block()
            .tensor(F16, &[3, 4])
            .tensor(F16, &[2])
            .tensor(F16, &[3, 6])
            .tensor(F16, &[2, 6])
            .tensor(F16, &[6])
            .tensor(F16, &[2, 4])
            .tensor(F16, &[2])
            .longs(&[2, 0, 4, 0])
            .float(0.0),
        Operation::GruSequenceLastPart => block()
            .tensor(F16, &[6, 4])
            .tensor(F16, &[2])
            .tensor(F16, &[2, 6])
            .tensor(F16, &[6])
            .tensor(F16, &[2, 4])
            .tensor(F16, &[2])
            .longs(&[2, 0, 4, 0])
            .float(0.0),
        Operation::ImagePatches => block()
            .tensor(F16, &[5, 4, 2, 1])
            .tensor(F16, &[2, 1, 18, 1])
            .longs(&[3, 3, 2, 2, 1, 1, 2]),
        Operation::I420ToRgb => block()
            .tensor(U8, &[1, 4, 2, 1])
            .tensor(U8, &[1, 2, 1, 1])
            .tensor(U8, &[1, 2, 1, 1])
            .tensor(U8, &[3, 4, 2, 1])
            .long(0),
        Operation::Nv12ToRgb => block()
            .tensor(U8, &[1, 4, 2, 1])
            .tensor(U8, &[2, 2, 1, 1])
            .tensor(U8, &[3, 4, 2, 1])
            .long(0),
        Operation::Roll => block()
            .tensor(F16, &[3, 4, 2, 1])
            .tensor(I32, &[2])
            .tensor(I32, &[2])
            .tensor(F16, &[3, 4, 2, 1]),
        Operation::LeakyRelu => image(&[F16; 2]).float(0.1),
        Operation::LstmGates => block()
            .tensor(F16, &[8])
            .tensor(F16, &[2])
            .tensor(F16, &[2])
            .tensor(F16, &[2]),
        Operation::NotEqual => image(&[F16, F16, I8]),
        Operation::Pad => block()
            .tensor(F16, &[3, 2])
            .tensor(F16, &[6, 3])
            .longs(&[i64::MIN, 17, 1, 0, 2, 1])
            .float(0.5)
            .long(0),
        Operation::Permute => block()
            .tensor(F16, &[3, 2])
            .tensor(F16, &[2, 3])
            .longs(&[1, 0]),
        Operation::RoiPooling => block()
            .tensor(F16, &[3, 4, 2, 1])
            .tensor(F16, &[5, 1])
            .tensor(F16, &[2, 2, 2, 1])
            .longs(&[2, 2])
            .float(0.0)
            .long(0),
        Operation::ScatterUpdate => block()
            .tensor(F16, &[3, 4])
            .tensor(I32, &[2])
            .tensor(F16, &[3, 2])
            .tensor(F16, &[3, 4])
            .long(1),
        Operation::ShiftLeft | Operation::ShiftRight => image(&[I32; 3]),
        Operation::SpaceToBatch => block()
            .tensor(F16, &[6, 4, 2, 1])
            .tensor(F16, &[3, 2, 2, 4])
            .longs(&[1, 1, 2, 2, 77])
            .longs(&[0; 10]),
        Operation::Clamp | Operation::HardSigmoid | Operation::Selu => {
            image(&[F16; 2]).float(-1.0).float(1.0)
        }
        Operation::Elu | Operation::Swish => image(&[F16; 2]).float(1.0),
        Operation::Round => image(&[F16; 2]).long(0),
        Operation::CumulativeSum => image(&[F16; 2]).longs(&[1, 0, 0]),
        Operation::Equal
        | Operation::Greater
        | Operation::GreaterOrEqual
        | Operation::Less
        | Operation::LessOrEqual => image(&[F16, F16, I8]),
        Operation::Dequantize => image(&[I8, F16])
            .longs(&[2, 2])
            .halves(&[1.0, 2.0])
            .halves(&[0.0, 1.0]),
        Operation::DynamicQuantize => block()
            .tensor(F32, &[6])
            .tensor(F32, &[1])
            .tensor(F32, &[1])
            .tensor(U8, &[6])
            .tensor(F32, &[1])
            .tensor(U8, &[1])
            .longs(&[i64::MIN, 63]),
        Operation::GatherElements => image(&[F16, I32, F16]).long(1),
        Operation::GatherNd => block()
            .tensor(F16, &[24])
            .tensor(I32, &[2, 3])
            .tensor(F16, &[3, 3])
            .long(0)
            .word(3)
            .words(&[3, 4, 2, 0, 0]),
        Operation::GridSample => block()
            .tensor(F16, &[3, 4, 2, 1])
            .tensor(F16, &[2, 2, 2, 1])
            .tensor(F16, &[2, 2, 2, 1])
            .longs(&[0, 1, 2]),
        Operation::GruGates => block()
            .tensor(F16, &[6])
            .tensor(F16, &[2])
            .tensor(F16, &[6])
            .tensor(F16, &[8])
            .tensor(F16, &[2]),
        Operation::Interpolate => {
            let block = block()
                .tensor(F16, &[3, 4, 2, 1])
                .tensor(F16, &[6, 5, 2, 1])
                .longs(&[i64::MAX, 3, 0, 0, 0, 0, 0]);
            block
                .longs(&[3, 4, 2, 1, 6, 5, 2, 1, 2, 3])
                .float(-0.75)
                .longs(&[0; 9])
                .float(0.0)
                .float(0.0)
        }
        Operation::LogSoftmax | Operation::Softmax | Operation::ExpStabilized => {
            image(&[F16; 2]).words(&[1; 16])
        }
        Operation::Lrn => image(&[F16; 2])
            .float(0.5)
            .float(0.75)
            .float(1.0)
            .longs(&[3, 1, 2]),
        Operation::LstmSequence | Operation::LstmSequenceDpu => {
            let block = block()
                .tensor(F16, &[8, 3])
                .tensor(F16, &[2])
                .tensor(F16, &[2])
                .tensor(F16, &[4, 2, 2])
                .tensor(F16, &[4, 2]);
            let block = block
                .tensor(I32, &[2])
                .tensor(F16, &[2, 3])
                .tensor(F16, &[2])
                .tensor(F16, &[2]);
            block.longs(&[i64::MIN, 0x3f7, 0, -1, -1])
        }
        Operation::MaxPool | Operation::AveragePool => {
            image(&[F16; 2]).longs(&[1, 3, 3, 1, 1, 1, 0, 1, 1, 0, 1, 1, 0])
        }
        Operation::AveragePoolDilated => {
            image(&[F16; 2]).longs(&[1, 3, 3, 1, 1, 1, 1, 2, 1, 0, 2, 1, 0, 2, 1, 0])
        }
        Operation::MaxPoolIndices => {
            let block =
                image(&[F16, F16, I32]).longs(&[1, 3, 3, 1, 1, 1, 1, 1, 1, 0, 1, 1, 0, 1, 1, 0]);
            block.longs(&[1, 1, 2, 4, 3, 1, 1, 2, 4, 3]).longs(&[0; 10])
        }
        Operation::Mvn1 => image(&[F16; 2]).longs(&[0, -1]).float(0.5),
        Operation::Mvn6 => image(&[F16; 4])
            .longs(&[i64::MIN, 15, 1, 0])
            .float(0.5)
            .longs(&[2, 0, 1]),
        Operation::NonMaxSuppression => non_max_suppression(),
        Operation::NormalizeL2 => image(&[F16; 2]).float(0.5).longs(&[0, 2, 1, 3]),
        Operation::OneHot => block()
            .tensor(I32, &[4])
            .tensor(F16, &[3, 4])
            .longs(&[1, 3])
            .float(1.0)
            .float(0.0)
            .long(1),
        Operation::PositionSensitiveRoiPooling => block()
            .tensor(F16, &[3, 4, 8, 1])
            .tensor(F16, &[5, 1])
            .tensor(F16, &[2, 2, 2, 1])
            .long(2)
            .float(1.0)
            .longs(&[2, 1, 1, 1]),
        Operation::RegionYolo => block()
            .tensor(F16, &[2, 2, 10, 1])
            .tensor(F16, &[2, 2, 10, 1])
            .longs(&[2, 2, 2, 0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 3]),
        Operation::ReorgYolo => block()
            .tensor(F16, &[4, 2, 4, 1])
            .tensor(F16, &[2, 1, 16, 1])
            .long(2),
        Operation::ReduceAnd
        | Operation::ReduceOr
        | Operation::ReduceL1
        | Operation::ReduceL2
        | Operation::ReduceMax
        | Operation::ReduceMean
        | Operation::ReduceMin
        | Operation::ReduceProd
        | Operation::ReduceSum => block()
            .tensor(F16, &[3, 4, 2])
            .tensor(F16, &[1, 4, 1])
            .longs(&[1, 2, 0, 2]),
        Operation::ReverseSequence => block()
            .tensor(F16, &[3, 4])
            .tensor(I32, &[3])
            .tensor(F16, &[3, 4])
            .longs(&[0, 1]),
        Operation::RmsNorm => image(&[F16; 3]).float(0.5).long(0),
        Operation::RoiAlign => {
            let block = block()
                .tensor(F16, &[3, 4, 2, 2])
                .tensor(F16, &[4, 2])
                .tensor(I32, &[2])
                .tensor(F16, &[2, 2, 2, 2]);
            block.longs(&[2, 2, 0]).float(1.0).longs(&[0, 1])
        }
        Operation::RotaryEmbedding | Operation::RotaryEmbeddingInterleaved => {
            tensors(&[F16; 4], &[4, 2]).long(1)
        }
        Operation::RotaryEmbeddingHalf | Operation::RotaryEmbeddingHalfInterleaved => block()
            .tensor(F16, &[4, 2])
            .tensor(F16, &[2, 2])
            .tensor(F16, &[2, 1])
            .tensor(F16, &[4, 2])
            .long(1),
        Operation::Tile => block()
            .tensor(F16, &[2, 1])
            .tensor(F16, &[4, 3])
            .longs(&[2, 3, 2]),
        Operation::ScaledDotProductAttention => block()
            .tensor(F16, &[4, 2, 3])
            .tensor(F16, &[4, 3, 3])
            .tensor(F16, &[2, 3, 3])
            .tensor(F16, &[3, 2, 1])
            .tensor(F16, &[1])
            .tensor(U8, &[9])
            .tensor(F16, &[2, 2, 3])
            .tensor(U8, &[9])
            .longs(&[i64::MIN, 0xdf, 1]),
        Operation::ScatterElements => image(&[F16, I32, F16, F16]).longs(&[1, 1, -1]),
        Operation::ScatterNd => block()
            .tensor(F16, &[3, 2, 2])
            .tensor(I32, &[2, 2])
            .tensor(F16, &[3, 2])
            .tensor(F16, &[3, 2, 2]),
        Operation::ShapeOf => block().tensor(I32, &[4]).tensor(I32, &[4]),
        Operation::StridedSlice => image(&[F16, F16])
            .long(i64::MAX)
            .longs(&[0; 12])
            .longs(&[1; 3]),
        Operation::TopK => block()
            .tensor(F16, &[3, 4])
            .tensor(U8, &[9])
            .tensor(F16, &[3, 2])
            .tensor(I32, &[3, 2])
            .tensor(U8, &[9])
            .longs(&[1, 0, 1, 2]),
        other => image(&[F16; 4][..other.roles().len()]),
    }
}

/// Four boxes of one batch, two classes, three rows of output.
fn non_max_suppression() -> Block {
    let block = block()
        .tensor(F16, &[4, 4, 1])
        .tensor(F16, &[4, 2, 1])
        .tensor(F16, &[1])
        .tensor(F16, &[1])
        .tensor(U8, &[9]);
    let block = block
        .tensor(I32, &[3, 8])
        .tensor(F16, &[3, 8])
        .tensor(I32, &[1])
        .tensor(U8, &[9]);
    block.long(4).float(0.0).longs(&[0, 1])
}

/// Values for every input: whole numbers from 0 where indices are wanted.
fn inputs(invocation: &Invocation) -> Vec<Tensor> {
    let tensor = |shape: &Shape| {
        let count = shape.elements() as usize;
        let values = match shape.element.kind() {
            // Sorted, so that they can be bounds, and a batch of 0.
            Kind::Float if count == 5 => Values::Float(vec![0.0, 0.25, 0.5, 1.0, 1.5]),
            Kind::Float => Values::Float(data(count)),
            // Sizes that an output of one place has.
            Kind::Signed | Kind::Unsigned if count == 2 => Values::Integer(vec![1, 1]),
            Kind::Signed | Kind::Unsigned => {
                Values::Integer((0..count as i64).map(|at| at % 2).collect())
            }
        };
        Tensor {
            shape: shape.clone(),
            values,
        }
    };
    invocation
        .inputs
        .iter()
        .map(|input| tensor(&input.shape))
        .collect()
}

#[test]
fn every_operation_runs() {
    for operation in Operation::ALL {
        let invocation = sample(*operation)
            .decode(*operation)
            .unwrap_or_else(|error| panic!("{operation}: {error}"));
        let outputs = evaluate(&invocation, &inputs(&invocation));
        let outputs = outputs.unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(outputs.len(), invocation.outputs.len(), "{operation}");
        for (output, expected) in outputs.iter().zip(&invocation.outputs) {
            assert_eq!(output.shape, expected.shape, "{operation}");
        }
    }
}

fn any_operation() -> impl Strategy<Value = Operation> {
    prop::sample::select(Operation::ALL)
}

proptest! {
    #![proptest_config(chipless_rounds::cases(2000))]

    /// No damage to a good block makes decoding or evaluation panic or give other outputs than promised.
    #[test]
    fn damage_does_not_panic(
        operation in any_operation(),
        bytes in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![3 => 0u8..6, 1 => any::<u8>()]), 0..3),
        scalar in prop::option::of((any::<prop::sample::Index>(), prop_oneof![4 => -1i64..6, 1 => any::<i64>(), 1 => Just(i64::MAX)])),
    ) {
        let mut block = sample(operation);
        if let Some((at, value)) = scalar && block.scalars.len() >= 8 {
            let at = at.index(block.scalars.len() / 4 - 1) * 4;
            block.scalars[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        let mut section = block.bytes();
        for (at, value) in bytes {
            let at = at.index(section.len());
            section[at] = value;
        }
        Section::new(&section, BASE).leading_tensors(0);
        if let Ok(invocation) = Section::new(&section, BASE).decode(operation, 0)
            && invocation.elements() < 1 << 16
            && let Ok(outputs) = evaluate(&invocation, &inputs(&invocation))
        {
            for (output, expected) in outputs.iter().zip(&invocation.outputs) {
                prop_assert!(Tensor::new(expected.shape.clone(), output.values.clone()).is_ok());
            }
        }
    }

    #[test]
    fn noise_is_refused(operation in any_operation(), bytes in prop::collection::vec(any::<u8>(), 0..400), offset in 0u64..420) {
        let section = Section::new(&bytes, BASE);
        prop_assert!(section.decode(operation, offset).is_err());
        prop_assert!(section.leading_tensors(offset).len() < 16);
    }
}
