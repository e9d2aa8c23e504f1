//! Rules about files that no target gets to see.

chipless_model::rules! {
    UNREADABLE Unsupported Error Chipless "file-unreadable" "the file cannot be opened or read"
        "The operating system did not give the bytes of the file."
        "Check the name and the permissions."
        "the operating system";

    UNKNOWN Unsupported Error Chipless "file-unknown" "no target recognises the file"
        "Chipless tells the kind of a program by the first bytes of its file, never by its name. These bytes begin none of the formats that it knows: the file is of another kind, is damaged at its start, or is packed."
        "Check that it is the compiled program, and unpack it if it is in an archive."
        "the formats of the targets";

    TASKS Limit Error Chipless "limit-tasks" "the program has more tasks than the limit"
        "Chipless keeps programs from taking all memory: more tasks than the limit `tasks` are refused."
        "If the file is trusted, raise the limit: --limit tasks=NUMBER."
        "the limits of Chipless";

    MEMORY Limit Error Chipless "limit-memory" "the buffers of the program are larger than the limit"
        "Chipless keeps programs from taking all memory: buffers of more bytes together than the limit `memory_bytes` are refused when the program is to run."
        "If the file is trusted, raise the limit: --limit memory_bytes=NUMBER."
        "the limits of Chipless";
}
