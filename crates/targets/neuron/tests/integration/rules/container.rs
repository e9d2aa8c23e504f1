//! Faults of the container, of `neff.json` and of the kelf files.

use super::{ACT, Case, DEF, INFO, KELF, NEFF, SP, entry};

pub(super) const CASES: &[Case] = &[
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
];
