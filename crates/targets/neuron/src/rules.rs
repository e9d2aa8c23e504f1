//! What can be wrong with a NEFF: one rule for each kind of finding.

use chipless_model::{Rule, Severity};

macro_rules! rules {
    ($($name:ident $severity:ident $code:literal $summary:literal $explanation:literal $remedy:literal $source:literal;)*) => {
        $(
            #[doc = $summary]
            pub static $name: Rule = Rule {
                code: $code,
                severity: Severity::$severity,
                summary: $summary,
                explanation: $explanation,
                remedy: $remedy,
                source: $source,
            };
        )*

        /// Every rule of this target.
        pub static ALL: &[&Rule] = &[$(&$name,)*];
    };
}
pub(crate) use rules;

rules! {
    LIMIT Error "neff-limit" "the file asks for more than a limit allows"
        "A size, a count or a ratio in the file is beyond the bound that keeps a hostile file from taking the machine."
        "If the file is trusted, raise the limit that the message names." "Chipless";
    HEADER_TRUNCATED Error "neff-header-truncated" "the file ends inside the header"
        "A NEFF starts with a header of 1024 bytes; this file is shorter."
        "Take the file from its origin again." "NEFF specification, NEFF Header";
    HEADER_SIZE Error "neff-header-size" "the header has another size than 1024 bytes"
        "The field header_size names the start of the data. Every known writer puts 1024 there; another value means another format or a damaged file."
        "Take the file from its origin again." "NEFF specification, NEFF Header";
    PACKAGE_VERSION Error "neff-package-version" "the package version is not supported"
        "Package version 1 carries a SHA-256 hash, version 2 an MD5 hash; others are not known."
        "Pack the file with a tool that writes version 2." "NEFF specification, pkg_version";
    NEFF_VERSION Error "neff-version" "the format's major version is not supported"
        "A runtime refuses a file whose major version is above its own, because fields may have changed their meaning."
        "Compile with the compiler that belongs to the runtime." "NEFF specification, neff_version_major";
    DATA_SIZE Error "neff-data-size" "the header counts more data than the file has"
        "data_size counts all bytes behind the header, padding included."
        "The file is cut off: take it from its origin again." "NEFF specification, data_size";
    PAYLOAD Error "neff-payload" "the payload is neither gzip nor tar"
        "Behind the header stands a tarball, plain or as one gzip member."
        "Take the file from its origin again." "NEFF specification, Tarball";
    GZIP Error "neff-gzip" "the compressed payload is damaged"
        "The gzip member ends early, cannot be inflated, or its checksum or length does not fit its content."
        "Take the file from its origin again." "RFC 1951, RFC 1952";
    TAR Error "neff-tar" "the tarball is damaged"
        "A tar header has a wrong checksum, a size beyond the tarball, or a damaged extended record."
        "Take the file from its origin again." "POSIX.1-2017, pax";
    TAR_ENTRY_TYPE Error "neff-tar-entry-type" "the tarball holds something else than files and folders"
        "Links and devices could make a careless tool write outside the folder that it unpacks into; no compiler writes them."
        "Do not unpack the file with other tools; ask where it comes from." "Chipless";
    TAR_PATH Error "neff-tar-path" "a path in the tarball is not one of a NEFF"
        "Absolute paths, `..`, NUL, backslashes and paths that stand twice mean different files to different tools."
        "Do not unpack the file with other tools; ask where it comes from." "Chipless";
    MISSING_MEMBER Error "neff-missing-member" "a member that another one names is missing"
        "neff.json names the kelf files, these the definitions, these the engines' files, instructions, tables and constants. The runtime loads all of them before it starts."
        "Pack the missing file, or take the NEFF from its origin again." "NEFF specification, Components";
    MISSING_DEBUG Warning "neff-missing-debug" "a debug file that def.json names is missing"
        "Debug files map instructions to source lines. The program runs without them."
        "None needed; compile again if source lines are wanted." "Files of the compiler";
    FUNCTION_SET Error "neff-function-set" "an activation function set is not in the index"
        "activation_function_sets names sets that act_info describes."
        "Compile again." "NEFF specification, Activation.json";
    NPY Error "neff-npy" "a constant is no valid npy file"
        "The header of an npy member is malformed, or its data is shorter or longer than its shape says."
        "Write the array again." "NEFF specification, Constants; NumPy format 1.0 to 3.0";
    JSON_SYNTAX Error "neff-json-syntax" "a JSON member cannot be parsed"
        "The text of a member is no JSON: it ends early, is empty, is not UTF-8 or breaks the grammar."
        "Take the file from its origin again; a truncated member is mostly a truncated copy." "RFC 8259";
    JSON_TYPE Error "neff-json-type" "a value of another type than the format has"
        "A field holds a value of the wrong JSON type, or a number that its type cannot hold."
        "Write the field as the specification says." "NEFF specification";
    JSON_DUPLICATE_KEY Error "neff-json-duplicate-key" "a key stands twice in one object"
        "Readers differ in which of the two values they take, so the meaning of the file is open."
        "Remove one of the two." "RFC 8259, section 4";
}
