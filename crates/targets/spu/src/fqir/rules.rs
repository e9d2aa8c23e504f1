//! What can be wrong with a plan.

chipless_model::rules! {
    JSON Fault Error Format "fqir-json" "the file is no plan that can be read"
        "A plan is JSON: a graph with name, inputs, outputs, parameters, nodes and subgraphs, each of its type."
        ""
        "runtime plan, version 1";
    VERSION Unsupported Error Chipless "fqir-version" "the plan is of a version that is not supported"
        "Version 1 is the only one known."
        ""
        "runtime plan, version 1";
    NO_VERSION Fault Warning Format "fqir-version-missing" "the plan does not say its version"
        "Plans are written with a version, so that those of another one are not taken for what they are not."
        "write version: 1"
        "runtime plan, version 1";
    NO_OUTPUTS Fault Warning Format "fqir-no-outputs" "a step has no outputs"
        "The outputs of the graph ARITH, or of the plan where it has none, are what the host gets. Without any the program computes for nobody."
        "list the outputs"
        "runtime plan, version 1";
    TWICE Fault Warning Format "fqir-produced-twice" "two nodes of a graph give one tensor"
        "Each tensor of a graph is defined once; the second node overwrites what the first one made."
        "remove one of the nodes, or give its output a name of its own"
        "runtime plan, version 1";
    LIMIT Limit Error Chipless "fqir-limit" "the plan exceeds a limit"
        "Limits keep a hostile file from taking the machine."
        "--limit raises it"
        "Chipless";
    OPERATION Unsupported Error Chipless "fqir-operation" "an operation is not supported"
        "Operations that the format cannot carry whole, or that have no meaning before the compiler has taken them apart, cannot be executed."
        ""
        "FQIR registry fmot_atomics_v1.2";
    NAME Fault Error Format "fqir-name" "a tensor or subgraph is used that nothing defines"
        "A node reads a tensor that no input, parameter, state or earlier node provides, or calls a subgraph that is not there."
        ""
        "runtime plan, version 1";
    SHAPE Fault Error Format "fqir-shape" "shapes do not fit"
        "The shapes of a node's operands do not go together, or a value does not have the shape that is declared."
        ""
        "FQIR operations";
    CONSTANT Fault Error Format "fqir-constant" "a constant of a node is missing or makes no sense"
        "Shift amounts, bit widths, lengths and lists have ranges within which an operation has a meaning."
        ""
        "FQIR operations";
    MEMORY Fault Warning Hardware "fqir-memory" "the tensors do not fit the memories of the chip"
        "Parameters, state and values of a step together are larger than the data memories of both cores. A compiler may still fit them: by sparsity, and by giving one place to values that do not live at the same time."
        ""
        "SPU-001 as femtodriver 2.6 describes it";
}
