//! Every rule about files, tables and descriptors finds the fault that it is for.

use chipless_model::Limits;
use chipless_neuron::pack::{header_json, pack};
use chipless_neuron::{Container, Neff, Packing, Runtime, assemble, lint, rules};
use std::collections::BTreeSet;

const PROGRAM: &str = "
neff base trn2
input  x   float32 [4, 16]
output out float32 [4, 16]
subgraph sg00
queue q data owner=sp queues=4
var SB  state-buffer
var x   input
var out output
var c   file c.npy uint8 [2, 2] 1 2 3 4
var t   tmp-buf size=256
var p   pointer to=t
var v   virtual size=256 at=0
var T   dge-table x out
engine sp
dma id=0 queue=q semaphore=9
  copy t [1:256] <- x [1:256]
dma id=1 queue=q
  add out [1:256] float32 <- t [1:256] float32, x [1:256] float32
NOP
";

const NEFF: &str = "neff.json";
const KELF: &str = "kelf-0.json";
const INFO: &str = "info.json";
const DEF: &str = "sg00/def.json";
const SP: &str = "sg00/SP.json";
const ACT: &str = "sg00/Activation.json";
const TO: &str = r#""to":"t","to_off":0,"to_sizes":[256],"to_steps":[1]"#;
const FROM: &str = r#""from":"x","from_off":0,"from_sizes":[256],"from_steps":[1],"#;

/// A text of a member, and what takes its place.
type Edit<'t> = (&'t str, &'t str, &'t str);

/// The codes of everything found in a file.
fn codes(file: &[u8]) -> Vec<&'static str> {
    let limits = Limits::default();
    let container = match Container::open(file, &limits) {
        Ok(container) => container,
        Err(why) => return vec![why.rule.code],
    };
    match Neff::read(&container, &limits) {
        Ok(neff) => lint(&neff, &limits).iter().map(|f| f.rule.code).collect(),
        Err(why) => vec![why.rule.code],
    }
}

fn program() -> Vec<u8> {
    let draft = assemble(PROGRAM).unwrap_or_else(|e| panic!("{e}"));
    draft
        .write(&Limits::default())
        .unwrap_or_else(|e| panic!("{e}"))
}

/// The program with texts of its members replaced; an empty text stands for the whole member, and nothing for it takes it away.
fn edited(edits: &[Edit<'_>]) -> Vec<u8> {
    let limits = Limits::default();
    let file = program();
    let container = Container::open(&file, &limits).expect("sound");
    let mut members: Vec<(String, Vec<u8>)> = container
        .members()
        .map(|m| (m.path.to_owned(), m.bytes.to_vec()))
        .collect();
    for (path, from, to) in edits {
        let at = members
            .iter()
            .position(|(p, _)| p == path)
            .unwrap_or_else(|| panic!("no member {path}"));
        if from.is_empty() && to.is_empty() {
            members.remove(at);
        } else if from.is_empty() {
            members[at].1 = to.as_bytes().to_vec();
        } else {
            let text = String::from_utf8(members[at].1.clone()).expect("text");
            assert!(text.contains(from), "{path} has no {from}: {text}");
            members[at].1 = text.replacen(from, to, 1).into_bytes();
        }
    }
    let header = header_json(&container);
    pack(
        members.iter().map(|(p, b)| (p.as_str(), b.as_slice())),
        Some(&header),
        &limits,
    )
    .expect("packed")
}

#[test]
fn the_program_without_a_fault_has_none() {
    assert_eq!(codes(&program()), [""; 0]);
}

#[test]
#[expect(clippy::too_many_lines, reason = "one line for each rule")]
fn every_rule_finds_its_fault() {
    let inf1 = (KELF, "cayman", "tonga");
    let queue = |field: &'static str| (DEF, r#""num_queues": 4"#, field);
    let entry = |field: &'static str| (SP, r#""id":1,"#, field);
    let cases: &[(&str, &[Edit<'_>])] = &[
        ("neff-json-syntax", &[(SP, "}],\"instr\"", "")]),
        (
            "neff-json-type",
            &[(DEF, r#""num_queues": 4"#, r#""num_queues": "4""#)],
        ),
        ("neff-json-duplicate-key", &[entry(r#""id":1,"id":2,"#)]),
        ("neff-missing-member", &[("sg00/PE.bin", "", "")]),
        (
            "neff-missing-debug",
            &[(DEF, r#""pe": "#, r#""pe_dbg": ["none.dbg"], "pe": "#)],
        ),
        (
            "neff-named-twice",
            &[(DEF, r#""pe": "PE.json""#, r#""pe": "SP.json""#)],
        ),
        (
            "neff-function-set",
            &[(
                ACT,
                r#""dma""#,
                r#""act_info":"DVE.json","activation_function_sets":["gelu"],"dma""#,
            )],
        ),
        ("neff-npy", &[("sg00/c.npy", "", "no array")]),
        (
            "neff-graph",
            &[(NEFF, "\"heads\": [\n    [", "\"heads\": [\n [9, 0, 0], [")],
        ),
        (
            "neff-graph-index",
            &[(NEFF, "\"arg_nodes\": [\n    0", "\"arg_nodes\": [\n    1")],
        ),
        (
            "neff-graph-index",
            &[(
                NEFF,
                "\"node_row_ptr\": [\n    0",
                "\"node_row_ptr\": [\n    0,\n    0",
            )],
        ),
        ("neff-graph-node", &[(NEFF, "tvm_op", "tvm")]),
        (
            "neff-engine-missing",
            &[(DEF, "\"pe_instr\"", "\"#pe_instr\"")],
        ),
        (
            "neff-no-program",
            &[(NEFF, r#""kelf": "kelf-0.json","#, "")],
        ),
        ("neff-target", &[(KELF, "cayman", "mercury")]),
        ("neff-target-missing", &[(KELF, r#""target""#, r#""aim""#)]),
        (
            "neff-device-memory",
            &[(
                DEF,
                "\"size\": 256,\n      \"type\": \"tmp-buf\"",
                r#""size": 103079215104, "type": "tmp-buf""#,
            )],
        ),
        (
            "neff-function-set-index",
            &[(
                ACT,
                r#""dma""#,
                r#""activation_function_sets":["gelu"],"dma""#,
            )],
        ),
        ("neff-graph-node", &[(NEFF, "__kelf", "__other")]),
        (
            "neff-logical-core",
            &[(KELF, "", r#"{"graphs": [], "target": "cayman"}"#)],
        ),
        (
            "neff-io-missing",
            &[(NEFF, r#""name": "x""#, r#""name": "y""#)],
        ),
        (
            "neff-io-type",
            &[(DEF, r#""type": "input""#, r#""type": "tmp-buf""#)],
        ),
        ("neff-io-size", &[(NEFF, "16\n", "17\n")]),
        ("neff-io-padding", &[(NEFF, "16\n", "15\n")]),
        (
            "neff-io-element-type",
            &[(NEFF, "\"float32\"", "\"float12\"")],
        ),
        (
            "neff-output-twice",
            &[(NEFF, "\"heads\": [\n    [", "\"heads\": [\n [1, 0, 0], [")],
        ),
        (
            "neff-io-unlisted",
            &[(NEFF, r#""heads": ["#, r#""unknown": ["#)],
        ),
        (
            "neff-instruction-name",
            &[(SP, r#""instr":"SP.bin""#, r#""instr":"PE.bin""#)],
        ),
        ("neff-stream-length", &[("sg00/PE.bin", "", "not 64 bytes")]),
        (
            "neff-feature-missing",
            &[entry(r#""id":1,"function_start":"f","#)],
        ),
        (
            "neff-reservation",
            &[(
                DEF,
                r#""dma_queue""#,
                r#""runtime_semaphore_count": 257, "dma_queue""#,
            )],
        ),
        (
            "neff-reservation",
            &[(
                DEF,
                r#""dma_queue""#,
                r#""runtime_statebuffer_reservation": [{"type": "evtaccel", "base_partition": 0, "partitions": 128, "offset": 229376, "size": 8}], "dma_queue""#,
            )],
        ),
        (
            "neff-queue-type",
            &[(DEF, r#""type": "data""#, r#""type": "inout""#)],
        ),
        ("neff-queue-count", &[queue(r#""num_queues": 17"#)]),
        ("neff-queue-count", &[queue(r#""num_queues": 0"#)]),
        ("neff-queue-count", &[inf1]),
        (
            "neff-queue-owner",
            &[(DEF, r#""owner": "sp""#, r#""owner": "host""#)],
        ),
        (
            "neff-queue-fabric-path",
            &[queue(r#""fabric_path": "side""#)],
        ),
        (
            "neff-queue-semaphore",
            &[queue(r#""semaphore_set": [8, 256]"#)],
        ),
        ("neff-queue-semaphore", &[queue(r#""semaphore": 256"#)]),
        (
            "neff-queue-semaphore-reserved",
            &[
                (DEF, r#""pe": "#, r#""runtime_semaphore_count": 9, "pe": "#),
                queue(r#""semaphore_set": [8]"#),
            ],
        ),
        (
            "neff-queue-semaphore-shared",
            &[queue(r#""semaphore_set": [8, 9, 8]"#)],
        ),
        (
            "neff-queue-semaphore-shared",
            &[
                queue(r#""semaphore_set": [8]"#),
                (
                    DEF,
                    r#""dma_queue": {"#,
                    r#""dma_queue": {"r": {"type": "data", "semaphore": 8},"#,
                ),
            ],
        ),
        ("neff-pinned-architecture", &[queue(r#""pinned": true"#)]),
        (
            "neff-queue-instances-architecture",
            &[inf1, queue(r#""queue_instances": ["a"]"#)],
        ),
        (
            "neff-queue-instance-twice",
            &[queue(r#""queue_instances": ["q"]"#)],
        ),
        (
            "neff-kept-bytes",
            &[
                queue(
                    r#""dynamic_dma": {"SB_scratch_partition_offset": 100, "SB_scratch_partition_size": 8}"#,
                ),
                (SP, r#""to":"t","to_off":0"#, r#""to":"SB","to_off":0"#),
            ],
        ),
        (
            "neff-kept-bytes",
            &[
                (
                    DEF,
                    r#""dma_queue""#,
                    r#""runtime_statebuffer_reservation": [{"type": "evtaccel", "base_partition": 3, "partitions": 1, "offset": 4, "size": 8}], "dma_queue""#,
                ),
                (
                    SP,
                    TO,
                    r#""to":"SB","to_off":0,"to_sizes":[4,64],"to_steps":[2,262144]"#,
                ),
            ],
        ),
        (
            "neff-dynamic-scratch",
            &[queue(
                r#""dynamic_dma": {"SB_scratch_partition_offset": 229376, "SB_scratch_partition_size": 1}"#,
            )],
        ),
        ("neff-variable-type", &[(DEF, r#""type": "tmp-buf","#, "")]),
        (
            "neff-variable-type",
            &[(DEF, r#""tmp-buf""#, r#""temporary""#)],
        ),
        (
            "neff-variable-id",
            &[(DEF, r#""var_id": 4"#, r#""var_id": 1"#)],
        ),
        (
            "neff-variable-id-gap",
            &[(DEF, r#""var_id": 0"#, r#""var_id": 99"#)],
        ),
        (
            "neff-variable-size",
            &[(
                DEF,
                "\"size\": 256,\n      \"type\": \"tmp-buf\"",
                r#""type": "tmp-buf""#,
            )],
        ),
        (
            "neff-variable-empty",
            &[(
                DEF,
                "\"size\": 256,\n      \"type\": \"virtual\"",
                r#""size": 0, "type": "virtual""#,
            )],
        ),
        (
            "neff-variable-large",
            &[(
                DEF,
                "\"size\": 256,\n      \"type\": \"tmp-buf\"",
                r#""size": 9223372036854775808, "type": "tmp-buf""#,
            )],
        ),
        (
            "neff-alignment",
            &[(
                DEF,
                r#""type": "tmp-buf""#,
                r#""type": "tmp-buf", "alignment": 96"#,
            )],
        ),
        (
            "neff-variable-fabric-path",
            &[(
                DEF,
                r#""type": "tmp-buf""#,
                r#""type": "tmp-buf", "fabric_path": "side""#,
            )],
        ),
        ("neff-file-name", &[(DEF, r#""file_name": "c.npy","#, "")]),
        (
            "neff-file-name-unused",
            &[(
                DEF,
                r#""type": "tmp-buf""#,
                r#""type": "tmp-buf", "file_name": "c.npy""#,
            )],
        ),
        (
            "neff-constant-large",
            &[(DEF, r#""size": 4,"#, r#""size": 3,"#)],
        ),
        (
            "neff-constant-small",
            &[(DEF, r#""size": 4,"#, r#""size": 5,"#)],
        ),
        (
            "neff-backing-offset-unused",
            &[(
                DEF,
                r#""type": "tmp-buf""#,
                r#""type": "tmp-buf", "backing_variable_off": 0"#,
            )],
        ),
        (
            "neff-scratchpad",
            &[(
                DEF,
                r#""backing_variable_off": 0"#,
                r#""backing_variable_off": 18446744073709551615"#,
            )],
        ),
        (
            "neff-pointer",
            &[(
                DEF,
                r#""referenced_var_id": 4"#,
                r#""referenced_var_id": 44"#,
            )],
        ),
        ("neff-pointer", &[(DEF, r#""referenced_var_id": 4,"#, "")]),
        (
            "neff-pointer-target",
            &[(
                DEF,
                r#""referenced_var_id": 4"#,
                r#""referenced_var_id": 5"#,
            )],
        ),
        (
            "neff-pointer-target",
            &[(
                DEF,
                r#""referenced_var_id": 4"#,
                r#""referenced_var_id": 7"#,
            )],
        ),
        (
            "neff-scratchpad-alignment",
            &[(
                DEF,
                r#""backing_variable_off": 0"#,
                r#""alignment": 64, "backing_variable_off": 96"#,
            )],
        ),
        ("neff-dge-table-list", &[(DEF, r#""list""#, r#""none""#)]),
        (
            "neff-dge-table-list",
            &[(DEF, "\"list\": [\n", "\"list\": [7,\n")],
        ),
        (
            "neff-pointer-size",
            &[(DEF, r#""size": 8,"#, r#""size": 4,"#)],
        ),
        (
            "neff-reference-unused",
            &[(
                DEF,
                r#""type": "tmp-buf""#,
                r#""type": "tmp-buf", "referenced_var_id": 1"#,
            )],
        ),
        (
            "neff-dge-table",
            &[(DEF, "\"list\": [\n", "\"list\": [77,\n")],
        ),
        (
            "neff-dge-list-unused",
            &[(
                DEF,
                r#""type": "tmp-buf""#,
                r#""type": "tmp-buf", "list": [1]"#,
            )],
        ),
        ("neff-descriptor-id", &[entry("")]),
        (
            "neff-descriptor-trigger-amount",
            &[
                entry(r#""id":0,"#),
                (SP, r#""to_sizes":[256]"#, r#""to_sizes":[128,2]"#),
                (SP, r#""to_steps":[1]"#, r#""to_steps":[1,128]"#),
            ],
        ),
        (
            "neff-descriptor-queue",
            &[(SP, r#""queue":"q""#, r#""queue":"""#)],
        ),
        (
            "neff-descriptor-queue-unknown",
            &[(SP, r#""queue":"q""#, r#""queue":"none""#)],
        ),
        (
            "neff-descriptor-instance-unknown",
            &[entry(r#""id":1,"instance_name":"q","#)],
        ),
        (
            "neff-descriptor-instance-architecture",
            &[inf1, entry(r#""id":1,"instance_name":"q","#)],
        ),
        (
            "neff-descriptor-owner",
            &[(DEF, r#""owner": "sp""#, r#""owner": "act""#)],
        ),
        (
            "neff-descriptor-function",
            &[entry(r#""id":1,"function_start":"f","#)],
        ),
        (
            "neff-descriptor-function-architecture",
            &[inf1, entry(r#""id":1,"function_start":"f","#)],
        ),
        (
            "neff-descriptor-section-architecture",
            &[inf1, entry(r#""id":1,"section_start_desc":true,"#)],
        ),
        ("neff-descriptor-event", &[entry(r#""id":1,"event":256,"#)]),
        (
            "neff-descriptor-semaphore",
            &[entry(r#""id":1,"semaphore":256,"#)],
        ),
        (
            "neff-descriptor-reserved",
            &[(DEF, r#""pe": "#, r#""runtime_semaphore_count": 10, "pe": "#)],
        ),
        (
            "neff-descriptor-reserved",
            &[
                (DEF, r#""pe": "#, r#""runtime_event_count": 10, "pe": "#),
                entry(r#""id":1,"event":9,"#),
            ],
        ),
        (
            "neff-descriptor-semaphore-set",
            &[queue(r#""semaphore_set": [8, 10]"#)],
        ),
        (
            "neff-descriptor-queue-type",
            &[(DEF, r#""type": "data""#, r#""type": "dynamic""#)],
        ),
        (
            "neff-descriptor-queue-type",
            &[inf1, queue(r#""pinned": true"#)],
        ),
        (
            "neff-descriptor-remote-semaphore",
            &[entry(r#""id":1,"remote_semaphores":[256],"#)],
        ),
        (
            "neff-descriptor-remote-architecture",
            &[
                (KELF, "cayman", "sunda"),
                entry(r#""id":1,"remote_semaphores":[25],"#),
            ],
        ),
        (
            "neff-descriptor-remote-alone",
            &[entry(r#""id":1,"remote_semaphores":[25],"#)],
        ),
        (
            "neff-descriptor-empty",
            &[(SP, "", r#"{"dma":[{"id":0,"queue":"q"}]}"#)],
        ),
        (
            "neff-descriptor-operation",
            &[(SP, r#""op":"add""#, r#""op":"mul""#)],
        ),
        ("neff-descriptor-operation-architecture", &[inf1]),
        ("neff-descriptor-from", &[(SP, FROM, "")]),
        ("neff-descriptor-to", &[(SP, TO, r#""to_off":0"#)]),
        (
            "neff-descriptor-from-arr",
            &[(SP, r#""from_arr""#, r#""sources""#)],
        ),
        ("neff-descriptor-from", &[(SP, r#""op":"add","#, "")]),
        (
            "neff-descriptor-from-arr-unused",
            &[(SP, r#""op":"add","#, "")],
        ),
        ("neff-descriptor-from-arr-architecture", &[inf1]),
        (
            "neff-descriptor-variable",
            &[(SP, r#""to":"t""#, r#""to":"none""#)],
        ),
        (
            "neff-descriptor-dge-table",
            &[(SP, r#""to":"t""#, r#""to":"T""#)],
        ),
        ("neff-descriptor-field", &[(SP, r#""to_off":0,"#, "")]),
        (
            "neff-descriptor-dimensions",
            &[(SP, r#""to_steps":[1]"#, r#""to_steps":[1,2]"#)],
        ),
        (
            "neff-descriptor-dimensions",
            &[(
                SP,
                TO,
                r#""to":"t","to_off":0,"to_sizes":[256,1,1,1,1],"to_steps":[1,1,1,1,1]"#,
            )],
        ),
        (
            "neff-descriptor-zero-size",
            &[(SP, r#""to_sizes":[256]"#, r#""to_sizes":[0]"#)],
        ),
        (
            "neff-descriptor-bounds",
            &[(SP, r#""to_off":0"#, r#""to_off":1"#)],
        ),
        (
            "neff-descriptor-bounds",
            &[(SP, r#""to_off":0"#, r#""to_off":18446744073709551615"#)],
        ),
        (
            "neff-descriptor-bounds",
            &[(
                SP,
                r#""to_steps":[1]"#,
                r#""to_steps":[-9223372036854775808]"#,
            )],
        ),
        (
            "neff-descriptor-state-buffer",
            &[(SP, r#""to":"t","to_off":0"#, r#""to":"SB","to_off":229121"#)],
        ),
        (
            "neff-descriptor-bytes",
            &[(SP, r#""to_sizes":[256]"#, r#""to_sizes":[255]"#)],
        ),
        (
            "neff-descriptor-elements",
            &[(SP, r#""to_dtype":"float32""#, r#""to_dtype":"float16""#)],
        ),
        (
            "neff-descriptor-partial-element",
            &[(
                SP,
                r#""from_dtype":"float32","from_off":0,"from_sizes":[256]"#,
                r#""from_dtype":"float32","from_off":0,"from_sizes":[255]"#,
            )],
        ),
        (
            "neff-descriptor-dtype",
            &[(SP, r#""to_dtype":"float32""#, r#""to_dtype":"float12""#)],
        ),
        ("neff-descriptor-dtype-architecture", &[inf1]),
        (
            "neff-descriptor-copy-types",
            &[(
                SP,
                TO,
                r#""from_dtype":"int8","to_dtype":"uint8","to":"t","to_off":0,"to_sizes":[256],"to_steps":[1]"#,
            )],
        ),
        (
            "neff-descriptor-scale",
            &[(SP, r#""op":"add""#, r#""op":"add","scale":2"#)],
        ),
        (
            "neff-descriptor-scale",
            &[(SP, r#""op":"add""#, r#""op":"add","scale_dtype":"float32""#)],
        ),
        (
            "neff-descriptor-scale-architecture",
            &[inf1, (SP, r#""op":"add""#, r#""op":"fma","scale":2"#)],
        ),
        (
            "neff-descriptor-scale-dtype",
            &[(SP, r#""op":"add""#, r#""op":"fma","scale_dtype":"float16""#)],
        ),
        (
            "neff-descriptor-constant",
            &[(
                SP,
                r#""op":"add""#,
                r#""op":"min","constant_dtype":"float32""#,
            )],
        ),
        (
            "neff-descriptor-constant",
            &[(
                SP,
                r#""op":"add""#,
                r#""op":"min","constant_dtype":"uint32","constant":-1"#,
            )],
        ),
        (
            "neff-descriptor-constant",
            &[(
                SP,
                r#""op":"add""#,
                r#""op":"min","constant_dtype":"float32","constant":1e300"#,
            )],
        ),
        (
            "neff-descriptor-constant-dtype",
            &[(
                SP,
                r#""op":"add""#,
                r#""op":"min","constant_dtype":"int8","constant":1"#,
            )],
        ),
        (
            "neff-descriptor-constant-unused",
            &[(SP, r#""op":"add""#, r#""op":"min","constant":1"#)],
        ),
        (
            "neff-descriptor-constant-unused",
            &[(
                SP,
                r#""op":"add""#,
                r#""op":"add","constant":1,"constant_dtype":"int32""#,
            )],
        ),
        (
            "neff-descriptor-constant-architecture",
            &[inf1, (SP, r#""op":"add""#, r#""op":"min","constant":1"#)],
        ),
        (
            "neff-descriptor-transpose-shape",
            &[(
                SP,
                TO,
                r#""op":"transpose","transpose_shape":[16,8,1],"to":"t","to_off":0,"to_sizes":[256],"to_steps":[1]"#,
            )],
        ),
        (
            "neff-descriptor-transpose-shape",
            &[(
                SP,
                TO,
                r#""op":"transpose","transpose_shape":[16,4,1,1],"transpose_element_size":2,"to":"t","to_off":0,"to_sizes":[256],"to_steps":[1]"#,
            )],
        ),
        (
            "neff-descriptor-transpose-element",
            &[(
                SP,
                TO,
                r#""op":"transpose","transpose_element_size":8,"to":"t","to_off":0,"to_sizes":[256],"to_steps":[1]"#,
            )],
        ),
        (
            "neff-descriptor-transpose-element",
            &[(
                SP,
                TO,
                r#""op":"transpose","to_dtype":"float32","transpose_element_size":2,"to":"t","to_off":0,"to_sizes":[256],"to_steps":[1]"#,
            )],
        ),
        (
            "neff-not-executed",
            &[(
                SP,
                TO,
                r#""op":"transpose","to":"t","to_off":0,"to_sizes":[256],"to_steps":[1]"#,
            )],
        ),
        (
            "neff-descriptor-transpose-unused",
            &[(
                SP,
                TO,
                r#""transpose_element_size":2,"to":"t","to_off":0,"to_sizes":[256],"to_steps":[1]"#,
            )],
        ),
        (
            "neff-descriptor-transpose-architecture",
            &[
                inf1,
                (
                    SP,
                    TO,
                    r#""transpose_element_size":2,"to":"t","to_off":0,"to_sizes":[256],"to_steps":[1]"#,
                ),
            ],
        ),
        (
            "neff-descriptor-tiling",
            &[(
                SP,
                TO,
                r#""num_tiling_dimensions":0,"to":"t","to_off":0,"to_sizes":[256],"to_steps":[1]"#,
            )],
        ),
        (
            "neff-descriptor-tiling",
            &[(
                SP,
                TO,
                r#""num_tiling_dimensions":2,"to":"t","to_off":0,"to_sizes":[256],"to_steps":[1]"#,
            )],
        ),
        (
            "neff-descriptor-write-constant",
            &[(SP, r#""to":"t""#, r#""to":"x""#)],
        ),
        (
            "neff-ring-length",
            &[(
                SP,
                r#""from_sizes":[256],"from_steps":[1],"to""#,
                r#""from_sizes":[1,1000000000],"from_steps":[1,0],"to""#,
            )],
        ),
        (
            "neff-graph-count",
            &[(NEFF, r#""num_inputs": "1""#, r#""num_inputs": "2""#)],
        ),
        (
            "neff-graph-count",
            &[(
                NEFF,
                r#""heads": ["#,
                r#""metadata": {"signatures": {"serve": {"inputs": {"x": {"dtype": "float32", "shape": [4, 17]}}}}}, "heads": ["#,
            )],
        ),
        (
            "neff-info-cores",
            &[(INFO, r#""num_tpb": 1"#, r#""num_tpb": 2"#)],
        ),
        (
            "neff-info-cores",
            &[(
                INFO,
                r#""num_tpb_requested": 1"#,
                r#""num_tpb_requested": 2"#,
            )],
        ),
        ("neff-misspelt-key", &[queue(r#""num_queue": 4"#)]),
        (
            "neff-misspelt-key",
            &[(
                DEF,
                r#""type": "tmp-buf""#,
                r#""type": "tmp-buf", "aligment": 64"#,
            )],
        ),
        ("neff-misspelt-key", &[entry(r#""id":1,"semafore":9,"#)]),
        (
            "neff-misspelt-key",
            &[(SP, r#""op":"add""#, r#""oq":"add""#)],
        ),
        (
            "neff-queue-semaphore-outside",
            &[queue(r#""semaphore_set": [9, 10], "semaphore": 8"#)],
        ),
        (
            "neff-dynamic-owner",
            &[
                (DEF, r#""type": "data""#, r#""type": "dynamic""#),
                (DEF, r#""owner": "sp""#, r##""#owner": "sp""##),
            ],
        ),
        (
            "neff-state-buffer-size",
            &[(
                DEF,
                r#""type": "state-buffer""#,
                r#""size": 33554433, "type": "state-buffer""#,
            )],
        ),
        (
            "neff-dma-from-beside-list",
            &[(SP, r#""from_arr""#, r#""from":"x","from_arr""#)],
        ),
        (
            "neff-dma-direction",
            &[(DEF, r#""type": "data""#, r#""type": "in""#)],
        ),
        (
            "neff-dma-direction",
            &[
                (DEF, r#""type": "data""#, r#""type": "out""#),
                (SP, r#""to":"t""#, r#""to":"x""#),
            ],
        ),
        (
            "neff-dma-rows-overlap",
            &[(
                SP,
                TO,
                r#""to":"t","to_off":0,"to_sizes":[64,4],"to_steps":[1,32]"#,
            )],
        ),
    ];
    let mut hit: BTreeSet<&str> = BTreeSet::new();
    let mut missed = Vec::new();
    for (code, edits) in cases {
        let found = codes(&edited(edits));
        if found.contains(code) {
            hit.insert(code);
        } else {
            missed.push(format!("{edits:?} should be {code}, found {found:?}"));
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
    hit.extend(by_bytes());
    hit.extend(by_programs());
    let all = [
        rules::container::ALL,
        rules::definition::ALL,
        rules::dma::ALL,
    ];
    // Bounds have tests of their own.
    let untested: Vec<&str> = all
        .into_iter()
        .flatten()
        .map(|rule| rule.code)
        .filter(|code| !hit.contains(code) && !matches!(*code, "neff-limit" | "neff-more-findings"))
        .collect();
    assert!(untested.is_empty(), "not tested: {untested:?}");
}

/// Faults of the container, made on the file's bytes.
fn by_bytes() -> Vec<&'static str> {
    let patched = |at: usize, bytes: &[u8]| {
        let mut file = program();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        codes(&file)
    };
    let one = |code: &'static str, found: Vec<&'static str>| {
        assert!(found.contains(&code), "should be {code}, found {found:?}");
        code
    };
    let mut longer = program();
    longer.push(0);
    let file = program();
    let Packing::Gzip { compressed } = Container::open(&file, &Limits::default())
        .expect("sound")
        .packing
    else {
        panic!("compressed")
    };
    let crc = 1024 + compressed as usize - 8;
    let plain = plain();
    vec![
        one("neff-header-truncated", codes(&program()[..1023])),
        one("neff-header-size", patched(8, &[0, 8])),
        one("neff-package-version", patched(0, &[3])),
        one("neff-version", patched(24, &[3])),
        one("neff-data-size", patched(16, &[1])),
        one("neff-payload", patched(1024, &[0])),
        one("neff-gzip", patched(crc, &[0, 0])),
        one("neff-trailing-bytes", codes(&longer)),
        one("neff-hash", patched(172, &[0])),
        one("neff-hash-kind", patched(0, &[1])),
        one("neff-feature-unknown", patched(549, &[1])),
        one("neff-header-pad", patched(1023, &[1])),
        one("neff-core-count", patched(480, &[2])),
        one("neff-logical-core-size", patched(552, &[3])),
        one("neff-feature-logical-core", patched(545, &[4])),
        one("neff-padding", patched(crc + 8, &[1])),
        one(
            "neff-tar",
            codes(&with_entry(&plain, |header| header[148] ^= 1, false)),
        ),
        one(
            "neff-tar-entry-type",
            codes(&with_entry(&plain, |header| header[156] = b'2', true)),
        ),
        one(
            "neff-tar-path",
            codes(&with_entry(
                &plain,
                |header| header[..3].copy_from_slice(b"../"),
                true,
            )),
        ),
        one(
            "neff-tar-path",
            codes(&with_entry(
                &plain,
                |header| header[..12].copy_from_slice(b"kelf-0.json\0"),
                true,
            )),
        ),
    ]
}

/// The program with its tarball uncompressed.
fn plain() -> Vec<u8> {
    let limits = Limits::default();
    let file = program();
    let container = Container::open(&file, &limits).expect("sound");
    let header = header_json(&container).replace("\"gzip\"", "\"tar\"");
    pack(container.members().map(Into::into), Some(&header), &limits).expect("packed")
}

/// Changes the tar header of the first member, with or without its checksum.
fn with_entry(plain: &[u8], change: impl FnOnce(&mut [u8]), sum: bool) -> Vec<u8> {
    let mut file = plain.to_vec();
    let header = &mut file[1024..1536];
    change(header);
    if sum {
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|b| u32::from(*b)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
    file
}

/// Faults that take another program than the one above.
fn by_programs() -> Vec<&'static str> {
    let assembled = |text: &str| {
        let draft = assemble(text).unwrap_or_else(|e| panic!("{e}"));
        draft
            .write(&Limits::default())
            .unwrap_or_else(|e| panic!("{e}"))
    };
    let one = |code: &'static str, found: &[&'static str]| {
        assert!(found.contains(&code), "should be {code}, found {found:?}");
        code
    };
    let source = "x [1:4]";
    let sources = vec![source; 17].join(", ");
    let many = format!(
        "neff n trn2\nsubgraph s\nqueue q data owner=sp\nvar x tmp-buf size=4\nengine sp\ndma id=0 queue=q\nadd x [1:4] <- {sources}\n"
    );
    let two = "neff n trn2\noutput o uint8 [4]\nsubgraph a\nvar o output\nsubgraph b\nvar o output size=5\n";
    let old = "neff n trn1\nsubgraph a\nsubgraph b\n";
    let limits = Limits::default();
    let turned = {
        let file = program();
        let container = Container::open(&file, &limits).expect("sound");
        let members: Vec<(&str, Vec<u8>)> = container
            .members()
            .map(|m| {
                let text = String::from_utf8_lossy(m.bytes);
                let bytes = if m.path == "sg00/c.npy" {
                    m.bytes.to_vec()
                } else {
                    text.into_owned().into_bytes()
                };
                let at = bytes.windows(6).position(|w| w == b"False,");
                (
                    m.path,
                    match at {
                        Some(at) if m.path == "sg00/c.npy" => {
                            [&bytes[..at], b"True ,", &bytes[at + 6..]].concat()
                        }
                        _ => bytes,
                    },
                )
            })
            .collect();
        pack(
            members.iter().map(|(p, b)| (*p, b.as_slice())),
            Some(&header_json(&container)),
            &limits,
        )
        .expect("packed")
    };
    let mut header = chipless_neuron::Header::read(program().first_chunk().expect("a header"));
    header.feature_bits = chipless_neuron::features::Features(0x100);
    header.neff_version_major = 2;
    let refused = |name: &str| -> Vec<&'static str> {
        Runtime::named(name)
            .expect("known")
            .check(&header)
            .iter()
            .map(|f| f.rule.code)
            .collect()
    };
    vec![
        one("neff-descriptor-sources", &codes(&assembled(&many))),
        one("neff-io-differs", &codes(&assembled(two))),
        one("neff-constant-order", &codes(&turned)),
        one("neff-runtime-features", &refused("late-2023")),
        one("neff-runtime-version", &refused("neff-1")),
        one("neff-runtime-rings", &ring_faults(17)),
        one("neff-targets-differ", &codes(&two_kelfs())),
        one("neff-logical-core-architecture", &codes(&assembled(old))),
        one("neff-subgraph-twice", &codes(&one_name())),
    ]
}

/// What a runtime would refuse of a program with so many queue sets of 16 queues.
fn ring_faults(sets: usize) -> Vec<&'static str> {
    let sets: Vec<String> = (0..sets)
        .map(|n| format!("queue q{n} data owner=sp queues=16\n"))
        .collect();
    let sets = sets.concat();
    let limits = Limits::default();
    let text = format!("neff n trn2\nsubgraph s\n{sets}engine sp\nNOP\n");
    let draft = assemble(&text).unwrap_or_else(|e| panic!("{e}"));
    let file = draft.write(&limits).unwrap_or_else(|e| panic!("{e}"));
    let container = Container::open(&file, &limits).expect("sound");
    let neff = Neff::read(&container, &limits).expect("read");
    let findings = Runtime::named("2.31").expect("known").check_program(&neff);
    findings.iter().map(|f| f.rule.code).collect()
}

/// A core has as many rings as 16 queue sets of 16 queues take.
#[test]
fn queue_sets_may_take_every_ring() {
    assert_eq!(ring_faults(16), [""; 0]);
}

/// A kelf file of two subgraphs with one name.
fn one_name() -> Vec<u8> {
    let members: [(&str, &[u8]); 4] = [
        ("neff.json", br#"{"nodes": [{"op": "tvm_op", "attrs": {"kelf": "a.json"}}]}"#),
        (
            "a.json",
            br#"{"graphs": [{"definition": "a/def.json", "name": "s"}, {"definition": "b/def.json", "name": "s"}], "target": "cayman"}"#,
        ),
        ("a/def.json", b"{}"),
        ("b/def.json", b"{}"),
    ];
    pack(members, None, &Limits::default()).expect("packed")
}

#[test]
fn kelf_files_may_use_the_same_names() {
    let limits = Limits::default();
    let file = two_kelfs();
    let container = Container::open(&file, &limits).expect("sound");
    let neff = Neff::read(&container, &limits).expect("read");
    let names: Vec<&str> = neff.subgraphs.iter().map(|s| &*s.name).collect();
    assert_eq!(names, ["s", "kelf1.s"]);
    assert!(!codes(&file).contains(&"neff-subgraph-twice"));
}

/// What a field says that holds without it too asks for nothing.
#[test]
fn defaults_are_no_features() {
    let copies = PROGRAM.replace(
        "add out [1:256] float32 <- t [1:256] float32, x [1:256] float32",
        "copy out [1:256] <- t [1:256]",
    );
    let copies = copies
        .replace("trn2", "inf1")
        .replace("queues=4", "queues=1");
    let draft = assemble(&copies).unwrap_or_else(|e| panic!("{e}"));
    let file = draft
        .write(&Limits::default())
        .unwrap_or_else(|e| panic!("{e}"));
    let before = codes(&file);
    let limits = Limits::default();
    let container = Container::open(&file, &limits).expect("sound");
    let edit = |m: chipless_neuron::Member<'_>| {
        let said = r#""id":0,"function_start":"","instance_name":"","section_start_desc":false,"#;
        let text = |from: &str, to: &str| {
            String::from_utf8(m.bytes.to_vec())
                .expect("text")
                .replace(from, to)
                .into_bytes()
        };
        let bytes = match m.path {
            SP => text(r#""id":0,"#, said),
            DEF => text(
                r#""num_queues": 1"#,
                r#""num_queues": 1, "pinned": false, "queue_instances": []"#,
            ),
            _ => m.bytes.to_vec(),
        };
        (m.path.to_owned(), bytes)
    };
    let members: Vec<(String, Vec<u8>)> = container.members().map(edit).collect();
    let sp = members
        .iter()
        .find(|(path, _)| path == SP)
        .expect("a member");
    assert!(String::from_utf8_lossy(&sp.1).contains("section_start_desc"));
    let file = pack(
        members.iter().map(|(p, b)| (p.as_str(), b.as_slice())),
        Some(&header_json(&container)),
        &limits,
    )
    .expect("packed");
    assert_eq!(codes(&file), before);
}

/// What is said of values that have another type than the format gives them, and the codes of everything found.
fn wrong_types(edits: &[Edit<'_>]) -> (Vec<String>, Vec<&'static str>) {
    let limits = Limits::default();
    let file = edited(edits);
    let container = Container::open(&file, &limits).expect("sound");
    let neff = Neff::read(&container, &limits).expect("read");
    let findings = lint(&neff, &limits);
    let codes = findings.iter().map(|f| f.rule.code).collect();
    let wrong = findings
        .into_iter()
        .filter(|f| f.rule.code == "neff-json-type");
    (wrong.map(|f| f.message).collect(), codes)
}

#[test]
fn types_are_named_as_the_format_has_them() {
    let (wrong, _) = wrong_types(&[(DEF, r#""num_queues": 4"#, r#""num_queues": 1.5"#)]);
    assert_eq!(
        wrong,
        ["invalid type: floating point `1.5`, expected a whole number from 0 to 2^64 - 1"]
    );
    let (wrong, _) = wrong_types(&[(SP, r#""op":"add""#, r#""op":"add","scale":"x""#)]);
    assert_eq!(wrong, ["invalid type: string \"x\", expected a number"]);
}

#[test]
fn what_has_a_wrong_type_hides_nothing_else() {
    let (wrong, codes) = wrong_types(&[
        (DEF, r#""num_queues": 4"#, r#""num_queues": "4""#),
        (DEF, r#""tmp-buf""#, r#""temporary""#),
        (SP, r#""op":"add""#, r#""op":"add","scale":"x""#),
        (SP, r#""to":"t""#, r#""to":"none""#),
    ]);
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    assert!(codes.contains(&"neff-variable-type"), "{codes:?}");
    assert!(codes.contains(&"neff-descriptor-variable"), "{codes:?}");
}

/// A graph with two program nodes for different hardware.
fn two_kelfs() -> Vec<u8> {
    let limits = Limits::default();
    let graph = r#"{"nodes": [{"op": "tvm_op", "attrs": {"kelf": "a.json"}}, {"op": "tvm_op", "attrs": {"kelf": "b.json"}}]}"#;
    let members: [(&str, &[u8]); 5] = [
        ("neff.json", graph.as_bytes()),
        (
            "a.json",
            br#"{"graphs": [{"definition": "a/def.json", "name": "s"}], "target": "sunda"}"#,
        ),
        (
            "b.json",
            br#"{"graphs": [{"definition": "b/def.json", "name": "s"}], "target": "cayman"}"#,
        ),
        ("a/def.json", b"{}"),
        ("b/def.json", b"{}"),
    ];
    pack(members, None, &limits).expect("packed")
}
