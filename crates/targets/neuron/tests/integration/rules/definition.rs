//! Faults of queue sets and variables.

use super::{Case, DEF, INF1, SP, TO, entry, queue};

pub(super) const CASES: &[Case] = &[
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
    ("neff-queue-count", &[INF1]),
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
        &[INF1, queue(r#""queue_instances": ["a"]"#)],
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
];
