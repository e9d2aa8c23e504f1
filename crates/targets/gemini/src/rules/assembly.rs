//! Rules about assembly and traces.

chipless_model::rules! {
    INSTRUCTION Fault Error Format "gemini-instruction" "a line is no instruction"
        "Each line is a list of an op, a map of what it is for, in traces its times, and its parameters."
        "Write the file again, or remove the line."
        "Assembly and traces of the scheduler's tools";
    TOKEN_MISSING Fault Error Format "gemini-token-missing" "a unit waits for more tokens than it gets"
        "An instruction takes one token of each unit in Prev_Insts; the other unit must give as many to it in Next_Insts."
        "Add the unit to Next_Insts of an instruction before."
        "Assembly of the scheduler's tools";
    TOKEN_LEFT Departure Warning Writers "gemini-token-left" "tokens are given that nobody takes"
        "In the files of the tools tokens balance; one that is left would release an instruction of the next program too early."
        "Remove the unit from Next_Insts."
        "Measured on assembly of the scheduler's tools";
    BESIDE Fault Error Format "gemini-assembly-schedule" "an instruction does something else than its schedule says"
        "A schedule beside assembly says which tensor each load fills and each store takes, where weights lie in the weight buffer, and where the tiles of a workload put their results."
        "Assemble the schedule again, or check that the two belong together."
        "Assembly and schedules of the scheduler's tools";
}
