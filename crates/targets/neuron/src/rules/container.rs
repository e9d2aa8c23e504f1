//! Rules about the container, its JSON members and how they name each other.

chipless_model::rules! {
    LIMIT Limit Error Chipless "neff-limit" "the file asks for more than a limit allows"
        "A size, a count or a ratio in the file is beyond the bound that keeps a hostile file from taking the machine."
        "If the file is trusted, raise the limit that the message names."
        "Chipless";
    HEADER_TRUNCATED Fault Error Format "neff-header-truncated" "the file ends inside the header"
        "A NEFF starts with a header of 1024 bytes; this file is shorter."
        "Take the file from its origin again."
        "NEFF specification, NEFF Header";
    HEADER_SIZE Fault Error Format "neff-header-size" "the header has another size than 1024 bytes"
        "The field header_size names the start of the data. Every known writer puts 1024 there; another value means another format or a damaged file."
        "Take the file from its origin again."
        "NEFF specification, NEFF Header";
    PACKAGE_VERSION Unsupported Error Chipless "neff-package-version" "the package version is not supported"
        "Package version 1 carries a SHA-256 hash, version 2 an MD5 hash; others are not known."
        "Pack the file with a tool that writes version 2."
        "NEFF specification, pkg_version";
    NEFF_VERSION Unsupported Error Chipless "neff-version" "the format's major version is not supported"
        "A runtime refuses a file whose major version is above its own, because fields may have changed their meaning."
        "Compile with the compiler that belongs to the runtime."
        "NEFF specification, neff_version_major";
    DATA_SIZE Fault Error Format "neff-data-size" "the header counts more data than the file has"
        "data_size counts all bytes behind the header, padding included."
        "The file is cut off: take it from its origin again."
        "NEFF specification, data_size";
    PAYLOAD Fault Error Format "neff-payload" "the payload is neither gzip nor tar"
        "Behind the header stands a tarball, plain or as one gzip member."
        "Take the file from its origin again."
        "NEFF specification, Tarball";
    GZIP Fault Error Format "neff-gzip" "the compressed payload is damaged"
        "The gzip member ends early, cannot be inflated, or its checksum or length does not fit its content."
        "Take the file from its origin again."
        "RFC 1951, RFC 1952";
    TAR Fault Error Format "neff-tar" "the tarball is damaged"
        "A tar header has a wrong checksum, a size beyond the tarball, or a damaged extended record."
        "Take the file from its origin again."
        "POSIX.1-2017, pax";
    TAR_ENTRY_TYPE Unsupported Error Chipless "neff-tar-entry-type" "the tarball holds something else than files and folders"
        "Links and devices could make a careless tool write outside the folder that it unpacks into; no compiler writes them."
        "Do not unpack the file with other tools; ask where it comes from."
        "Chipless";
    TAR_PATH Unsupported Error Chipless "neff-tar-path" "a path in the tarball is not one of a NEFF"
        "Absolute paths, `..`, NUL, backslashes and paths that stand twice mean different files to different tools."
        "Do not unpack the file with other tools; ask where it comes from."
        "Chipless";
    MISSING_MEMBER Fault Error Format "neff-missing-member" "a member that another one names is missing"
        "neff.json names the kelf files, these the definitions, these the engines' files, instructions, tables and constants. The runtime loads all of them before it starts."
        "Pack the missing file, or take the NEFF from its origin again."
        "NEFF specification, Components";
    TWICE Unsupported Error Chipless "neff-named-twice" "a member is named from two places"
        "Kelf files, definitions and engine files belong to one place each. Named again and again, a small file would stand for an immense program."
        "Compile again."
        "Chipless";
    MISSING_DEBUG Departure Warning Writers "neff-missing-debug" "a debug file that def.json names is missing"
        "Debug files map instructions to source lines. The program runs without them."
        "To see source lines, compile again with debug information and keep the debug files in the container."
        "Files of the compiler";
    FUNCTION_SET Fault Error Format "neff-function-set" "an activation function set is not in the index"
        "activation_function_sets names sets that act_info describes."
        "Compile again."
        "NEFF specification, Activation.json";
    NPY Fault Error Format "neff-npy" "a constant is no valid npy file"
        "The header of an npy member is malformed, or its data is shorter or longer than its shape says."
        "Write the array again."
        "NEFF specification, Constants; NumPy format 1.0 to 3.0";
    JSON_SYNTAX Fault Error Format "neff-json-syntax" "a JSON member cannot be parsed"
        "The text of a member is not JSON: it ends early, is empty, is not UTF-8 or breaks the grammar."
        "Take the file from its origin again; a truncated member is mostly a truncated copy."
        "RFC 8259";
    JSON_TYPE Fault Error Format "neff-json-type" "a value of another type than the format has"
        "A field holds a value of the wrong JSON type, or a number that its type cannot hold."
        "Write the field as the specification says."
        "NEFF specification";
    JSON_DUPLICATE_KEY Fault Error Format "neff-json-duplicate-key" "a key stands twice in one object"
        "Readers differ in which of the two values they take, so the meaning of the file is open."
        "Remove one of the two."
        "RFC 8259, section 4";
    TRAILING Fault Warning Format "neff-trailing-bytes" "bytes stand behind the data"
        "The file goes on behind what data_size covers. No tool reads these bytes."
        "Cut the file at 1024 + data_size, or ask who appended to it."
        "NEFF specification, data_size";
    HASH Fault Warning Format "neff-hash" "the hash does not fit the data"
        "The header's hash is that of other data. Runtimes check it only where NEURON_RT_VALIDATE_HASH is set, so the file may load and still be damaged or edited."
        "Pack the file again, or take it from its origin again."
        "NEFF specification, hash; runtime configuration guide";
    FEATURE_UNKNOWN Fault Warning Format "neff-feature-unknown" "a feature bit has no known name"
        "A runtime refuses a file that sets a bit which it does not know."
        "Check the file against the runtime that will load it: `check --runtime NAME`."
        "NEFF specification, feature_bits";
    FEATURE_MISSING Fault Warning Format "neff-feature-missing" "the program uses a feature whose bit is not set"
        "The feature bits let an old runtime refuse what it cannot do. Without the bit it takes the file and fails later."
        "Set the bit in the header."
        "NEFF specification, feature_bits; measured on compiler output";
    PADDING Fault Warning Format "neff-padding" "padding that should be zero is not"
        "Behind the gzip member, or behind the tarball's last entry, stand bytes that nothing reads; or the tarball lacks its end mark."
        "Pack the file again."
        "POSIX.1-2017, pax; measured on compiler output";
    HEADER_PAD Fault Warning Format "neff-header-pad" "the header's unused bytes are not zero"
        "Bytes 556 to 1023 have no meaning in the known format versions; a later version may have put something there."
        "Use a tool that knows the file's version."
        "NEFF specification, pad";
    CORE_COUNT Fault Warning Format "neff-core-count" "the header's core counts contradict each other"
        "num_tpb is the sum of tpb_per_node."
        "Compile again."
        "NEFF specification, num_tpb, tpb_per_node";
    GRAPH Fault Error Format "neff-graph" "neff.json contradicts itself"
        "A head, a shape or a type names an entry that the graph does not have."
        "Compile again."
        "Graph runtime JSON";
    GRAPH_INDEX Fault Warning Format "neff-graph-index" "the lists of neff.json do not fit each other"
        "Inputs of a node, arguments and heads name nodes and their outputs by number; the lists of shapes and types have an entry for each output, and node_row_ptr says where those of a node begin. A runtime that trusts a number which leads nowhere reads something else, or fails."
        "Compile again."
        "Graph runtime JSON; measured on compiler output";
    GRAPH_NODE Fault Warning Format "neff-graph-node" "a node of neff.json is neither an argument nor a program"
        "Nodes of op null are arguments, nodes of op tvm_op with func_name __kelf are compiled programs. Others are not run."
        "Compile again."
        "Graph runtime JSON; measured on compiler output";
    ENGINE_MISSING Fault Warning Format "neff-engine-missing" "a subgraph does not name the files of all five engines"
        "def.json names an engine JSON (act, dve, pe, pool, sp) and an instruction binary (the same with _instr) for each engine, also for one that has nothing to do. Compilers write all ten."
        "Name the missing file, if need be an empty one."
        "NEFF specification, def.json; measured on compiler output";
    HASH_KIND Fault Warning Format "neff-hash-kind" "the hash is of another kind than the package version says"
        "Package version 1 goes with SHA-256, version 2 with MD5. A runtime that validates hashes computes the one that belongs to the version, and refuses the file."
        "Pack the file again."
        "NEFF specification, hash";
    NO_PROGRAM Fault Error Format "neff-no-program" "the file has no subgraph to run"
        "neff.json has no node with a kelf file, or the kelf files list no definition."
        "Compile again."
        "NEFF specification, Subgraphs";
    TARGET Unsupported Error Chipless "neff-target" "the target hardware is not supported"
        "The kelf file's target is a code name: tonga (inf1), sunda (trn1, inf2), cayman (trn2), mariana (trn3)."
        "Compile for one of these."
        "Files of the compiler";
    TARGETS_DIFFER Departure Warning Writers "neff-targets-differ" "kelf files of one program name different hardware"
        "All parts of a program run on one device."
        "Compile all parts for one target."
        "Files of the compiler";
    LNC Fault Warning Format "neff-logical-core" "the number of subgraphs does not fit the logical core size"
        "Each physical core of a logical core runs one subgraph, so a kelf file lists lnc_size subgraphs (except on inf1, where subgraphs are stages of a pipeline)."
        "Compile with the logical core size of the system."
        "NEFF specification, lnc_size, Subgraphs";
    LNC_ARCHITECTURE Fault Error Format "neff-logical-core-architecture" "a logical core of several cores on hardware that has none"
        "Logical cores of more than one physical core came with trn2. Earlier hardware runs each subgraph alone."
        "Compile for trn2, or for a logical core of size 1."
        "NEFF specification, lnc_size; vendor documentation, logical cores";
    SUBGRAPH_TWICE Unsupported Error Chipless "neff-subgraph-twice" "two subgraphs of one kelf file have the same name"
        "A subgraph's name stands for its core: queues, semaphores and tasks are named after it. With one name for two, nobody can tell which is meant."
        "Rename one of them."
        "Chipless";
    TARGET_MISSING Departure Warning Writers "neff-target-missing" "a kelf file does not name its hardware"
        "target says for which hardware the subgraphs were compiled. Without it no rule of an architecture can be checked, and the figures of trn2 time the program."
        "Name the target."
        "Files of the compiler";
    DEVICE_MEMORY Fault Error Hardware "neff-device-memory" "the program needs more memory than the device, or a core of it, has"
        "Tensors, constants, scratch and code of all cores are live together and must fit the HBM of one chip; rings of descriptors come on top. The load would fail."
        "Split the program, or compile it for more devices. `info --memory` shows what takes how much."
        "Runtime guide, device memory; vendor documentation, architecture guides";
    FUNCTION_SET_INDEX Fault Warning Format "neff-function-set-index" "activation function sets are named, but no index of them"
        "Each name in activation_function_sets points to metadata of tables in the subgraph's folder, and act_info names the member that lists them. Without it the engine has no tables to load."
        "Add act_info and the tables, or remove the names."
        "NEFF specification, Activation.json; measured on compiler output";
    IO_MISSING Fault Error Format "neff-io-missing" "neff.json names a tensor that no subgraph declares"
        "Inputs and outputs are found by name among the variables of the subgraphs."
        "Declare a variable of that name."
        "NEFF specification, Variables";
    IO_TYPE Fault Error Format "neff-io-type" "an input or output is declared as another type of variable"
        "A tensor that neff.json lists as input must be a variable of type input, an output one of type output."
        "Mend the variable's type."
        "NEFF specification, Variables";
    IO_SIZE Fault Error Format "neff-io-size" "a tensor is larger than its variable"
        "Shape and element type in neff.json give more bytes than the variable has."
        "Make both agree."
        "NEFF specification, Variables: size";
    IO_PADDING Fault Warning Format "neff-io-padding" "a tensor is smaller than its variable"
        "Shape and element type in neff.json give fewer bytes than the variable has; the rest is nobody's."
        "Make both agree."
        "NEFF specification, Variables: size";
    IO_ELEMENT Unsupported Error Chipless "neff-io-element-type" "a tensor has an element type that is not supported"
        "neff.json names an element type that neither descriptors nor array libraries have."
        "Use one of the types of the specification."
        "NEFF specification, from_dtype";
    OUTPUT_TWICE Departure Warning Writers "neff-output-twice" "an output is listed more often than subgraphs write it"
        "With two cores on a logical core neff.json lists an output once for each core. More mentions mean that another output is lost."
        "Name each output once for each subgraph."
        "Measured on compiler output";
    IO_UNLISTED Fault Warning Format "neff-io-unlisted" "a variable is an input or output that neff.json does not list"
        "The host can neither give nor get it."
        "List it in neff.json."
        "NEFF specification, Variables";
    SIDES_DIFFER Departure Warning Writers "neff-io-differs" "subgraphs declare a shared tensor with different sizes"
        "Inputs and outputs are shared by name between the cores."
        "Make the declarations agree."
        "Measured on compiler output";
    INSTRUCTION_NAME Departure Warning Writers "neff-instruction-name" "two names for one engine's instructions"
        "def.json and the engine JSON both name the instruction file, and they differ. def.json is followed."
        "Make them agree."
        "Files of the compiler";
    MORE_FINDINGS Limit Note Chipless "neff-more-findings" "there are more findings than shown"
        "The number of findings is bounded."
        "Mend the first ones and check again, or raise the limit `findings`."
        "Chipless";
    RUNTIME_FEATURES Fault Error Format "neff-runtime-features" "the runtime refuses a feature of the file"
        "A runtime compares the header's feature bits with those that it knows, and refuses a file with others before it loads anything."
        "Update the runtime, or compile without the feature."
        "NEFF specification, feature_bits; load errors reported by users";
    RUNTIME_VERSION Fault Error Format "neff-runtime-version" "the runtime refuses the file's version"
        "A runtime refuses a major version above its own."
        "Update the runtime, or compile with the compiler that belongs to it."
        "Vendor documentation, troubleshooting guide";
    LOGICAL_CORE Fault Error Hardware "neff-logical-core-size" "a logical core has neither one nor two cores"
        "lnc_size counts the physical cores of a logical one: 1, or from trn2 on 2. 0 stands for 1."
        "Compile again for a logical core of 1 or 2."
        "NKI documentation, logical NeuronCore configuration";
    SEVERAL_CORES Fault Warning Format "neff-feature-logical-core" "the header asks for several cores, the program has one"
        "Feature bit 0x400 (vnc) stands on programs whose logical core has several physical ones."
        "Correct the feature bits or lnc_size."
        "measured on compiler output; vendor error messages";
    GRAPH_COUNT Departure Warning Writers "neff-graph-count" "the graph contradicts itself about its inputs or outputs"
        "num_inputs and num_outputs of a program node, and the signatures in metadata, repeat what the graph says."
        "Correct the number, or what it counts."
        "measured on compiler output";
    INFO_CORES Departure Warning Writers "neff-info-cores" "info.json and the header give different numbers of cores"
        "num_tpb and num_tpb_requested of info.json repeat fields of the header."
        "Make both agree."
        "measured on compiler output";
    RUNTIME_RINGS Fault Error Hardware "neff-runtime-rings" "queue sets need more hardware rings than a core has"
        "A queue set takes one ring on each DMA engine that it uses; a core has 16 engines of 16 rings."
        "Use fewer queue sets, or instances of one."
        "NKI DMA overview; DMA bandwidth guide";
}
