//! Transfers whose rows indices find: gathers, scatters, and gathers that are transposed.

use crate::common::{assembled, buffer, with_program};
use chipless_model::{Grade, Limits, Program, Storage};
use chipless_neuron::{Container, Neff, lint};
use chipless_sim::{Functional, Stop, Verified, run};
use proptest::prelude::*;

/// A table `x` of rows of eight bytes, and an output `o` of as many; indices come from `i`.
fn program(stream: &str) -> String {
    format!(
        "neff test trn2\ninput x uint8 [2048]\ninput i uint32 [256]\noutput o uint8 [2048]\nsubgraph sg00\nvar SB state-buffer\nvar x input\nvar i input\nvar o output\n\
         queue q dynamic owner=pool queues=16 semaphores=8\nengine pool\n\
         PSEUDO_DMA_DIRECT2D dst=uint8@var[SB]+0x4000[262144,1][128,1]*4 src=uint8@var[i][4,1][128,1]*4 $S[8]+=16@complete\n\
         PSEUDO_DMA_DIRECT2D dst=uint8@var[SB]+0x4004[262144,1][128,1]*4 src=uint8@var[i]+0x200[4,1][128,1]*4 $S[8]+=16@complete\n\
         PSEUDO_DMA_DIRECT2D dst=uint8@var[SB]+0x8000[262144,1][128,1]*8 src=uint8@var[x][8,1][128,1]*8 $S[8]+=16@complete\n\
         NOP $S[8]>=48\n{stream}"
    )
}

/// The output after a run in which all of it was 0xee at first.
fn outcome(text: &str, table: &[u8], indices: &[u32]) -> (Vec<u8>, Result<(), Stop>) {
    with_program(&assembled(text), |program: &Program<'_>, _| {
        let mut storage = Storage::new(&program.buffers, &Limits::default()).expect("memory");
        storage.bytes_mut(buffer(program, "x"))[..table.len()].copy_from_slice(table);
        let bytes: Vec<u8> = indices.iter().flat_map(|i| i.to_le_bytes()).collect();
        storage.bytes_mut(buffer(program, "i"))[..bytes.len()].copy_from_slice(&bytes);
        storage.bytes_mut(buffer(program, "o")).fill(0xee);
        let mut functional = Functional::new(&mut storage);
        let end = run(&Verified::assume(program), &mut functional).end;
        (storage.bytes(buffer(program, "o")).to_vec(), end)
    })
}

fn why(text: &str, indices: &[u32]) -> String {
    match outcome(text, &table(), indices).1 {
        Err(Stop::Fault { fault, .. }) => fault.message,
        other => panic!("{other:?}"),
    }
}

/// What is found in the file, notes too, and in the proof over the program.
fn findings(text: &str) -> Vec<String> {
    let limits = Limits::default();
    let file = assembled(text);
    let container = Container::open(&file, &limits).expect("container");
    let neff = Neff::read(&container, &limits).expect("document");
    let of_file = lint(&neff, &limits);
    let of_program = with_program(&file, |program, _| match chipless_verify::verify(program) {
        Ok(verified) => verified.warnings().to_vec(),
        Err(findings) => findings,
    });
    let all = of_file.iter().chain(&of_program);
    all.map(|f| format!("{}: {}", f.rule.code, f.message))
        .collect()
}

fn table() -> Vec<u8> {
    (0..2048u32).map(|n| ((n * 37) >> 3) as u8).collect()
}

const OUT: &str = "dst=uint8@var[o][8,1][128,1]*8";
const ROWS: &str = "src=uint8@var[x][8,1][128,1]*8";

fn gather(rest: &str) -> String {
    program(&format!(
        "PSEUDO_DMA_DIRECT2D {OUT} {ROWS} kind=indirect $S[8]+=16@complete\nPSEUDO_EXTENSION channels=128 src_index=0x4000 {rest}\nNOP $S[8]>=64\n"
    ))
}

fn scatter(rest: &str) -> String {
    program(&format!(
        "PSEUDO_DMA_DIRECT2D {OUT} src=uint8@var[SB]+0x8000[262144,1][128,1]*8 kind=indirect $S[8]+=16@complete\n\
         PSEUDO_EXTENSION channels=128 dst_index=0x4000 {rest}\nNOP $S[8]>=64\n"
    ))
}

/// The word that bounds indices, in register 5.
fn bounded(text: &str, limit: u8, side: &str) -> String {
    let set = format!(
        "MOVE moves=1 element=uint32 from=instruction destinations=0500000000000000 immediates={limit:02x}{}\nPSEUDO_DMA_DIRECT2D {OUT}",
        "00".repeat(31)
    );
    text.replace(&format!("PSEUDO_DMA_DIRECT2D {OUT}"), &set)
        .replace("kind=indirect", &format!("kind=indirect {side}_bound=133"))
}

proptest! {
    #![proptest_config(chipless_rounds::cases(16))]
    /// Against the naive loop.
    #[test]
    fn rows_are_gathered_and_scattered(
        indices in prop::collection::vec(0u32..256, 128), places in Just((0..256u32).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let table = table();
        let (bytes, end) = outcome(&gather(""), &table, &indices);
        prop_assert_eq!(end, Ok(()));
        for (row, index) in indices.iter().enumerate() {
            let from = *index as usize * 8;
            prop_assert_eq!(&bytes[row * 8..row * 8 + 8], &table[from..from + 8]);
        }
        prop_assert!(bytes[1024..].iter().all(|b| *b == 0xee));
        let (bytes, end) = outcome(&scatter("flags=scatter"), &table, &places);
        prop_assert_eq!(end, Ok(()));
        let mut expected = vec![0xee; 2048];
        for (row, place) in places[..128].iter().enumerate() {
            let to = *place as usize * 8;
            expected[to..to + 8].copy_from_slice(&table[row * 8..row * 8 + 8]);
        }
        prop_assert_eq!(bytes, expected);
        // Two sets of indices, one for each side; 256 of them lie in two words of each partition.
        let both = program(
            "PSEUDO_DMA_DIRECT2D dst=uint8@var[o][8,1][256,1]*8 src=uint8@var[x][8,1][256,1]*8 kind=indirect $S[8]+=16@complete\n\
             PSEUDO_EXTENSION flags=both channels=128 src_index=0x4000 dst_index=0x4000\nNOP $S[8]>=64\n",
        );
        let (bytes, end) = outcome(&both, &table, &places);
        prop_assert_eq!(end, Ok(()));
        prop_assert_eq!(bytes, table);
    }
}

#[test]
fn many_indices_lie_column_by_column() {
    let text = program(
        "PSEUDO_DMA_DIRECT2D dst=uint8@var[o][8,1][256,1]*8 src=uint8@var[x][8,1][256,1]*8 kind=indirect $S[8]+=16@complete\n\
         PSEUDO_EXTENSION channels=128 src_index=0x4000\nNOP $S[8]>=64\n",
    );
    let indices: Vec<u32> = (0..256).map(|n| (n * 7 + 1) % 256).collect();
    let (bytes, end) = outcome(&text, &table(), &indices);
    assert_eq!(end, Ok(()));
    for (row, index) in indices.iter().enumerate() {
        let from = *index as usize * 8;
        assert_eq!(
            bytes[row * 8..row * 8 + 8],
            table()[from..from + 8],
            "{row}"
        );
    }
    assert_eq!(findings(&text), Vec::<String>::new());
    let weakest = with_program(&assembled(&text), |program, _| {
        program.kernels.iter().map(|kernel| kernel.grade()).min()
    });
    assert_eq!(weakest, Some(Grade::Assumed));
}

#[test]
fn an_index_out_of_bounds_is_left_out_or_stops_the_run() {
    let mut indices: Vec<u32> = (0..128).collect();
    (indices[3], indices[127]) = (201, u32::MAX);
    for text in [bounded(&gather(""), 200, "src"), gather("src_bytes=1600")] {
        let (bytes, end) = outcome(&text, &table(), &indices);
        assert_eq!(end, Ok(()), "{text}");
        for row in 0..128 {
            let expected = match row {
                3 | 127 => vec![0xee; 8],
                _ => table()[row * 8..row * 8 + 8].to_vec(),
            };
            assert_eq!(bytes[row * 8..row * 8 + 8], expected, "{row}");
        }
        let message = why(&text.replace("channels", "flags=error channels"), &indices);
        assert!(
            message.contains("src: index 3 is 201, out of bounds"),
            "{message}"
        );
    }
    // The scatter leaves out the same rows.
    let text = bounded(&scatter("flags=scatter"), 200, "dst");
    let (bytes, end) = outcome(&text, &table(), &indices);
    assert_eq!(end, Ok(()));
    assert_eq!(bytes[24..32], [0xee; 8]);
    assert_eq!(bytes[32..1016], table()[32..1016]);
    assert_eq!(bytes[1016..], [0xee; 1032]);
    // Just the bound, and no bound at all.
    let message = why(&bounded(&gather(""), 201, "src"), &indices);
    assert!(message.contains("is 201, just its bound"), "{message}");
    indices[3] = 256;
    let message = why(&gather(""), &indices);
    assert!(
        message.contains(
            "index 3 is 256, out of bounds: its row is bytes 0x800 to 0x808 of x, which has 0x800"
        ),
        "{message}"
    );
}

#[test]
fn rows_add_up_and_change_their_type() {
    let stream = |rest: &str| {
        program(&format!(
            "PSEUDO_DMA_DIRECT2D dst=fp32@var[o][16,1][128,1]*16 src=fp16@var[SB]+0x8000[262144,1][128,1]*8 kind=indirect $S[8]+=16@complete\n\
             PSEUDO_EXTENSION channels=128 dst_index=0x4000 {rest}\nNOP $S[8]>=64\n"
        ))
    };
    // Halves of 1, 2, 3 and so on: 0x3c00 is 1.
    let table: Vec<u8> = (0..512).flat_map(|_| 0x3c00u16.to_le_bytes()).collect();
    let indices: Vec<u32> = (0..128).map(|n| n % 4).collect();
    let held = f32::from_le_bytes([0xee; 4]);
    let (bytes, end) = outcome(
        &stream("flags=scatter+repeated compute=add"),
        &table,
        &indices,
    );
    assert_eq!(end, Ok(()));
    for row in 0..4 {
        let value = f32::from_le_bytes(*bytes[row * 16..].first_chunk().expect("four"));
        let sum: f32 = (0..32).fold(held, |sum, _| sum + 1.0);
        assert_eq!(value.to_bits(), sum.to_bits(), "{row}");
    }
    let (bytes, end) = outcome(
        &stream("flags=scatter+repeated compute=max"),
        &table,
        &indices,
    );
    assert_eq!(end, Ok(()));
    assert_eq!(bytes[..4], 1.0f32.to_le_bytes());
    let message = why(&stream("flags=scatter compute=add"), &indices);
    assert!(
        message.contains("indices 0 and 4 are equal, although"),
        "{message}"
    );
    let message = why(&scatter("flags=scatter"), &indices);
    assert!(
        message.contains("indices 0 and 4 are equal, and their rows differ"),
        "{message}"
    );
    let message = why(&stream("flags=scatter compute=multiply"), &indices);
    assert!(message.contains("computation 2"), "{message}");
}

#[test]
fn gathered_rows_become_columns() {
    let text = program(
        "PSEUDO_DMA_DIRECT2D dst=bf16@var[SB]+0x9000[2,262144][32,4]*2 src=bf16@var[x][8,8][1,32]*8 kind=gather_transpose $S[8]+=16@complete\n\
         PSEUDO_EXTENSION flags=src_y channels=128 src_index=0x4000 tile_rows=16 tile_columns=128\nNOP $S[8]>=64\n\
         PSEUDO_DMA_DIRECT2D dst=uint8@var[o][64,1][4,1]*64 src=uint8@var[SB]+0x9000[262144,1][4,1]*64 $S[8]+=16@complete\nNOP $S[8]>=80\n",
    );
    let indices: Vec<u32> = (0..128).map(|n| n * 5 % 256).collect();
    let (bytes, end) = outcome(&text, &table(), &indices);
    assert_eq!(end, Ok(()));
    for (row, column) in (0..32).flat_map(|row| (0..4).map(move |column| (row, column))) {
        let from = indices[row] as usize * 8 + 2 * column;
        let to = column * 64 + 2 * row;
        assert_eq!(bytes[to..to + 2], table()[from..from + 2], "{row} {column}");
    }
    let other = text.replace("[32,4]*2", "[4,32]*2");
    assert!(why(&other, &indices).contains("not supported in this form"));
}

#[test]
fn what_is_not_known_of_indices_is_said() {
    let indices = [0; 128];
    let message = |text: &str| why(text, &indices);
    for (text, expected) in [
        (
            gather("").replace("channels=128", "channels=64"),
            "64 channels",
        ),
        (gather("flags=src_y"), "indices count in another dimension"),
        (gather("dst_index=0x4000"), "dst has an index"),
        (gather("tile_rows=16"), "a tile of 16 × 0"),
        (
            gather("").replace("0x4000 ", "0x44000 "),
            "from partition 0 of the state buffer on",
        ),
        (gather("byte[0x20]=1"), "byte 0x20 is 0x01"),
        (
            gather("").replace("kind=indirect", "kind=indirect src_bound=5"),
            "byte 0x26 (src_bound) is 0x05",
        ),
        (
            gather("").replace("kind=indirect", "kind=indirect src_bound=0xc5"),
            "byte 0x26 (src_bound) is 0xc5",
        ),
        (
            gather("").replace("[8,1][128,1]*8 kind", "[8,1][64,2]*8 kind"),
            "rows is not supported",
        ),
        (
            gather("").replace("kind=indirect", "kind=transpose"),
            "transfers of kind 2",
        ),
        (
            gather("").replace("PSEUDO_EXTENSION", "NOP\nPSEUDO_EXTENSION"),
            "no PSEUDO_EXTENSION behind it",
        ),
        (
            program("NOP\nPSEUDO_EXTENSION channels=128\n"),
            "what it extends is not supported",
        ),
        (
            gather("").replace(ROWS, "src=uint8@var[SB]+0x8000[8,1][128,1]*8"),
            "only those of a variable in device memory",
        ),
    ] {
        let message = message(&text);
        assert!(message.contains(expected), "{text}\n{message}");
        let found = findings(&text);
        let is_said =
            |f: &String| f.starts_with("neff-not-executed") || f.starts_with("neff-instruction");
        // Where variables are, only the run knows.
        assert!(
            found.iter().any(is_said) || expected.contains("variable"),
            "{text}\n{found:?}"
        );
    }
    let found = findings(&scatter("flags=scatter").replace("var[o][8", "var[x][8"));
    assert!(
        found.iter().any(|f| f.starts_with("neff-dma-writes-input")),
        "{found:?}"
    );
    let found = findings(&gather("").replace("var[x][8", "var[x]+0x7fc[8"));
    assert!(
        found.iter().any(|f| f.starts_with("neff-dma-bounds")),
        "{found:?}"
    );
}
