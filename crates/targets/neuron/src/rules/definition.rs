//! Rules about queue sets and variables of `def.json`.

chipless_model::rules! {
    QUEUE_TYPE Fault Error Format "neff-queue-type" "a queue set has no valid type"
        "Valid are in, out, data, embedding_update and dynamic."
        "Give the queue set one of these."
        "NEFF specification, Queue Sets: type";
    QUEUE_COUNT Fault Error Format "neff-queue-count" "a queue set has an impossible number of queues"
        "A queue set reserves 1 to 16 hardware queues; on inf1 exactly 1."
        "Set num_queues within the range."
        "NEFF specification, Queue Sets: num_queues";
    QUEUE_OWNER Fault Warning Format "neff-queue-owner" "the owner of a queue set is no engine"
        "The owner triggers the transfers of its queue set: pe, act, dve, pool or sp."
        "Name one of the engines."
        "NEFF specification, Queue Sets: owner";
    QUEUE_FABRIC Fault Error Format "neff-queue-fabric-path" "a queue set has an unknown fabric path"
        "Valid are main and alt."
        "Use one of these."
        "NEFF specification, Queue Sets: fabric_path";
    QUEUE_SEMAPHORE Fault Error Format "neff-queue-semaphore" "a queue set reserves a semaphore that no core has"
        "A core has 256 semaphores, 0 to 255."
        "Use a smaller number."
        "NEFF specification, Queue Sets: semaphore, semaphore_set; Neuron driver, address maps";
    QUEUE_SEMAPHORE_RESERVED Departure Warning Writers "neff-queue-semaphore-reserved" "a queue set signals what the runtime keeps for itself"
        "The first runtime_semaphore_count semaphores belong to the runtime."
        "Use larger numbers."
        "Files of the compiler";
    QUEUE_SEMAPHORE_SHARED Fault Warning Format "neff-queue-semaphore-shared" "a semaphore belongs to a queue set twice, or to two of them"
        "A queue set signals its transfers on semaphores of its own. On a shared one nobody can tell whose transfer is done."
        "Give each queue set semaphores of its own, each once."
        "NEFF specification, Queue Sets: semaphore_set; measured on compiler output";
    PINNED_ARCHITECTURE Fault Error Format "neff-pinned-architecture" "pinned is for inf1 only"
        "Pinned queues fill the state buffer once at model start; only inf1 has them."
        "Remove the field."
        "NEFF specification, Queue Sets: pinned";
    INSTANCES_ARCHITECTURE Fault Error Format "neff-queue-instances-architecture" "inf1 has no queue instances"
        "Rings cannot be swapped during execution on inf1."
        "Declare queue sets of their own."
        "NEFF specification, Queue Sets: queue_instances";
    INSTANCE_TWICE Fault Error Format "neff-queue-instance-twice" "two queue sets share the name of an instance"
        "A descriptor names an instance without its queue set, so its name must be unique, among queue sets too."
        "Rename one of them."
        "NEFF specification, DMA Descriptors: instance_name";
    DYNAMIC_SCRATCH Fault Error Hardware "neff-dynamic-scratch" "descriptor scratch lies outside the state buffer's partitions"
        "The GpSimd engine builds descriptors in dynamic_dma's bytes of every partition."
        "Keep it within the partition."
        "Measured on compiler output";
    RESERVATION Fault Error Hardware "neff-reservation" "what the runtime is to keep for itself does not exist"
        "runtime_statebuffer_reservation names bytes of the state buffer, runtime_semaphore_count and runtime_event_count the first of 256 semaphores and events, that the runtime keeps."
        "Keep it within what a core has."
        "Measured on compiler output; driver, address maps";
    VARIABLE_TYPE Fault Error Format "neff-variable-type" "a variable has no valid type"
        "Valid are state-buffer, input, output, file, tmp-buf, virtual, pointer and dge-table."
        "Give the variable one of these."
        "NEFF specification, Variables: type";
    VARIABLE_ID Fault Error Format "neff-variable-id" "a variable has no number of its own"
        "var_id is required and must be unique: instructions, pointers and tables name variables by it."
        "Give every variable its own number."
        "NEFF specification, Variables: var_id";
    VARIABLE_ID_GAP Departure Note Writers "neff-variable-id-gap" "the numbers of the variables have gaps"
        "The compiler numbers variables from 0 without gaps, and a runtime may rely on it."
        "Number the variables without gaps."
        "Measured on compiler output";
    VARIABLE_SIZE Fault Error Format "neff-variable-size" "a variable has no size"
        "size is required but for state buffers and dge-tables, which the compiler writes without it."
        "Give its size in bytes."
        "NEFF specification, Variables: size; measured on compiler output";
    VARIABLE_EMPTY Fault Warning Format "neff-variable-empty" "a variable has no bytes"
        "A variable of size 0 can be neither read nor written."
        "Remove it."
        "NEFF specification, Variables: size";
    VARIABLE_LARGE Fault Error Hardware "neff-variable-large" "a variable is larger than the device's memory"
        "It must lie in the HBM of one chip."
        "Split the tensor."
        "Vendor documentation, architecture guides";
    ALIGNMENT Fault Error Format "neff-alignment" "an alignment is no power of two"
        "Addresses are aligned to powers of two; 0 means no wish."
        "Use a power of two."
        "NEFF specification, Variables: alignment";
    VARIABLE_FABRIC Fault Error Format "neff-variable-fabric-path" "a variable has an unknown fabric path"
        "Valid are main and alt."
        "Use one of these."
        "NEFF specification, Variables: fabric_path";
    FILE_NAME Fault Error Format "neff-file-name" "a file variable names no file"
        "A variable of type file gets its bytes from the member file_name."
        "Name the member."
        "NEFF specification, Variables: file_name";
    FILE_NAME_UNUSED Fault Warning Format "neff-file-name-unused" "`file_name` stands on a variable that is no file"
        "Only variables of type file are loaded from a member."
        "Remove the field or mend the type."
        "NEFF specification, Variables: file_name";
    CONSTANT_LARGE Fault Error Format "neff-constant-large" "a constant is larger than its variable"
        "The data of the member does not fit the variable that it is loaded into."
        "Make both agree."
        "NEFF specification, Constants";
    CONSTANT_SMALL Fault Warning Format "neff-constant-small" "a constant is smaller than its variable"
        "The rest of the variable is undefined."
        "Make both agree."
        "NEFF specification, Constants";
    CONSTANT_ORDER Fault Warning Format "neff-constant-order" "a constant stands in column-major order"
        "The specification says that the array's data is written to the variable, not in which order. Chipless writes it row-major, as array libraries see it."
        "Store the array in row-major order."
        "NEFF specification, Constants";
    BACKING_UNUSED Fault Warning Format "neff-backing-offset-unused" "`backing_variable_off` stands on a variable that is not virtual"
        "Only virtual variables lie in the shared scratchpad."
        "Remove the field or mend the type."
        "NEFF specification, Variables: backing_variable_off";
    SCRATCHPAD Fault Error Format "neff-scratchpad" "a virtual variable lies outside the scratchpad"
        "Offset and size together leave the memory of the device."
        "Mend the offset."
        "NEFF specification, Variables: backing_variable_off";
    POINTER Fault Error Format "neff-pointer" "a pointer points to no variable"
        "referenced_var_id must be the number of a variable."
        "Mend the number."
        "NEFF specification, Variables: referenced_var_id";
    POINTER_SIZE Fault Error Format "neff-pointer-size" "a pointer does not have 8 bytes"
        "A pointer holds one 64-bit address."
        "Make it 8 bytes."
        "NEFF specification, Variables: pointer";
    POINTER_TARGET Fault Warning Format "neff-pointer-target" "a pointer points to itself, or to a dge-table"
        "A pointer holds the address of the variable that an instruction is to find. A dge-table has no bytes, and a pointer's own address leads nowhere."
        "Mend the number."
        "NEFF specification, Variables: referenced_var_id";
    BACKING_ALIGNMENT Fault Warning Format "neff-scratchpad-alignment" "the offset of a virtual variable contradicts its alignment"
        "The address of a virtual variable is that of the scratchpad plus its offset, so the offset must be a multiple of the alignment that the variable asks for."
        "Mend the offset or the alignment."
        "NEFF specification, Variables: alignment, backing_variable_off";
    TABLE_LIST Fault Warning Format "neff-dge-table-list" "a dge-table lists nothing, or another table"
        "Instructions address variables by their position in the table's list; a table has no bytes of its own that they could move."
        "List the variables that are meant."
        "NEFF specification, Variables: list";
    REFERENCE_UNUSED Fault Warning Format "neff-reference-unused" "`referenced_var_id` stands on a variable that is no pointer"
        "Only pointers hold the address of another variable."
        "Remove the field or mend the type."
        "NEFF specification, Variables: referenced_var_id";
    TABLE Fault Error Format "neff-dge-table" "a dge-table lists a number that no variable has"
        "Instructions address variables by their position in the table's list."
        "Mend the list."
        "NEFF specification, Variables: list";
    TABLE_UNUSED Fault Warning Format "neff-dge-list-unused" "list stands on a variable that is no dge-table"
        "Only dge-tables have a list."
        "Remove the field or mend the type."
        "NEFF specification, Variables: list";
    MISSPELT Fault Warning Format "neff-misspelt-key" "a key looks like an optional one, misspelt"
        "Keys that the format does not know are ignored, so what this one says is lost."
        "Correct the key."
        "NEFF specification";
    OWN_SEMAPHORE Fault Warning Format "neff-queue-semaphore-outside" "the semaphore of a queue set is not in its semaphore_set"
        "Both reserve semaphores for the transfers of the set, and they contradict each other."
        "Name the semaphore in the set, or leave one of the fields out."
        "NEFF specification, Queue Sets: semaphore, semaphore_set";
    DYNAMIC_OWNER Fault Error Format "neff-dynamic-owner" "a queue set of type dynamic has no owner"
        "Instructions hand transfers to the dynamic queue set that their engine owns: nobody can use this one."
        "Name its owner."
        "NEFF specification, Queue Sets: owner; compiled programs";
    STATE_BUFFER_SIZE Fault Error Hardware "neff-state-buffer-size" "a variable of type state-buffer is larger than the state buffer"
        "The state buffer has 128 partitions of up to 0x40000 bytes of address each."
        "Correct the size, or leave it out."
        "NKI architecture guides";
}
