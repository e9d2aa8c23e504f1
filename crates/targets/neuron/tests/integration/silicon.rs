//! Times of instructions on Trainium 2, against what the machine file makes of them.
//!
//! The figures are a third party's (github.com/Joejoedesu/voyager-compiler, `src/voyager_compiler/trainium/*_characterization.json`, October
//! 2026): completions of isolated instructions, evaluated at widths of their probes; of the tensor engine the time until the next may start.
//! docs/neuron-timing.md shows the errors.

use crate::lowering::{HOST, VARIABLES, duration, timed};

/// Engine, what is done, the instruction with # for its elements, and the measured nanoseconds by elements.
type Measured = (
    &'static str,
    &'static str,
    &'static str,
    &'static [(u32, f64)],
);

#[rustfmt::skip]
const MEASURED: &[Measured] = &[
    ("dve", "copy fp32", "COPY dst=fp32@0x8000[1,0,0,0][#,1,1,1] src=fp32@0x4000[1,0,0,0][#,1,1,1] channels=128", &[(128, 227.0), (2048, 1227.0), (512, 427.0)]),
    ("dve", "cast fp32 to bf16", "COPY dst=bf16@0x8000[1,0,0,0][#,1,1,1] src=fp32@0x4000[1,0,0,0][#,1,1,1] channels=128", &[(1, 156.0), (512, 423.0), (4096, 2293.0)]),
    ("dve", "cast fp32 to int32", "COPY dst=int32@0x8000[1,0,0,0][#,1,1,1] src=fp32@0x4000[1,0,0,0][#,1,1,1] channels=128", &[(64, 188.0), (512, 428.0)]),
    ("dve", "cast fp32 to uint8", "COPY dst=uint8@0x8000[1,0,0,0][#,1,1,1] src=fp32@0x4000[1,0,0,0][#,1,1,1] channels=128", &[(64, 187.0), (512, 444.0)]),
    ("dve", "copy bf16", "COPY dst=bf16@0x8000[1,0,0,0][#,1,1,1] src=bf16@0x4000[1,0,0,0][#,1,1,1] channels=128", &[(64, 173.0), (512, 293.0)]),
    ("dve", "cast bf16 to fp32", "COPY dst=fp32@0x8000[1,0,0,0][#,1,1,1] src=bf16@0x4000[1,0,0,0][#,1,1,1] channels=128", &[(64, 204.0), (512, 564.0)]),
    ("dve", "copy int32", "COPY dst=int32@0x8000[1,0,0,0][#,1,1,1] src=int32@0x4000[1,0,0,0][#,1,1,1] channels=128", &[(1, 137.0), (64, 179.0)]),
    ("dve", "copy fp32 from PSUM", "COPY dst=fp32@0x8000[1,0,0,0][#,1,1,1] src=fp32@psum+0x0[1,0,0,0][#,1,1,1] channels=128", &[(64, 223.0), (512, 691.0)]),
    ("dve", "cast fp32 to bf16 from PSUM", "COPY dst=bf16@0x8000[1,0,0,0][#,1,1,1] src=fp32@psum+0x0[1,0,0,0][#,1,1,1] channels=128", &[(64, 226.0), (512, 691.0)]),
    ("dve", "add bf16", "TENSOR_TENSOR dst=bf16@0xc000[1,0,0][#,1,1] src0=bf16@0x4000[1,0,0][#,1,1] src1=bf16@0x8000[1,0,0][#,1,1] op=add channels=128", &[(64, 195.0), (512, 426.0)]),
    ("dve", "add fp32 and bf16", "TENSOR_TENSOR dst=fp32@0xc000[1,0,0][#,1,1] src0=fp32@0x4000[1,0,0][#,1,1] src1=bf16@0x8000[1,0,0][#,1,1] op=add channels=128", &[(64, 227.0), (512, 692.0)]),
    ("dve", "add fp32", "TENSOR_TENSOR dst=fp32@0xc000[1,0,0][#,1,1] src0=fp32@0x4000[1,0,0][#,1,1] src1=fp32@0x8000[1,0,0][#,1,1] op=add channels=128", &[(2048, 2292.0)]),
    ("dve", "add bf16 into PSUM", "TENSOR_TENSOR dst=fp32@psum+0x0[1,0,0][#,1,1] src0=bf16@0x4000[1,0,0][#,1,1] src1=bf16@0x8000[1,0,0][#,1,1] op=add channels=128", &[(64, 221.0), (512, 687.0)]),
    ("dve", "add PSUM and bf16", "TENSOR_TENSOR dst=bf16@0xc000[1,0,0][#,1,1] src0=fp32@psum+0x0[1,0,0][#,1,1] src1=bf16@0x8000[1,0,0][#,1,1] op=add channels=128", &[(64, 211.0), (512, 679.0)]),
    ("dve", "reduce add fp32", "TENSOR_REDUCE dst=fp32@0x8000[1,0,0,0][1,1,1,1] src=fp32@0x4000[1,0,0,0][#,1,1,1] op=add dimensions=x channels=128", &[(64, 220.0), (512, 686.0), (8192, 8687.0)]),
    ("dve", "reduce max fp32", "TENSOR_REDUCE dst=fp32@0x8000[1,0,0,0][1,1,1,1] src=fp32@0x4000[1,0,0,0][#,1,1,1] op=max dimensions=x channels=128", &[(512, 687.0), (8192, 8686.0)]),
    ("dve", "reduce add bf16", "TENSOR_REDUCE dst=fp32@0x8000[1,0,0,0][1,1,1,1] src=bf16@0x4000[1,0,0,0][#,1,1,1] op=add dimensions=x channels=128", &[(256, 410.0), (4096, 4419.0)]),
    ("dve", "reduce add from PSUM", "TENSOR_REDUCE dst=fp32@0x8000[1,0,0,0][1,1,1,1] src=fp32@psum+0x0[1,0,0,0][#,1,1,1] op=add dimensions=x channels=128", &[(64, 224.0), (512, 691.0)]),
    ("dve", "reciprocal", "RECIPROCAL dst=fp32@0x8000[1][#] src=fp32@0x4000[1][#] channels=128", &[(64, 551.0), (1024, 6547.0), (2048, 12953.0)]),
    ("dve", "shuffle bf16", "STREAM_SHUFFLE dst=bf16@0x8000[1][#] src=bf16@0x4000[1][#] channels=32", &[(64, 209.0), (512, 678.0)]),
    ("dve", "memset fp32 in PSUM", "MEMSET dst=fp32@psum+0x0[1,0,0,0][#,1,1,1] value=0x0 channels=128", &[(64, 111.0), (512, 484.0)]),
    ("dve", "memset bf16", "MEMSET dst=bf16@0x4000[1,0,0,0][#,1,1,1] value=0x0 channels=128", &[(64, 111.0), (512, 484.0)]),
    ("act", "copy fp32", "COPY dst=fp32@0x8000[1,0,0,0][#,1,1,1] src=fp32@0x4000[1,0,0,0][#,1,1,1] channels=128", &[(64, 243.0), (1024, 1044.0), (2048, 1900.0)]),
    ("act", "cast fp32 to bf16", "COPY dst=bf16@0x8000[1,0,0,0][#,1,1,1] src=fp32@0x4000[1,0,0,0][#,1,1,1] channels=128", &[(512, 620.0), (8192, 7017.0)]),
    ("act", "copy bf16", "COPY dst=bf16@0x8000[1,0,0,0][#,1,1,1] src=bf16@0x4000[1,0,0,0][#,1,1,1] channels=128", &[(64, 246.0), (512, 617.0)]),
    ("act", "copy fp32 from PSUM", "COPY dst=fp32@0x8000[1,0,0,0][#,1,1,1] src=fp32@psum+0x0[1,0,0,0][#,1,1,1] channels=128", &[(64, 212.0), (512, 585.0)]),
    ("act", "exp fp32", "ACTIVATE dst=fp32@0xc000[1,0,0][#,1,1] src=fp32@0x4000[1,0,0][#,1,1] function=7 scale=1.0 bias_source=instruction channels=128", &[(64, 347.0), (512, 720.0), (8192, 7120.0)]),
    ("act", "log fp32", "ACTIVATE dst=fp32@0xc000[1,0,0][#,1,1] src=fp32@0x4000[1,0,0][#,1,1] function=7 scale=1.0 bias_source=instruction channels=128", &[(64, 340.0), (512, 720.0)]),
    ("act", "square fp32", "ACTIVATE dst=fp32@0xc000[1,0,0][#,1,1] src=fp32@0x4000[1,0,0][#,1,1] function=7 scale=1.0 bias_source=instruction channels=128", &[(512, 713.0), (8192, 7122.0)]),
    ("act", "exp fp32 to bf16 from PSUM", "ACTIVATE dst=bf16@0xc000[1,0,0][#,1,1] src=fp32@psum+0x0[1,0,0][#,1,1] function=7 scale=1.0 bias_source=instruction channels=128", &[(64, 314.0), (512, 750.0)]),
    ("act", "silu fp32 from PSUM", "ACTIVATE dst=fp32@0xc000[1,0,0][#,1,1] src=fp32@psum+0x0[1,0,0][#,1,1] function=7 scale=1.0 bias_source=instruction channels=128", &[(64, 345.0), (128, 430.0)]),
    ("act", "read the accumulator", "ACTIVATION_READ_ACCUMULATOR dst=fp32@0x4308[1][#] elements=1 channels=128", &[(1, 279.0)]),
    ("pe", "matmul fp32, 128 rows, issue", "MATMUL dst=fp32@psum+0x0[1,0,0][#,1,1] src=fp32@0x5000[1,0,0][#,1,1] rows=128 columns=128 sums=start+stop", &[(512, 879.0)]),
    ("pe", "matmul fp32, 64 rows, issue", "MATMUL dst=fp32@psum+0x0[1,0,0][#,1,1] src=fp32@0x5000[1,0,0][#,1,1] rows=64 columns=128 sums=start+stop", &[(512, 1707.0)]),
];

#[test]
fn instructions_take_about_as_long_as_on_trainium_2() {
    let mut errors = Vec::new();
    let mut table = String::new();
    for (engine, what, line, points) in MEASURED {
        for (elements, measured) in *points {
            let line = line.replace('#', &elements.to_string());
            let text = format!(
                "neff t trn2\n{HOST}\nsubgraph sg00\n{VARIABLES}\nengine {engine}\n{line}\n"
            );
            let ns = timed(&text, |program, outcome| {
                duration(program, outcome, &format!("sg00.{engine}[0]"))
            });
            let error = ns / measured - 1.0;
            table.push_str(&format!(
                "{engine} {what} {elements}: {ns:.0} ns, measured {measured:.0}, {:+.1} %\n",
                error * 100.0
            ));
            errors.push(error.abs());
        }
    }
    errors.sort_by(f64::total_cmp);
    let at = |part: f64| errors[((errors.len() - 1) as f64 * part).round() as usize];
    assert!(
        at(0.5) <= 0.05 && at(0.9) <= 0.15 && at(1.0) <= 0.35,
        "{table}"
    );
}
