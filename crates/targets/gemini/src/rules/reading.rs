//! Rules about text that cannot be read.

chipless_model::rules! {
    SYNTAX Fault Error Format "gemini-json" "the file is not JSON"
        "The text breaks the grammar of JSON at this place: it ends too early, goes on after the end, or has something else in it."
        "Write the file again; a file that ends too early was cut off."
        "RFC 8259";
    VALUE Fault Error Format "gemini-json-value" "a value has another type or range than the format gives it"
        "Numbers are whole and not negative where they count, index or name something; lists of corners have four numbers; types and layer types are of a fixed set."
        "Mend the value."
        "Scheduler IR format description";
    MISSING Fault Error Format "gemini-key-missing" "a key is missing that the format demands"
        "Without it the entry has no meaning."
        "Write the key."
        "Scheduler IR format description";
    DUPLICATE Fault Error Format "gemini-key-twice" "a key stands twice in one object"
        "Readers differ in which of the two they take, so the file means different things to different tools."
        "Remove one of them."
        "RFC 8259, section 4; scheduler IR format description";
    DIALECT Fault Error Format "gemini-dialect" "a file mixes dialects"
        "The spec's dialect, SET and GEMINI, and IR-tiling write the same things with different keys and units. One file has one dialect, which is seen from its top-level keys."
        "Write the file in one dialect; `chipless convert` makes the spec's of all others."
        "Scheduler IR format description; files of the schedulers of this family";
    LIMIT Limit Error Chipless "gemini-limit" "a file is larger or deeper than the limits allow"
        "Limits keep hostile files from taking the machine. That of the depth is fixed: schedules are far from it."
        "Raise the limit that the finding names with --limit if the file is to be trusted."
        "Chipless";
    GZIP Fault Error Format "gemini-gzip" "a gzipped file cannot be unpacked"
        "It is damaged or cut off, or it grows beyond the limits."
        "Pack the file again, or raise the limits inflated_bytes and inflate_ratio."
        "RFC 1952";
    NETWORK Fault Error Format "gemini-network" "the front-end file cannot be read"
        "It is not JSON, or not an object of layers with the keys that every layer has."
        "Give the front-end file from which the schedule was made."
        "Front-end IR files";
}
