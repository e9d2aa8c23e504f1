//! Every format.

use super::views::all;
use super::{Format, Slot};

all! {
    LoadWeights
    Matmul
    LoadWeightsMx
    MatmulMx
    Copy
    Reduce
    Memset
    TensorTensor
    TensorScalar
    ScalarTensorTensor
    Activate
    ActivateQuantize
    ReadAccumulator
    Iota
    AffineSelect
    RangeSelect
    Select
    CopyPredicatedScalar
    Statistics
    LoadValues
    MatchReplace
    QuantizeMx
    LoadTable
    Gather
    IndirectCopy
    SequenceBounds
    Nonzero
    CrossLaneReduce
    LoadMask
    Dropout
    CompareBranch
    Move
    RegisterOperation
    RegisterMemory
    RegisterVariable
    CoreBarrier
    Exchange
    EventSemaphore
    NoOperands
    Dma
    DmaExtension
    Trigger
    FunctionSet
    Named
    Raw
}
