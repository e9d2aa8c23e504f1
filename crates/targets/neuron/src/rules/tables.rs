//! Rules about function tables of the Activation engine.

chipless_model::rules! {
    TABLE_SIZE Unsupported Error Chipless "neff-table-size" "a table of functions is no whole number of records, or too large"
        "Segments are records of 32 bytes, at most 2048 in a set."
        "The member is cut off: take the file from its origin again."
        "function tables of compiled programs";
    TABLE_COUNT Unsupported Error Chipless "neff-table-count" "a table of functions has another number of records than its profile says"
        "The loader sizes its copies by bkt_entry_cnt and ctl_entry_cnt."
        "Take the table and its profile from the same compiler."
        "function tables of compiled programs";
    FUNCTION_TWICE Unsupported Error Chipless "neff-table-function" "two functions of a set have one func_id"
        "An activation selects its function by func_id; with two it is not clear which."
        "Correct the profile."
        "function tables of compiled programs";
    CONTROL_WORD Unsupported Error Chipless "neff-table-control" "a control word leads to segments that do not exist"
        "A control word holds the first segment of an octave, the binary logarithm of their number, and 23 less that as the shift of the mantissa."
        "Take the table from its origin again."
        "function tables of compiled programs";
}
