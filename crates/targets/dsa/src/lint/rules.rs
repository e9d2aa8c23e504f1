//! Rules about what a graph means.

chipless_model::rules! {
    UNKNOWN_OPERATION Fault Error Format "dfg-unknown-operation" "an operation that no instruction table has"
        "Two generations of tables are known: the older names (`Add16x4`) and the newer ones (`Add_I16x4`). The real scheduler aborts at any other name, and says no line."
        "Correct the name."
        "dsa-scheduler, instruction tables";
    ARITY Fault Error Format "dfg-arity" "an operation with too few operands"
        "The real parser does not count operands: what is missing is read as whatever stands there."
        "Give the operation as many operands as it takes."
        "dsa-scheduler, instruction tables";
    EXTRA_OPERAND Fault Warning Format "dfg-extra-operand" "an operation with too many operands"
        "The real parser does not count operands: what is too much is waited for and then ignored."
        "Remove what the operation does not take."
        "dsa-scheduler, instruction tables";
    RESULTS Fault Warning Format "dfg-result-count" "an operation with a wrong number of results"
        "The instruction table says how many results an operation has. The real parser reads names beyond the list where there are too few."
        "Give every result a name."
        "dsa-scheduler, instruction tables";
    OPERAND_WIDTH Fault Warning Format "dfg-operand-width" "an operand wider than its operation"
        "The upper bits of the operand are not looked at."
        "Slice the value, or use the wider operation."
        "dsa-scheduler, instruction tables";
    LANE_WIDTH Fault Warning Format "dfg-lane-width" "a lane of an output that is not as wide as its port"
        "Missing bits are zero; bits beyond the port are lost."
        "Declare the port as wide as its values."
        "dsa-scheduler, ports";
    UNUSED_INPUT Fault Warning Format "dfg-unused-input" "an input port that nothing uses"
        "The real parser rejects a graph with such a port, unless its checks are switched off."
        "Remove the port."
        "dsa-scheduler, graph checks";
    UNUSED_LANE Departure Warning Writers "dfg-unused-lane" "lanes of an input port that nothing uses"
        "Data is loaded and not looked at; often another lane was meant somewhere."
        "Check the lanes that are used; make the port narrower if it is right."
        "Chipless";
    UNUSED_RESULT Fault Warning Format "dfg-unused-result" "an operation whose result nothing uses"
        "The real parser rejects a graph with such an operation, unless its checks are switched off."
        "Remove the operation, or bring its result to an output."
        "dsa-scheduler, graph checks";
    UNUSED_ARRAY Fault Warning Format "dfg-unused-array" "an array that no port uses"
        "The real parser rejects a graph with such an array, unless its checks are switched off."
        "Remove the array, or tie a port to it."
        "dsa-scheduler, graph checks";
    ARRAY_ENDS Fault Warning Format "dfg-array-ends" "an array whose streams do not fit its type"
        "A recurrence needs a port that writes it and one that reads it; registers can only be written."
        "Tie the missing port to the array, or give it another type."
        "dsa-scheduler, graph checks";
    ACROSS_GROUPS Fault Warning Format "dfg-across-groups" "a value that is used in another sub-graph"
        "Sub-graphs fire independently. The specification lets them share arrays only; the real parser lets any value through."
        "Bring the value out and in again through ports."
        "DFG File Format, Meta-level Information";
    PRAGMA_IGNORED Fault Note Format "dfg-pragma-ignored" "a pragma that the real tools read and do not use"
        "The specification describes cmd and repeat as parts of the performance model. The real one never uses cmd, and repeat of output ports only."
        "Nothing; the value is kept."
        "dsa-scheduler, performance model";
    REUSE_LEAKS Fault Warning Format "dfg-reuse-leaks" "a port that the real parser gives the reuse of an earlier one"
        "The real parser forgets to clear reuse after a port: every later port without a reuse of its own inherits it, and its estimate of bandwidth is too good."
        "Write `#pragma reuse=0` in front of the port."
        "dsa-scheduler, metadata of ports";
    REUSE_RANGE Fault Warning Format "dfg-reuse-range" "a reuse that is not between 0 and 1"
        "Reuse is the share of a stream that the cache serves again."
        "Write a number from 0 to 1."
        "dsa-scheduler, performance model";
    CONCURRENCY Fault Warning Format "dfg-recurrence-conc" "a recurrence without conc"
        "The performance model hides the latency of a recurrence behind the bytes in flight. Without `#pragma conc=…` there are none, and the estimate is zero."
        "Write trip count times bytes of an element in front of the port."
        "dsa-scheduler, performance model; dsa-framework, issue 8";
    CONTROL_KEY Fault Warning Format "dfg-control-key" "an entry of a control table that never matches"
        "The control value is masked before the table is asked; a key with bits outside the mask, or outside the value, is never found."
        "Correct the key or the mask."
        "dsa-scheduler, control of instructions";
    CONTROL_MASK Fault Warning Format "dfg-control-mask" "a control mask that hardware does not have"
        "The mask picks at most three bits of the control value."
        "Use a mask of at most three bits."
        "dsagen2, bit mask of the control";
    CONTROL_EMPTY Fault Warning Format "dfg-control-empty" "a control that does nothing"
        "Without a table, or with one that has no entry, the control value is waited for and then ignored."
        "Add the table, or remove the control."
        "dsa-scheduler, control of instructions";
    HOLD Fault Warning Format "dfg-control-hold" "a control that holds an operand that there is not"
        "b1 and b2 hold the first and the second operand."
        "Correct the action."
        "dsa-scheduler, control of instructions";
    NEVER_RESET Fault Warning Format "dfg-never-reset" "an accumulator that is never reset"
        "It adds up from the first row of the stream to the last, over all loops. Most kernels reset it at the end of a row: `ctrl=$portState & 8{0: d, 8: r}`."
        "Add a control with `r`, or a second operand that resets it."
        "dsa-scheduler, control of instructions";
    REGISTER_UNWRITTEN Fault Warning Hardware "dfg-register-unwritten" "a register that is read and never written"
        "The instruction reads what the register holds from the start: zero, or what the configuration puts there."
        "Write the register with `#pragma $RegK name`, or use a constant."
        "dsa-scheduler, registers";
    BYTE_ORDER_MARK Fault Warning Format "dfg-byte-order-mark" "the file begins with a byte order mark"
        "The real scanner knows no byte order mark and rejects the file."
        "Save the file as plain ASCII; `chipless format` does."
        "dsa-scheduler, scanner";
    FREQUENCY Fault Warning Format "dfg-frequency-zero" "a sub-graph that is never executed"
        "The frequency says how often a sub-graph runs relative to the others. With 0 it counts for nothing in the performance model, and where all have 0 nothing counts."
        "Write how often it runs, or remove the sub-graph."
        "dsa-scheduler, performance model";
    NARROW_PORT Fault Warning Format "dfg-narrow-port" "a port that is narrower than the operation beside it"
        "A lane that is narrower than an operand fills its low bits, and what stands above them is not defined by the language; of a result that is wider than its lane only the low bits leave."
        "Make the port as wide as the operation, or take an operation of the port's width."
        "dsa-scheduler, grammar of the parser: an operand keeps the width of its value";
    TASKS Unsupported Warning Chipless "dfg-tasks" "statements about tasks that are not executed"
        "TaskDep and TaskProp belong to the task-flow extension. They are kept and shown; a run executes the sub-graphs without them."
        "Nothing, unless the result depends on them."
        "dsa-scheduler, task flow";
    ABSTAIN Departure Note Writers "dfg-abstain" "a control with `a`, which simulator and hardware understand differently"
        "Where an instruction abstains, the simulator of the group takes its operands and gives nothing; the hardware generator holds the operands and resets no register. A run does as the simulator does, which the programs at hand were written for."
        "Say `b1|b2|d` where the operands should stay, `d` where they should go."
        "dsa-scheduler, instruction.cpp; dsagen2, MetaControlImpl";
}
