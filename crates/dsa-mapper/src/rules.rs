//! What can be wrong with a file that holds a mapping.

chipless_model::rules! {
    SYNTAX Fault Error Format "mapping-syntax" "the text is not JSON"
        "A mapping is one JSON object in the layout of the scheduler's sched_adg.json."
        "Take the file from its origin again."
        "RFC 8259";
    FIELD Fault Error Hardware "mapping-field" "a field of the mapping is missing or has another type"
        "The message names the field by its JSON pointer and says what was expected and what was found."
        "Write the field as docs/dsa-mapping.md describes it."
        "dsa-scheduler, its output sched_adg.json";
    UNKNOWN Fault Error Hardware "mapping-unknown" "the mapping names something that is not there"
        "Vertices and edges are numbered as in the graph, elements named as in the architecture graph; links lead from one element to another."
        "Check that graph, architecture graph and mapping belong together."
        "dsa-scheduler, its output sched_adg.json";
    TWICE Fault Error Hardware "mapping-twice" "a vertex or an edge is mapped twice"
        "Every vertex has one place, every edge one way."
        "Remove one of them."
        "dsa-scheduler, its output sched_adg.json";
}
