//! What can be wrong with an IOSpec. A rule has two severities: one under the text of the specification, one under the
//! behaviour of the femtorun package, which refuses less.

use super::RuleSet;
use chipless_model::Rule;

/// A rule under both rule sets.
#[derive(Debug)]
pub struct Law {
    spec: &'static Rule,
    femtorun: &'static Rule,
}

impl Law {
    /// The rule with its severity under a rule set.
    pub const fn under(&'static self, rules: RuleSet) -> &'static Rule {
        match rules {
            RuleSet::Spec => self.spec,
            RuleSet::Femtorun41 => self.femtorun,
        }
    }
}

/// Declares laws: name, class, severity under `spec`, severity under `femtorun-4.1`, evidence, code, summary, explanation, remedy, source.
macro_rules! laws {
    ($($name:ident $class:ident $spec:ident $femtorun:ident $evidence:ident $code:literal $summary:literal
        $explanation:literal $remedy:literal $source:literal;)*) => {
        $(
            #[doc = $summary]
            pub static $name: Law = {
                mod spec {
                    chipless_model::rules! { RULE $class $spec $evidence $code $summary $explanation $remedy $source; }
                }
                mod femtorun {
                    chipless_model::rules! { RULE $class $femtorun $evidence $code $summary $explanation $remedy $source; }
                }
                Law { spec: &spec::RULE, femtorun: &femtorun::RULE }
            };
        )*

        /// Every rule of IOSpecs.
        pub static ALL: &[&Law] = &[$(&$name,)*];
    };
}

laws! {
    SYNTAX Fault Error Error Format "iospec-yaml" "the text is no YAML document that can be read"
        "IOSpecs are one YAML document of plain data. Tabs that indent, a second document, tags of a programming language, collections as keys, and documents that grow out of bounds by aliases or depth are refused."
        ""
        "IOSpec format; YAML 1.1";
    DUPLICATE_KEY Fault Error Warning Format "iospec-duplicate-key" "a key stands twice in one mapping"
        "Python's loader silently keeps the last one, so half of what was written does not count."
        "Remove one of the two."
        "YAML 1.1; behaviour of femtorun 4.1";
    SECTION Fault Error Error Format "iospec-section" "a section is none that an IOSpec has, or not a mapping"
        "The sections are inputs, outputs, simple_sequences and complex_sequences, each a mapping from names to objects; each may be missing."
        ""
        "IOSpec format; behaviour of femtorun 4.1";
    FLAT Fault Error Error Format "iospec-flat" "the document is of the older flat dialect"
        "Before version 2 of the femtorun package one mapping held inputs, outputs and sequences side by side. Current tools refuse it."
        "Rewrite it in the present form with `chipless convert`."
        "femtorun 1.1.6";
    FIELD_MISSING Fault Error Error Format "iospec-field-missing" "a field that every such object has is missing"
        "Inputs and outputs have type, varname, length, precision and padded_length; sequences have type, inputs and outputs."
        ""
        "IOSpec format; behaviour of femtorun 4.1";
    FIELD_TYPE Fault Error Error Format "iospec-field-type" "a field is of the wrong type"
        "Names are text, lengths are integers; the inputs and outputs of a simple sequence are lists of names, those of a complex one map names to how often. Bare `on` and `no` are booleans in YAML 1.1: names like these need quotes."
        ""
        "IOSpec format; behaviour of femtorun 4.1";
    FIELD_TYPE_UNCHECKED Fault Error Warning Format "iospec-field-value" "a field has a value that makes no sense, which the femtorun package does not look at"
        "A type that is neither input nor output, a negative length, a program counter that is text: such a file loads and fails later, on the device or in the driver."
        ""
        "IOSpec format; behaviour of femtorun 4.1";
    FIELD_UNKNOWN Fault Note Note Format "iospec-field-unknown" "a field that the format does not know"
        "Nobody looks at it."
        ""
        "IOSpec format; behaviour of femtorun 4.1";
    FIELD_MISSPELT Fault Warning Warning Format "iospec-field-misspelt" "a field is probably misspelt, which is as if it were not there"
        "The field that was meant may be missing, so nothing else tells. Without `quantization` or its `scale`, for example, nobody knows which reals the integers stand for."
        "Write the name that was meant; `chipless check --fix` does it."
        "IOSpec format; behaviour of femtorun 4.1";
    EMPTY Fault Warning Warning Format "iospec-empty-vector" "a vector has no elements"
        "It can be written and read, and says nothing."
        ""
        "IOSpec format";
    CYCLE Fault Error Error Format "iospec-cycle" "inputs, sequences and outputs form a circle"
        "A sequence waits for something that only comes after it: it takes its own output, or bears the name of one of its inputs or outputs."
        ""
        "behaviour of femtorun 4.1";
    DUPLICATE_NAME Fault Error Error Format "iospec-duplicate-varname" "two vectors have one varname"
        "Vectors are sent and received by their varname, so it must be unique among inputs and outputs."
        ""
        "behaviour of femtorun 4.1";
    SAME_KEY Fault Error Warning Format "iospec-same-key" "one key names two things"
        "Inputs, outputs and sequences share one space of names. An output silently takes the place of an input with the same key; a sequence becomes one with a vector."
        ""
        "behaviour of femtorun 4.1";
    UNDEFINED_NAME Fault Error Warning Format "iospec-undefined-name" "a sequence names a vector that the document does not define"
        "A sequence with an undefined input never fires: its outputs never come. An undefined output is never reported."
        ""
        "IOSpec format";
    KEY_VARNAME Fault Warning Warning Format "iospec-key-varname" "key and varname of a vector differ"
        "The sequence check of femtorun takes the varname, the driver's table the key: with two names the vector cannot be sent to hardware."
        "Make key and varname equal."
        "femtorun 4.1 and femtodriver 2.6, which look the same vector up by different names";
    UNUSED Fault Warning Warning Format "iospec-unused" "a vector is in no sequence"
        "An input in no sequence makes nothing happen. An output in no sequence never comes; femtorun fails when outputs are received."
        "Name it in the inputs or outputs of a sequence, or remove it."
        "IOSpec format; behaviour of femtorun 4.1";
    PRODUCED_TWICE Fault Error Warning Format "iospec-produced-twice" "two sequences produce one output"
        "The host cannot tell whose result it is; femtorun fails when outputs are received."
        ""
        "behaviour of femtorun 4.1";
    OUTPUT_AS_INPUT Fault Error Warning Format "iospec-output-as-input" "a sequence takes an output of another one as its input"
        "Outputs go to the host. femtorun fails when outputs are received."
        ""
        "behaviour of femtorun 4.1";
    NEVER_FIRES Fault Warning Warning Format "iospec-never-fires" "a sequence can never fire"
        "It has no inputs, or needs one zero or a fraction of a time, so nothing makes it happen."
        ""
        "IOSpec format; behaviour of femtorun 4.1";
    REPEATED_INPUT Fault Warning Warning Format "iospec-repeated-input" "a simple sequence lists a vector twice"
        "It counts once. A vector that is needed several times belongs in a complex sequence."
        ""
        "behaviour of femtorun 4.1";
    OUTPUT_ORDER Departure Warning Warning Writers "iospec-output-order" "outputs of a sequence stand in another order than in the outputs section"
        "The firmware library returns them in the order of the sequence, femtorun in that of the section."
        "Bring both into one order."
        "IOSpec format; behaviour of femtorun 4.1";
    HINT Departure Warning Warning Writers "iospec-latched-hint" "the hint `latched` does not agree with the sequences"
        "What counts are the sequences: an input is latched when its sequence has no output. The hint (`latched` in the text, `latch` in files that tools write) decides how a femtofile exporter marks the vector."
        ""
        "IOSpec format; femtodriver 2.6";
    HINT_KEY Departure Note Note Writers "iospec-latched-key" "the hint is called `latched`, tools read `latch`"
        "The text of the format calls it latched; the compiler writes and the femtofile exporter reads latch, and takes a vector without it for an ordinary input."
        ""
        "IOSpec format; femtodriver 2.6";
    WORDS Fault Warning Warning Format "iospec-words" "the number of words is not what padded length and precision give"
        "Words are padded_length × precision / 64, rounded up. The driver refuses to send a vector whose packed words differ."
        ""
        "IOSpec format; femtodriver 2.6";
    PADDING Departure Warning Warning Writers "iospec-padding" "the padded length is less than the length, or not a multiple of 8"
        "Vectors are padded to whole pencils of the compiler, of 8 elements in all known programs."
        ""
        "IOSpec format; known compiled programs";
    PRECISION Departure Warning Warning Writers "iospec-precision" "the precision is not one that vectors on the wire have"
        "Hardware vectors are of 8 or 16 bits; 24 occurs before compilation, where the compiler splits such vectors."
        "Leave it if the contract is of a program of another target, which `chipless drive` runs with any width. For an SPU, write 8 or 16."
        "femtodriver 2.6";
    CORE_RANGE Fault Warning Warning Format "iospec-core" "the core does not exist"
        "A contract does not name its part. SPU-001 has cores 0 and 1, SPU-150 cores 0 to 3: no known part has the core that is stated."
        ""
        "SPU-001 and SPU-150 as femtodriver 2.6 describes them";
    PC_RANGE Fault Warning Warning Format "iospec-pc" "the program counter is outside the instruction memory"
        "A contract does not name its part. The instruction memory of SPU-001 has 4096 words, that of SPU-150 8192: no known part has the \
counter that is stated."
        ""
        "SPU-001 and SPU-150 as femtodriver 2.6 describes them";
    PC_CLASH Fault Warning Warning Format "iospec-pc-clash" "two inputs have one core and program counter"
        "A vector is told from another by the core and the counter in its header."
        ""
        "femtodriver 2.6";
    MAILBOX_CLASH Fault Warning Warning Format "iospec-mailbox-clash" "two outputs have one mailbox"
        "A reply is told from another by its mailbox."
        ""
        "femtodriver 2.6";
    WRONG_SIDE Fault Note Note Format "iospec-address-side" "an input has a mailbox, or an output a program counter"
        "Inputs are addressed by core_id and pc, outputs by mailbox_id; the other field does nothing."
        ""
        "femtodriver 2.6";
    ADDRESS_MISSING Fault Warning Warning Format "iospec-address-missing" "a compiled vector lacks what the driver needs"
        "Inputs need core_id, pc, length_64b_words and padded_length; outputs mailbox_id, length_64b_words and padded_length. Before compilation none of them is there; a document with some of them is neither."
        ""
        "femtodriver 2.6";
    SCALE Departure Warning Warning Writers "iospec-scale" "the scale is not a power of two, or the zero point not 0"
        "The compiler writes scales that are powers of two, and zero points of 0. The runners take and give integers, and read neither."
        ""
        "fmot 3.21";
    FIRMWARE_MULTIPLE Departure Warning Warning Writers "iospec-firmware-sequences" "several sequences have outputs"
        "The firmware library and the simple calls of femtorun support one sequence with outputs, besides latched ones. Chipless drives them all."
        ""
        "IOSpec format";
    FIRMWARE_COMPLEX Departure Warning Warning Writers "iospec-firmware-complex" "a complex sequence"
        "No firmware supports complex sequences yet, and femtofile exporters leave them out. Chipless drives them."
        ""
        "IOSpec format";
    UNDRIVABLE Fault Error Warning Proof "undrivable" "a contract that cannot be driven for good"
        "From every state that legal calls can reach, every input should be able to be written again, every output to be read and every sequence to fire. The calls that are named are legal, and a shortest list of those after which something can never happen."
        "Follow the named calls with `chipless drive`, and let a sequence take or give what then never comes: remove a sequence that waits for another, or an input that two of them share."
        "every state of the contract's order rules";
    PROGRAM_NAME Fault Error Error Proof "program-name" "the contract and the program have different inputs or outputs"
        "An input or output of one side has no counterpart of its name on the other."
        ""
        "interface of the program";
    PROGRAM_LENGTH Fault Error Error Proof "program-length" "a vector has another length in the program"
        "The length of a vector is the product of the dimensions that the program has. Some writers of contracts take the first dimension alone."
        ""
        "interface of the program";
    PROGRAM_PRECISION Fault Error Error Proof "program-precision" "a vector has another precision in the program"
        "Elements of another width are packed into other words, and clip at other values."
        ""
        "interface of the program";
    PROGRAM_SCALE Fault Error Error Proof "program-scale" "a vector has another scale or zero point in the program"
        "Integers of the program stand for value / 2^quanta, with the zero point 0. A host that quantises with another scale gets other values, and nothing else tells."
        ""
        "types of the program's inputs and outputs";
    FEMTOFILE Fault Note Note Format "iospec-femtofile" "the document does not fit a .femto file"
        "Such a file numbers vectors with 8 bits and counts elements with 16."
        ""
        "femtodriver 2.6";
}
