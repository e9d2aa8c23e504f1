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
        "Write `version: 1`."
        "runtime plan, version 1";
    NO_OUTPUTS Fault Warning Format "fqir-no-outputs" "a step has no outputs"
        "The outputs of the graph ARITH, or of the plan where it has none, are what the host gets. Without any the program computes for nobody."
        "List the outputs."
        "runtime plan, version 1";
    TWICE Departure Warning Writers "fqir-produced-twice" "two nodes of a graph give one tensor"
        "Each tensor of a graph is defined once; the second node overwrites what the first one made."
        "Remove one of the nodes, or give its output a name of its own."
        "runtime plan, version 1";
    LIMIT Limit Error Chipless "fqir-limit" "the plan exceeds a limit"
        "Limits keep a hostile file from taking the machine."
        "If the file is trusted, raise the limit with --limit."
        "Chipless";
    ARCHIVE Fault Error Format "fqir-archive" "the archive of a .pt file is damaged"
        "Such a file is a zip archive with one member data.pkl in a folder, stored or deflated, and a directory that tells its size and checksum."
        "Save the graph again, or copy the file again."
        "torch.save, zip archives";
    PICKLE Fault Error Format "fqir-pickle" "the pickle of a .pt file is damaged"
        "A pickle is a program for a stack machine. It takes from the stack what is not there, claims sizes that it does not have, ends too early, or has an opcode that no graph needs."
        "Save the graph again with fmot.save."
        "pickle protocol 2; graphs that fmot 1.3 to 3.21 save";
    PICKLE_PROTOCOL Unsupported Error Chipless "fqir-pickle-protocol" "the pickle is of a later protocol"
        "torch.save writes protocol 2 unless it is told otherwise."
        "Save the graph again with fmot.save, or with torch.save without pickle_protocol."
        "pickle protocol 2";
    PICKLE_CALL Fault Error Format "fqir-pickle-call" "the pickle asks for a class or a call that graphs do not have"
        "A pickle may call any function of any Python module, and loading it in Python would do so. Chipless calls none: it knows the classes of graphs, arrays and scalars by name, and refuses everything else. A file with such a call was not written by fmot.save, or carries an object that is no graph."
        "Do not load a file in Python whose origin you do not know."
        "pickle protocol 2; graphs that fmot 1.3 to 3.21 save";
    SAVED Fault Error Format "fqir-saved" "the .pt file holds no graph that can be read"
        "The object in the file is a GraphProto with nodes, tensors and subgraphs, each field of its type; arrays hold integers or reals."
        "Save the graph with fmot.save(graph, \"m.pt\")."
        "graphs that fmot 1.3 to 3.21 save";
    VALUE Fault Error Format "fqir-value" "a parameter has a value outside its declared type"
        "A type like int8 or fqint16 says which integers a tensor holds. A larger one cannot be stored on the chip."
        ""
        "FQIR types";
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
