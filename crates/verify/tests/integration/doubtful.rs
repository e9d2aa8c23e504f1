//! NEFFs that read bytes which nobody has written: a fault where they can change an output, and only there.

use crate::refusals::codes;

/// A program of one engine after another: `load` brings 32 bytes into each of the first 32 partitions, at 0x4000 of 64; `store` takes
/// some from `0x8000` of the first partition to the output of 32 bytes.
fn program(engine: &str, line: &str, store: &str) -> String {
    format!(
        "
neff padded trn2
input  x   uint8 [1024]
output out uint8 [32]
subgraph sg00
queue q dynamic owner=sp queues=16 semaphores=8,9
var SB  state-buffer
var x   input
var out output
engine sp
PSEUDO_DMA_DIRECT2D dst=uint8@var[SB]+0x4000[262144,1][32,1]*32 src=uint8@var[x]+0x0[32,1][32,1]*32 $S[8]+=16@complete
PSEUDO_DMA_DIRECT2D dst=uint8@var[out]+0x0[32,1][1,1]*32 src=uint8@var[SB]+{store}[32,1][1,1]*32 $S[6]>=1 $S[9]+=16@complete
NOP $S[9]>=16
engine {engine}
NOP $S[8]>=16
{line} $S[6]++@complete
"
    )
}

fn is_clean(engine: &str, line: &str, store: &str) -> bool {
    let found = codes(&program(engine, line, store), |_| {});
    assert!(
        found.is_empty() || found == ["read-before-write"],
        "{line}: {found:?}"
    );
    found.is_empty()
}

/// Instructions on 16 elements of which the first eight are there, or on 64 partitions of which 32 are.
#[test]
fn what_is_computed_from_missing_bytes_matters_where_it_is_used() {
    let wide = "dst=fp32@0x8000[1,0,0,0][16,1,1,1] src=fp32@0x4000[1,0,0,0][16,1,1,1] channels=32";
    let tall = "dst=fp32@0x8000[1,0,0,0][8,1,1,1] src=fp32@0x4000[1,0,0,0][8,1,1,1] channels=64";
    for (used, padding, line) in [
        ("0x8000", "0x8020", format!("COPY {wide}")),
        ("0x8000", "0x808000", format!("COPY {tall}")),
        (
            "0x8000",
            "0x8020",
            "TENSOR_SCALAR dst=fp32@0x8000[1,0,0][16,1,1] src=fp32@0x4000[1,0,0][16,1,1] op0=add imm0=1.0 channels=32".into(),
        ),
        (
            "0x8000",
            "0x808000",
            "TENSOR_CUMULATIVE dst=fp32@0x8000[1,0,0,0][8,1,1,1] src=fp32@0x4000[1,0,0,0][8,1,1,1] op=add dimensions=x channels=64".into(),
        ),
        (
            "0x8000",
            "0x808000",
            "STREAM_TRANSPOSE dst=fp32@0x8000[1,0,0,0][32,1,1,1] src=fp32@0x4000[1,0,0,0][32,1,1,1] channels=32".into(),
        ),
    ] {
        assert!(is_clean("dve", &line, used), "{line}");
        assert!(!is_clean("dve", &line, padding), "{line} of padding");
    }
}

/// Within a partition a running value depends on all before it, and is taken to depend on all of it.
#[test]
fn a_running_value_over_missing_bytes_is_a_fault() {
    let line = "TENSOR_CUMULATIVE dst=fp32@0x8000[1,0,0,0][16,1,1,1] src=fp32@0x4000[1,0,0,0][16,1,1,1] op=add dimensions=x channels=32";
    assert!(!is_clean("dve", line, "0x8020"));
}

/// One partition goes to all of them: the others of the source need not be there.
#[test]
fn a_shuffle_reads_the_partitions_that_its_mask_names() {
    let shuffle = |partition: u8, channels: u8| {
        format!(
            "LOAD_MASK_SELECT partitions={}\nSTREAM_SHUFFLE dst=fp32@0x8000[1,0,0,0][8,1,1,1] src=fp32@0x4000[1,0,0,0][8,1,1,1] channels={channels}",
            format!("{partition:02x}").repeat(32)
        )
    };
    assert!(is_clean("dve", &shuffle(3, 32), "0x8000"));
    // The second quadrant has no data.
    assert!(is_clean("dve", &shuffle(3, 64), "0x8000"));
    assert!(!is_clean("dve", &shuffle(3, 64), "0x808000"));
}

/// A column of moving data that is missing is missing from the sums, and from no others.
#[test]
fn products_depend_on_their_column_and_their_weights() {
    let product = |columns: u32, weights: u32| {
        format!(
            "LDWEIGHTS src=fp32@0x401c[-1,0,0][{weights},1,1] rows=32 columns={weights}\n\
             MATMUL dst=fp32@psum+0x0[1,0,0][{columns},1,1] src=fp32@0x4000[1,0,0][{columns},1,1] rows=32 columns={weights} sums=start+stop $S[5]++@complete\n\
             engine act\nCOPY dst=fp32@0x8000[1,0,0,0][8,1,1,1] src=fp32@psum+0x0[1,0,0,0][8,1,1,1] channels=1 $S[5]>=1"
        )
    };
    assert!(is_clean("pe", &product(8, 8), "0x8000"));
    assert!(is_clean("pe", &product(16, 8), "0x8000"));
    let late = product(16, 8).replace("src=fp32@psum+0x0", "src=fp32@psum+0x20");
    assert!(!is_clean("pe", &late, "0x8000"));
}

/// A transfer takes bytes further as they are.
#[test]
fn transfers_carry_missing_bytes_along() {
    let text = |from: u32| {
        format!(
            "
neff carried trn2
input  x   uint8 [64]
output out uint8 [64]
subgraph sg00
queue q data owner=sp
var x   input
var out output
var t   tmp-buf size=128
var u   tmp-buf size=128
engine sp
dma id=0 queue=q
  copy t [1:64] <- x [1:64]
dma id=1 queue=q
  copy u [1:64, 64:2] <- t [1:32, 32:4]
dma id=2 queue=q
  copy out [1:64] <- u+{from} [1:64]
"
        )
    };
    assert_eq!(codes(&text(0), |_| {}), Vec::<&str>::new());
    assert_eq!(codes(&text(1), |_| {}), ["read-before-write"]);
}
