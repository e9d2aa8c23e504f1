//! Times of instructions on Trainium 2, against what the machine file makes of them.
//!
//! The figures are a third party's (github.com/Joejoedesu/voyager-compiler, `src/voyager_compiler/trainium/*.json`, October 2026):
//! completions of isolated instructions; of the tensor engine the time until the next may start. Of most instructions only a straight line
//! through the medians is public, here at widths of the probes; of scans, of activations with a sum and of the accumulator the medians
//! themselves. "First campaign" are lines of 6 and 7 October, measured with other programs than the rest (`timing_trainium2.json`).
//!
//! A part gave the machine file its figures: the widths in the last column, the first and the last of the probes of one form for each
//! figure. The rest took no part. docs/neuron-timing.md shows the errors of the rest.

use crate::lowering::{HOST, VARIABLES, duration, timed};
use chipless_neuron::machine::Machine;

/// Engine, what is done, the instruction with # for its elements, the measured nanoseconds by elements, and the widths that gave figures.
type Measured = (
    &'static str,
    &'static str,
    &'static str,
    &'static [(u32, f64)],
    &'static [u32],
);

#[rustfmt::skip]
const MEASURED: &[Measured] = &[
    ("dve", "copy fp32", "COPY dst=fp32@0x8000[1,0,0,0][#,1,1,1] src=fp32@0x4000[1,0,0,0][#,1,1,1] channels=128", &[(128, 227.0), (2048, 1227.0), (512, 427.0)], &[]),
    ("dve", "cast fp32 to bf16", "COPY dst=bf16@0x8000[1,0,0,0][#,1,1,1] src=fp32@0x4000[1,0,0,0][#,1,1,1] channels=128", &[(1, 156.0), (512, 423.0), (4096, 2293.0)], &[1, 4096]),
    ("dve", "cast fp32 to int32", "COPY dst=int32@0x8000[1,0,0,0][#,1,1,1] src=fp32@0x4000[1,0,0,0][#,1,1,1] channels=128", &[(64, 188.0), (512, 428.0)], &[]),
    ("dve", "cast fp32 to uint8", "COPY dst=uint8@0x8000[1,0,0,0][#,1,1,1] src=fp32@0x4000[1,0,0,0][#,1,1,1] channels=128", &[(64, 187.0), (512, 444.0)], &[]),
    ("dve", "copy bf16", "COPY dst=bf16@0x8000[1,0,0,0][#,1,1,1] src=bf16@0x4000[1,0,0,0][#,1,1,1] channels=128", &[(64, 173.0), (512, 293.0)], &[64, 512]),
    ("dve", "cast bf16 to fp32", "COPY dst=fp32@0x8000[1,0,0,0][#,1,1,1] src=bf16@0x4000[1,0,0,0][#,1,1,1] channels=128", &[(64, 204.0), (512, 564.0)], &[64, 512]),
    ("dve", "copy int32", "COPY dst=int32@0x8000[1,0,0,0][#,1,1,1] src=int32@0x4000[1,0,0,0][#,1,1,1] channels=128", &[(1, 137.0), (64, 179.0)], &[]),
    ("dve", "copy fp32 from PSUM", "COPY dst=fp32@0x8000[1,0,0,0][#,1,1,1] src=fp32@psum+0x0[1,0,0,0][#,1,1,1] channels=128", &[(64, 223.0), (512, 691.0)], &[]),
    ("dve", "cast fp32 to bf16 from PSUM", "COPY dst=bf16@0x8000[1,0,0,0][#,1,1,1] src=fp32@psum+0x0[1,0,0,0][#,1,1,1] channels=128", &[(64, 226.0), (512, 691.0)], &[]),
    ("dve", "add bf16", "TENSOR_TENSOR dst=bf16@0xc000[1,0,0][#,1,1] src0=bf16@0x4000[1,0,0][#,1,1] src1=bf16@0x8000[1,0,0][#,1,1] op=add channels=128", &[(64, 195.0), (512, 426.0)], &[64, 512]),
    ("dve", "add fp32 and bf16", "TENSOR_TENSOR dst=fp32@0xc000[1,0,0][#,1,1] src0=fp32@0x4000[1,0,0][#,1,1] src1=bf16@0x8000[1,0,0][#,1,1] op=add channels=128", &[(64, 227.0), (512, 692.0)], &[64, 512]),
    ("dve", "add fp32", "TENSOR_TENSOR dst=fp32@0xc000[1,0,0][#,1,1] src0=fp32@0x4000[1,0,0][#,1,1] src1=fp32@0x8000[1,0,0][#,1,1] op=add channels=128", &[(2048, 2292.0)], &[]),
    ("dve", "add bf16 into PSUM", "TENSOR_TENSOR dst=fp32@psum+0x0[1,0,0][#,1,1] src0=bf16@0x4000[1,0,0][#,1,1] src1=bf16@0x8000[1,0,0][#,1,1] op=add channels=128", &[(64, 221.0), (512, 687.0)], &[]),
    ("dve", "add PSUM and bf16", "TENSOR_TENSOR dst=bf16@0xc000[1,0,0][#,1,1] src0=fp32@psum+0x0[1,0,0][#,1,1] src1=bf16@0x8000[1,0,0][#,1,1] op=add channels=128", &[(64, 211.0), (512, 679.0)], &[]),
    ("dve", "reduce add fp32", "TENSOR_REDUCE dst=fp32@0x8000[1,0,0,0][1,1,1,1] src=fp32@0x4000[1,0,0,0][#,1,1,1] op=add dimensions=x channels=128", &[(64, 220.0), (512, 686.0), (8192, 8687.0)], &[]),
    ("dve", "reduce max fp32", "TENSOR_REDUCE dst=fp32@0x8000[1,0,0,0][1,1,1,1] src=fp32@0x4000[1,0,0,0][#,1,1,1] op=max dimensions=x channels=128", &[(512, 687.0), (8192, 8686.0)], &[]),
    ("dve", "reduce add bf16", "TENSOR_REDUCE dst=fp32@0x8000[1,0,0,0][1,1,1,1] src=bf16@0x4000[1,0,0,0][#,1,1,1] op=add dimensions=x channels=128", &[(256, 410.0), (4096, 4419.0)], &[]),
    ("dve", "reduce add from PSUM", "TENSOR_REDUCE dst=fp32@0x8000[1,0,0,0][1,1,1,1] src=fp32@psum+0x0[1,0,0,0][#,1,1,1] op=add dimensions=x channels=128", &[(64, 224.0), (512, 691.0)], &[]),
    ("dve", "reciprocal", "RECIPROCAL dst=fp32@0x8000[1][#] src=fp32@0x4000[1][#] channels=128", &[(64, 551.0), (1024, 6547.0), (2048, 12953.0)], &[64, 2048]),
    ("dve", "shuffle bf16", "STREAM_SHUFFLE dst=bf16@0x8000[1][#] src=bf16@0x4000[1][#] channels=32", &[(64, 209.0), (512, 678.0)], &[]),
    ("dve", "memset fp32 in PSUM", "MEMSET dst=fp32@psum+0x0[1,0,0,0][#,1,1,1] value=0x0 channels=128", &[(64, 111.0), (512, 484.0)], &[]),
    ("dve", "memset bf16", "MEMSET dst=bf16@0x4000[1,0,0,0][#,1,1,1] value=0x0 channels=128", &[(64, 111.0), (512, 484.0)], &[64, 512]),
    ("act", "copy fp32", "COPY dst=fp32@0x8000[1,0,0,0][#,1,1,1] src=fp32@0x4000[1,0,0,0][#,1,1,1] channels=128", &[(64, 243.0), (1024, 1044.0), (2048, 1900.0)], &[]),
    ("act", "cast fp32 to bf16", "COPY dst=bf16@0x8000[1,0,0,0][#,1,1,1] src=fp32@0x4000[1,0,0,0][#,1,1,1] channels=128", &[(512, 620.0), (8192, 7017.0)], &[512, 8192]),
    ("act", "copy bf16", "COPY dst=bf16@0x8000[1,0,0,0][#,1,1,1] src=bf16@0x4000[1,0,0,0][#,1,1,1] channels=128", &[(64, 246.0), (512, 617.0)], &[]),
    ("act", "copy fp32 from PSUM", "COPY dst=fp32@0x8000[1,0,0,0][#,1,1,1] src=fp32@psum+0x0[1,0,0,0][#,1,1,1] channels=128", &[(64, 212.0), (512, 585.0)], &[]),
    ("act", "exp fp32", "ACTIVATE dst=fp32@0xc000[1,0,0][#,1,1] src=fp32@0x4000[1,0,0][#,1,1] function=7 scale=1.0 bias=0x100 bias_type=fp32 channels=128", &[(64, 347.0), (512, 720.0), (8192, 7120.0)], &[64, 8192]),
    ("act", "log fp32", "ACTIVATE dst=fp32@0xc000[1,0,0][#,1,1] src=fp32@0x4000[1,0,0][#,1,1] function=7 scale=1.0 bias=0x100 bias_type=fp32 channels=128", &[(64, 340.0), (512, 720.0)], &[]),
    ("act", "square fp32", "ACTIVATE dst=fp32@0xc000[1,0,0][#,1,1] src=fp32@0x4000[1,0,0][#,1,1] function=7 scale=1.0 bias=0x100 bias_type=fp32 channels=128", &[(512, 713.0), (8192, 7122.0)], &[]),
    ("act", "exp fp32 to bf16 from PSUM", "ACTIVATE dst=bf16@0xc000[1,0,0][#,1,1] src=fp32@psum+0x0[1,0,0][#,1,1] function=7 scale=1.0 bias=0x100 bias_type=fp32 channels=128", &[(64, 314.0), (512, 750.0)], &[]),
    ("act", "silu fp32 from PSUM", "ACTIVATE dst=fp32@0xc000[1,0,0][#,1,1] src=fp32@psum+0x0[1,0,0][#,1,1] function=7 scale=1.0 bias=0x100 bias_type=fp32 channels=128", &[(64, 345.0), (128, 430.0)], &[]),
    ("act", "read the accumulator", "ACTIVATION_READ_ACCUMULATOR dst=fp32@0x4308[1][#] elements=1 channels=128", &[(1, 279.0)], &[1]),
    ("pe", "matmul fp32, 128 rows, issue", "MATMUL dst=fp32@psum+0x0[1,0,0][#,1,1] src=fp32@0x5000[1,0,0][#,1,1] rows=128 columns=128 sums=start+stop", &[(512, 879.0)], &[]),
    ("pe", "matmul fp32, 64 rows, issue", "MATMUL dst=fp32@psum+0x0[1,0,0][#,1,1] src=fp32@0x5000[1,0,0][#,1,1] rows=64 columns=128 sums=start+stop", &[(512, 1707.0)], &[512]),
    ("dve", "scan fp32", "TENSOR_TENSOR_SCAN dst=fp32@0xc000[1][#] src0=fp32@0x4000[1][#] src1=fp32@0x8000[1][#] op0=multiply imm=0.0 imm_source=instruction imm_type=fp32 op1=add channels=128", &[(64, 291.0), (2048, 4424.0), (256, 691.0), (1024, 2291.0)], &[64, 2048]),
    ("act", "exp fp32 into the accumulator", "ACTIVATE dst=fp32@0xc000[1,0,0][#,1,1] src=fp32@0x4000[1,0,0][#,1,1] function=7 scale=1.0 bias=0x100 bias_type=fp32 channels=128", &[(64, 348.0), (256, 491.0), (1024, 1148.0), (2048, 2001.0)], &[]),
    ("dve", "copy fp32, first campaign", "COPY dst=fp32@0x8000[1,0,0,0][#,1,1,1] src=fp32@0x4000[1,0,0,0][#,1,1,1] channels=128", &[(128, 228.0), (512, 428.0)], &[]),
    ("act", "copy fp32, first campaign", "COPY dst=fp32@0x8000[1,0,0,0][#,1,1,1] src=fp32@0x4000[1,0,0,0][#,1,1,1] channels=128", &[(128, 297.0), (512, 617.0)], &[128, 512]),
    ("act", "copy fp32 from PSUM, first campaign", "COPY dst=fp32@0x8000[1,0,0,0][#,1,1,1] src=fp32@psum+0x0[1,0,0,0][#,1,1,1] channels=128", &[(128, 274.0), (512, 595.0)], &[128, 512]),
    ("dve", "add fp32, first campaign", "TENSOR_TENSOR dst=fp32@0xc000[1,0,0][#,1,1] src0=fp32@0x4000[1,0,0][#,1,1] src1=fp32@0x8000[1,0,0][#,1,1] op=add channels=128", &[(128, 292.0), (512, 692.0)], &[]),
    ("dve", "memset fp32, first campaign", "MEMSET dst=fp32@0x4000[1,0,0,0][#,1,1,1] value=0x0 channels=128", &[(128, 165.0), (512, 484.0)], &[]),
    ("dve", "reduce min fp32", "TENSOR_REDUCE dst=fp32@0x8000[1,0,0,0][1,1,1,1] src=fp32@0x4000[1,0,0,0][#,1,1,1] op=min dimensions=x channels=128", &[(64, 219.0), (512, 685.0)], &[]),
    ("act", "cast bf16 to fp32", "COPY dst=fp32@0x8000[1,0,0,0][#,1,1,1] src=bf16@0x4000[1,0,0,0][#,1,1,1] channels=128", &[(64, 243.0), (512, 617.0)], &[]),
    ("act", "copy int32", "COPY dst=int32@0x8000[1,0,0,0][#,1,1,1] src=int32@0x4000[1,0,0,0][#,1,1,1] channels=128", &[(64, 243.0), (256, 404.0)], &[]),
    ("act", "copy int32 from PSUM", "COPY dst=int32@0x8000[1,0,0,0][#,1,1,1] src=int32@psum+0x0[1,0,0,0][#,1,1,1] channels=128", &[(64, 227.0), (512, 621.0)], &[]),
    ("act", "cast fp32 to bf16 from PSUM", "COPY dst=bf16@0x8000[1,0,0,0][#,1,1,1] src=fp32@psum+0x0[1,0,0,0][#,1,1,1] channels=128", &[(64, 229.0), (512, 611.0)], &[]),
    ("act", "activate copy fp32", "ACTIVATE dst=fp32@0xc000[1,0,0][#,1,1] src=fp32@0x4000[1,0,0][#,1,1] function=7 scale=1.0 bias_source=instruction channels=128", &[(64, 255.5), (2048, 1909.2)], &[]),
    ("act", "activate copy fp32, scale read", "ACTIVATE dst=fp32@0xc000[1,0,0][#,1,1] src=fp32@0x4000[1,0,0][#,1,1] function=7 scale=0x200 scale_source=address bias_source=instruction channels=128", &[(64, 346.5), (512, 719.9)], &[]),
    ("act", "activate copy fp32, scale and bias read", "ACTIVATE dst=fp32@0xc000[1,0,0][#,1,1] src=fp32@0x4000[1,0,0][#,1,1] function=7 scale=0x200 scale_source=address bias=0x100 bias_type=fp32 channels=128", &[(64, 437.5), (8192, 7212.5)], &[]),
    ("act", "activate copy bf16", "ACTIVATE dst=bf16@0xc000[1,0,0][#,1,1] src=bf16@0x4000[1,0,0][#,1,1] function=7 scale=1.0 bias_source=instruction channels=128", &[(64, 270.7), (128, 323.8)], &[]),
    ("act", "activate copy bf16, scale and bias read", "ACTIVATE dst=bf16@0xc000[1,0,0][#,1,1] src=bf16@0x4000[1,0,0][#,1,1] function=7 scale=0x200 scale_source=address bias=0x100 bias_type=fp32 channels=128", &[(64, 427.7), (512, 799.0)], &[]),
    ("act", "activate copy fp32 to bf16", "ACTIVATE dst=bf16@0xc000[1,0,0][#,1,1] src=fp32@0x4000[1,0,0][#,1,1] function=7 scale=1.0 bias_source=instruction channels=128", &[(64, 239.2), (512, 616.9)], &[]),
    ("act", "activate copy fp32 to bf16, scale and bias read", "ACTIVATE dst=bf16@0xc000[1,0,0][#,1,1] src=fp32@0x4000[1,0,0][#,1,1] function=7 scale=0x200 scale_source=address bias=0x100 bias_type=fp32 channels=128", &[(64, 438.7), (512, 816.4)], &[]),
    ("act", "activate copy fp32 from PSUM", "ACTIVATE dst=fp32@0xc000[1,0,0][#,1,1] src=fp32@psum+0x0[1,0,0][#,1,1] function=7 scale=1.0 bias_source=instruction channels=128", &[(64, 217.4), (512, 606.9)], &[]),
    ("act", "activate copy fp32 from PSUM, scale and bias read", "ACTIVATE dst=fp32@0xc000[1,0,0][#,1,1] src=fp32@psum+0x0[1,0,0][#,1,1] function=7 scale=0x200 scale_source=address bias=0x100 bias_type=fp32 channels=128", &[(64, 407.9), (512, 797.4)], &[]),
    ("act", "activate copy fp32 to bf16 from PSUM, bias read", "ACTIVATE dst=bf16@0xc000[1,0,0][#,1,1] src=fp32@psum+0x0[1,0,0][#,1,1] function=7 scale=1.0 bias=0x100 bias_type=fp32 channels=128", &[(64, 315.7), (512, 686.5)], &[]),
    ("act", "activate copy fp32 into PSUM, scale read", "ACTIVATE dst=fp32@psum+0x0[1,0,0][#,1,1] src=fp32@0x4000[1,0,0][#,1,1] function=7 scale=0x200 scale_source=address bias_source=instruction channels=128", &[(1, 177.7), (64, 230.1), (512, 603.2)], &[1, 512]),
    ("act", "sqrt fp32", "ACTIVATE dst=fp32@0xc000[1,0,0][#,1,1] src=fp32@0x4000[1,0,0][#,1,1] function=7 scale=1.0 bias=0x100 bias_type=fp32 channels=128", &[(64, 340.0), (512, 720.0)], &[]),
    ("act", "rsqrt fp32", "ACTIVATE dst=fp32@0xc000[1,0,0][#,1,1] src=fp32@0x4000[1,0,0][#,1,1] function=7 scale=1.0 bias=0x100 bias_type=fp32 channels=128", &[(64, 334.3), (512, 720.5)], &[]),
    ("act", "exp bf16", "ACTIVATE dst=bf16@0xc000[1,0,0][#,1,1] src=bf16@0x4000[1,0,0][#,1,1] function=7 scale=1.0 bias=0x100 bias_type=fp32 channels=128", &[(64, 349.0), (4096, 3707.5)], &[]),
    ("act", "exp fp32 to bf16", "ACTIVATE dst=bf16@0xc000[1,0,0][#,1,1] src=fp32@0x4000[1,0,0][#,1,1] function=7 scale=1.0 bias=0x100 bias_type=fp32 channels=128", &[(64, 330.0), (2048, 2000.0)], &[]),
    ("act", "exp fp32, 4 partitions", "ACTIVATE dst=fp32@0xc000[1,0,0][#,1,1] src=fp32@0x4000[1,0,0][#,1,1] function=7 scale=1.0 bias=0x100 bias_type=fp32 channels=4", &[(64, 344.0), (512, 717.5)], &[]),
    ("dve", "shuffle uint8", "STREAM_SHUFFLE dst=uint8@0x8000[1][#] src=uint8@0x4000[1][#] channels=32", &[(64, 210.0), (512, 678.0)], &[]),
    ("dve", "reduce max bf16", "TENSOR_REDUCE dst=fp32@0x8000[1,0,0,0][1,1,1,1] src=bf16@0x4000[1,0,0,0][#,1,1,1] op=max dimensions=x channels=128", &[(256, 410.0), (4096, 4419.0)], &[]),
    ("dve", "reduce max fp32 over two axes, rows of 9", "TENSOR_REDUCE dst=fp32@0x30000[1,0,0,0][1,1,1,1] src=fp32@0x4000[1,9,0,0][9,#,1,1] op=max dimensions=xy channels=128", &[(64, 742.5), (4094, 38529.0)], &[]),
    ("dve", "memset int32", "MEMSET dst=int32@0x4000[1,0,0,0][#,1,1,1] value=0x0 channels=128", &[(64, 111.0), (256, 271.0)], &[]),
    ("dve", "memset fp32", "MEMSET dst=fp32@0x4000[1,0,0,0][#,1,1,1] value=0x0 channels=128", &[(1, 59.0)], &[]),
    ("dve", "memset uint16", "MEMSET dst=uint16@0x4000[1,0,0,0][#,1,1,1] value=0x0 channels=128", &[(1, 59.0)], &[]),
    ("dve", "memset int32 in PSUM", "MEMSET dst=int32@psum+0x0[1,0,0,0][#,1,1,1] value=0x0 channels=128", &[(64, 111.0), (512, 484.0)], &[]),
    ("dve", "copy int32 from PSUM", "COPY dst=int32@0x8000[1,0,0,0][#,1,1,1] src=int32@psum+0x0[1,0,0,0][#,1,1,1] channels=128", &[(64, 223.0), (512, 691.0)], &[]),
    ("dve", "reciprocal, 64 partitions", "RECIPROCAL dst=fp32@0x8000[1][#] src=fp32@0x4000[1][#] channels=64", &[(64, 551.5), (1024, 6547.0)], &[]),
    ("dve", "copy predicated scalar", "COPY_PREDICATED_SCALAR dst=fp32@0x8000[1,0,0][#,1,1] src=int32@0x4000[1,0,0][#,1,1] scalar=-1.5 scalar_type=fp32 channels=128", &[(64, 226.5), (1024, 1291.0)], &[]),
    ("pool", "affine select fp32", "TENSOR_SCALAR_AFFINE_SELECT dst=fp32@0x8000[1,0][#,1] src=fp32@0x4000[1,0][#,1] values=0[1,0,0,0][#,1,1,1] comparison=at_least fill_register=4 channels=128", &[(64, 231.0), (1024, 1043.0)], &[64, 1024]),
];

/// The time of an instruction by itself, in nanoseconds.
fn estimate(engine: &str, line: &str, elements: u32) -> f64 {
    let line = line.replace('#', &elements.to_string());
    let text =
        format!("neff t trn2\n{HOST}\nsubgraph sg00\n{VARIABLES}\nengine {engine}\n{line}\n");
    timed(&text, |program, outcome| {
        duration(program, outcome, &format!("sg00.{engine}[0]"))
    })
}

#[test]
#[expect(clippy::print_stdout, reason = "the errors are what people run it for")]
fn instructions_that_gave_no_figure_take_about_as_long_as_on_trainium_2() {
    let mut errors = Vec::new();
    let mut table = String::new();
    for (engine, what, line, points, fitted) in MEASURED {
        let mut own: Vec<f64> = Vec::new();
        for (elements, measured) in points.iter().filter(|(n, _)| !fitted.contains(n)) {
            let ns = estimate(engine, line, *elements);
            let error = ns / measured - 1.0;
            table.push_str(&format!(
                "{engine} {what} {elements}: {ns:.0} ns, measured {measured:.0}, {:+.1} %\n",
                error * 100.0
            ));
            own.push(error.abs());
        }
        errors.extend(own);
    }
    errors.sort_by(f64::total_cmp);
    let at = |part: f64| errors[((errors.len() - 1) as f64 * part).round() as usize];
    let all = format!(
        "{table}{} points, median {:.1} %, nine in ten within {:.1} %, largest {:.1} %",
        errors.len(),
        at(0.5) * 100.0,
        at(0.9) * 100.0,
        at(1.0) * 100.0
    );
    println!("{all}");
    assert!(errors.len() >= 100, "{all}");
    assert!(at(0.5) <= 0.02 && at(0.9) <= 0.1 && at(1.0) <= 0.2, "{all}");
}

#[test]
fn the_figures_are_those_of_the_points_that_were_fitted() {
    // A start and a time for each element, through the two points of a form.
    let fit = |engine: &str, what: &str| {
        let form = MEASURED.iter().find(|m| (m.0, m.1) == (engine, what));
        let (.., points, fitted) = form.expect("a form");
        let point = |n: u32| points.iter().find(|p| p.0 == n).expect("a point").1;
        let [first, last] = [fitted[0], fitted[fitted.len() - 1]];
        let slope = (point(last) - point(first)) / f64::from(last - first).max(1.0);
        (point(first) - slope * f64::from(first), slope)
    };
    let machine = Machine::named("trn2").expect("a machine");
    let (e, cycle) = (&machine.element_wise, 1e3 / machine.clock.vector);
    let cast = fit("dve", "cast fp32 to bf16");
    let memset = fit("dve", "memset bf16");
    let exp = fit("act", "exp fp32");
    let figures = [
        ("vector_start_ns", e.vector_start_ns, cast.0),
        (
            "vector_copy_speedup_32bit",
            e.vector_copy_speedup_32bit,
            cycle / cast.1,
        ),
        (
            "vector_copy_speedup_16bit",
            e.vector_copy_speedup_16bit,
            cycle / fit("dve", "copy bf16").1,
        ),
        (
            "vector_copy_speedup_widening",
            e.vector_copy_speedup_widening,
            cycle / fit("dve", "cast bf16 to fp32").1,
        ),
        (
            "vector_second_operand_factor",
            e.vector_second_operand_factor,
            fit("dve", "add fp32 and bf16").1 / cycle,
        ),
        (
            "vector_speedup_16bit",
            e.vector_speedup_16bit,
            cycle / fit("dve", "add bf16").1,
        ),
        (
            "reciprocal_cycles",
            e.reciprocal_cycles,
            fit("dve", "reciprocal").1 / cycle,
        ),
        (
            "scan_cycles",
            e.scan_cycles,
            fit("dve", "scan fp32").1 / cycle,
        ),
        ("memset_start_ns", e.memset_start_ns, memset.0),
        ("memset_cycles", e.memset_cycles, memset.1 / cycle),
        (
            "scalar_start_ns",
            e.scalar_start_ns,
            fit("act", "cast fp32 to bf16").0,
        ),
        (
            "activate_start_ns + operand_read_ns",
            e.activate_start_ns + e.operand_read_ns,
            exp.0,
        ),
        (
            "scalar_from_psum_ns",
            e.scalar_from_psum_ns,
            fit("act", "copy fp32, first campaign").0
                - fit("act", "copy fp32 from PSUM, first campaign").0,
        ),
        (
            "scalar_to_psum_ns",
            e.scalar_to_psum_ns,
            e.activate_start_ns + e.operand_read_ns
                - fit("act", "activate copy fp32 into PSUM, scale read").0,
        ),
        (
            "gpsimd_start_ns",
            e.gpsimd_start_ns,
            fit("pool", "affine select fp32").0,
        ),
        (
            "accumulator_ns",
            e.accumulator_ns,
            fit("act", "read the accumulator").0,
        ),
    ];
    for (name, figure, fitted) in figures {
        assert!(
            (figure / fitted - 1.0).abs() <= 0.05,
            "{name} is {figure}, the points give {fitted:.2}"
        );
    }
}
