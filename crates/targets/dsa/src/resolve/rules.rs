//! Rules about names and what they stand for.

chipless_model::rules! {
    UNDEFINED Fault Error Format "dfg-undefined" "a name that nothing defines"
        "A value must be defined above its use: as a port, as one of its lanes (`name0`, `name1`), or as the result of an operation."
        "Correct the name, or define it above."
        "dsa-scheduler, symbol table";
    BEFORE_DEFINITION Fault Error Format "dfg-used-before-definition" "a name that is used above its definition"
        "A file is read from top to bottom; there are no forward references, output ports included."
        "Move the definition up, or the use down."
        "dsa-scheduler, symbol table";
    DUPLICATE Fault Error Format "dfg-duplicate" "a name that is defined twice"
        "All sub-graphs of a file share one space of names, and the lanes of ports and the results of operations are in it."
        "Give one of the two another name."
        "DFG File Format, Meta-level Information; dsa-scheduler, symbol table";
    REDEFINED Fault Warning Format "dfg-redefined" "a result that takes the name of an earlier value"
        "From its second definition on the name means the new value, as the tools of the older forms read it. Today's parser rejects the file."
        "Give one of the two another name."
        "dsa-scheduler, symbol table; files of stream-dataflow";
    ARRAY Fault Error Format "dfg-array" "a port names an array that is not declared"
        "`source=` and `destination=` name arrays that are declared above."
        "Declare the array, or correct the name."
        "dsa-scheduler, grammar of the parser";
    ARRAY_TYPE Fault Error Format "dfg-array-type" "an array of a type that there is not"
        "Arrays are of type dma, spm (or scratchpad), rec, gen or reg; without a type they are dma."
        "Choose one of these types."
        "DFG File Format, Array Declaration";
    ARRAY_SIDE Fault Error Format "dfg-array-side" "a port is tied to an array in a way that it cannot be"
        "Input ports have a source, output ports a destination."
        "Use `source=` for inputs, `destination=` for outputs."
        "dsa-scheduler, grammar of the parser";
    PORT_OPTION Fault Error Format "dfg-port-option" "a port has an option that there is not"
        "Input ports take `stated` and `source=`, output ports `destination=` and `state=`."
        "Correct the option."
        "dsa-scheduler, grammar of the parser";
    OUTPUT_STATED Fault Warning Format "dfg-output-stated" "`stated` on an output does nothing"
        "The specification allows it, the real parser rejects it: it does not say whose state the output should pass on."
        "Write `state=PORT` with the stated input port."
        "DFG File Format, Port Declaration; dsa-scheduler, grammar";
    STATE_PORT Fault Error Format "dfg-state-port" "the state of a port that has none"
        "Only a stated input port has a state: `Input64: name stated`."
        "Make the port stated."
        "DFG File Format, Port Declaration";
    QUALIFIER Fault Error Format "dfg-qualifier" "an argument with a qualifier that there is not"
        "Arguments are plain or qualified with ctrl, self, pred or inv_pred; `self` has no value, the others have one; ctrl and self may have a mask and a table."
        "Correct the qualifier."
        "dsa-scheduler, symbol table";
    ACTION Fault Error Format "dfg-action" "a control table with an action that there is not"
        "Actions are b1 and b2 (hold an operand), d (discard the result), r (reset registers) and a (abstain)."
        "Use these letters, with `|` between several."
        "dsa-scheduler, control bits";
    SLICE Fault Error Format "dfg-slice" "a slice beyond its value"
        "`v:low:high` takes bits low to high, both included; older files write `v:width:index`."
        "Stay within the bits of the value."
        "dsa-scheduler, grammar of the parser";
    CONCATENATION Fault Error Format "dfg-concatenation" "values that cannot be put side by side"
        "Values side by side make one operand, the first least significant, of at most 512 bits. Constants and registers stand alone."
        "Put constants into operations of their own."
        "dsa-scheduler, grammar of the parser";
    CONSTANT Fault Error Format "dfg-constant" "constants that cannot be put side by side"
        "One whole number, two of 32 bits, or four of 16 bits; one floating-point number, or two of 32 bits."
        "Write the 64 bits as one number."
        "dsa-scheduler, grammar of the parser";
    CONSTANT_NAME Fault Warning Format "dfg-constant-name" "a name for a constant"
        "The real parser cannot give a name to a constant; Chipless can."
        "Write the constant where it is used."
        "dsa-scheduler, grammar of the parser";
    CONSTANT_ONLY Fault Error Format "dfg-constant-only" "an operation that consumes nothing"
        "An operation fires when its operands are there. With constants alone it would fire without end."
        "Feed it from a port."
        "dsa-scheduler, graph checks";
    RESULTS Fault Error Format "dfg-results" "several names for one value"
        "Only an operation has several results. Values and constants side by side are one value."
        "Give it one name."
        "dsa-scheduler, grammar of the parser";
    OUTPUT_CONSTANT Fault Error Format "dfg-output-constant" "an output port that takes a constant"
        "A lane of an output port is a value of a port or of an operation."
        "Let an operation make the value."
        "dsa-scheduler, grammar of the parser";
    PRAGMA_KEY Fault Warning Format "dfg-pragma-key" "a pragma with a key that there is not"
        "Ports know cmd, repeat, reuse, conc, src, dest and op; sub-graphs know frequency, unroll and temporal. The real parser aborts at other keys of ports and ignores other keys of sub-graphs."
        "Correct the key."
        "dsa-scheduler, metadata of ports";
    PRAGMA_VALUE Fault Warning Format "dfg-pragma-value" "a pragma with a value that it cannot take"
        "cmd, repeat, reuse and conc are numbers that are not negative; frequency and unroll are whole numbers."
        "Correct the value; until then the default counts."
        "dsa-scheduler, grammar of the parser";
    PRAGMA_LOST Fault Warning Format "dfg-pragma-lost" "a pragma that nothing takes"
        "A pragma describes the next port, or the next result of its name."
        "Move the pragma in front of what it describes."
        "dsa-scheduler, grammar of the parser";
    UNITS Fault Error Format "dfg-units" "a list of units that cannot be"
        "Each operation of a composite node takes at least one unit."
        "Correct the counts."
        "dsa-scheduler, grammar of the parser";
    FLOAT_CONSTANT Fault Warning Format "dfg-float-constant" "one floating-point constant for several elements"
        "A single constant is 64 bits wide. An operation on two elements of 32 bits takes half of it for each."
        "Write one constant for each element: `1.5 1.5`."
        "dsa-scheduler, grammar of the parser";
    UNUSED_NAME Departure Warning Writers "dfg-unused-name" "a name that nothing uses"
        "The name stands for a value, a slice or a concatenation, and neither an operation nor an output takes it. Lanes of an output are found by name: often a port has fewer lanes than were prepared."
        "Remove the line, or use the name."
        "Chipless";
}
