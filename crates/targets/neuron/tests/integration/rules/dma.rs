//! Faults of DMA descriptors.

use super::{Case, DEF, FROM, INF1, KELF, SP, TO, entry, queue};

pub(super) const CASES: &[Case] = &[
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
        &[INF1, entry(r#""id":1,"instance_name":"q","#)],
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
        &[INF1, entry(r#""id":1,"function_start":"f","#)],
    ),
    (
        "neff-descriptor-section-architecture",
        &[INF1, entry(r#""id":1,"section_start_desc":true,"#)],
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
        &[INF1, queue(r#""pinned": true"#)],
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
    ("neff-descriptor-operation-architecture", &[INF1]),
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
    ("neff-descriptor-from-arr-architecture", &[INF1]),
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
        "neff-dma-write-size",
        &[(
            SP,
            r#""to":"t","to_off":0,"to_sizes":[256]"#,
            r#""to":"SB","to_off":0,"to_sizes":[254]"#,
        )],
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
    ("neff-descriptor-dtype-architecture", &[INF1]),
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
        &[INF1, (SP, r#""op":"add""#, r#""op":"fma","scale":2"#)],
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
        &[INF1, (SP, r#""op":"add""#, r#""op":"min","constant":1"#)],
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
            INF1,
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
        "neff-dma-small-rows",
        &[
            (DEF, r#""size": 256"#, r#""size": 65536"#),
            (
                SP,
                r#""from_sizes":[256],"from_steps":[1],"to""#,
                r#""from_sizes":[1,32768],"from_steps":[1,2],"to""#,
            ),
        ],
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
