//! What can be wrong with an architecture graph.

chipless_model::rules! {
    LIMIT Limit Error Chipless "adg-limit" "the architecture graph asks for more than a limit allows"
        "A size or a count in the file is beyond the bound that keeps a hostile file from taking the machine."
        "If the file is trusted, raise the limit that the message names."
        "Chipless";
    SYNTAX Fault Error Format "adg-syntax" "the text is not JSON"
        "An architecture graph is one JSON object."
        "Take the file from its origin again."
        "RFC 8259";
    MISSING Fault Error Format "adg-missing" "a field is missing or has another type"
        "The message names the field by its JSON pointer and says what was expected and what was found."
        "Write the field as the generator does."
        "dsagen2, parameters of the nodes; measured on its output";
    UNSUPPORTED Unsupported Error Chipless "adg-unsupported" "a form of architecture graph that is not read"
        "Read are the JSON of the generator (DSAGenNodes), that of the 2020 tools (nodes and links), and the text of 2016 to 2020 (.sbmodel)."
        "Export the fabric as JSON with the generator."
        "dsa-scheduler, fabric.cpp and model.cpp";
    TEXT Fault Error Format "adg-text" "a line of a text model cannot be read"
        "A text model has sections in brackets and lines of the form `key: value`; the message says what was expected."
        "Write the line as the tool's own models do."
        "dsa-scheduler, model.cpp";
    PORT_TWICE Fault Warning Format "adg-port-twice" "a port of a text model is written twice"
        "The tool keeps one list of links for each number of a port: a later line takes the place of an earlier one."
        "Give each port a number of its own, or remove the line that does not count."
        "dsa-scheduler, sub_model.cpp";
    EXTRA_TYPES Fault Warning Format "adg-extra-types" "the layout of a text model is larger than its mesh"
        "The tool reads as many rows as the mesh is high, and as many types of each as it is wide. What stands beyond is not read: the fabric is the smaller one."
        "Make width and height those of the layout, or remove the types that do not count."
        "dsa-scheduler, sub_model.cpp";
    ELEMENT Fault Error Format "adg-element" "an element of an unknown kind, or twice the same"
        "Known are ProcessingElement, Switch, InputVectorPort, OutputVectorPort, DirectMemoryAccess, ScratchpadMemory, RecurrenceEngine, GenerateEngine and RegisterEngine, each with a number of its own."
        "Rename the element."
        "dsagen2, node types";
    DANGLING Fault Error Format "adg-dangling-link" "a link begins or ends at an element that is not there"
        "Both ends of a link must be elements of the graph."
        "Add the element or remove the link."
        "dsagen2, edges";
    INDEX Fault Warning Format "adg-link-index" "two links of an element share an index, or one is left out"
        "The index of a link at an element is the number of its hardware port. Links of the same index are taken in the order of the file."
        "Number the links of each side of an element from 0 without gaps."
        "dsagen2, edges";
    GRANULARITY Fault Error Format "adg-granularity" "the granularity of an element does not fit its width"
        "The data path is divided into parts of 8, 16, 32 or 64 bits, each routed on its own."
        "Use a granularity of 8, 16, 32 or 64 that divides the width."
        "dsagen2, CompNode parameters";
    FLOW_CONTROL Fault Error Format "adg-flow-control" "an element that is half dynamic, half static"
        "A dynamic element needs a dynamic output buffer, a static one a static buffer: isDynamic and staticOutputBuffer must differ."
        "Change one of the two."
        "dsagen2, requirement of ProcessingElement";
    DIRECTION Fault Error Format "adg-direction" "a link that nothing can travel"
        "Streams go from a memory to an input port, through processing elements and switches, to an output port, to a memory."
        "Remove the link or turn it round."
        "dsa-scheduler, rules of spatial mapping";
    UNCONNECTED Departure Warning Writers "adg-unconnected" "an element that nothing can reach or leave"
        "Without links on both sides an element cannot take part."
        "Connect it or remove it."
        "Chipless";
    NO_LANE Fault Warning Format "adg-no-lane" "a stated port without a link for data"
        "The first link of a stated port is kept for the state of the stream, also when the stream has none."
        "Give the port another link, or make it stateless."
        "dsa-scheduler, rules of spatial mapping";
    NO_OPERATION Fault Warning Format "adg-no-operation" "a processing element without operations"
        "Nothing can be placed on it."
        "List its operations in OperationDataTypeSet."
        "dsagen2, DsaOperations parameters";
}
