//! Rules about the DMA descriptors of engine JSON files.

chipless_model::rules! {
    DMA_ID Fault Error Format "neff-descriptor-id" "a descriptor has no id"
        "The id ties the descriptor to its trigger in the engine's instructions."
        "Give it one."
        "NEFF specification, DMA Descriptors: id";
    DMA_AMOUNT Fault Warning Format "neff-descriptor-trigger-amount" "descriptors of one id have different trigger amounts"
        "Descriptors of the same id in the same function are triggered together by one count, so they need the same number of transfers and of destination rows."
        "Give them different ids, or split the transfers alike."
        "NEFF specification, DMA Descriptors: id";
    DMA_QUEUE Fault Error Format "neff-descriptor-queue" "a descriptor names no queue"
        "Either queue or instance_name is required."
        "Name the queue set."
        "NEFF specification, DMA Descriptors: queue, instance_name";
    DMA_QUEUE_UNKNOWN Fault Error Format "neff-descriptor-queue-unknown" "a descriptor names a queue set that is not declared"
        "queue must be a key of dma_queue in def.json."
        "Declare the queue set, or mend the name."
        "NEFF specification, DMA Descriptors: queue";
    DMA_INSTANCE_UNKNOWN Fault Error Format "neff-descriptor-instance-unknown" "a descriptor names a queue instance that is not declared"
        "instance_name must stand in queue_instances of a queue set, and wins over queue."
        "Declare the instance, or mend the name."
        "NEFF specification, DMA Descriptors: instance_name";
    DMA_INSTANCE_ARCHITECTURE Fault Error Format "neff-descriptor-instance-architecture" "inf1 has no queue instances"
        "instance_name is not supported on inf1."
        "Use queue."
        "NEFF specification, DMA Descriptors: instance_name";
    DMA_OWNER Fault Warning Format "neff-descriptor-owner" "a descriptor stands in the file of an engine that does not own its queue"
        "The owner of a queue set performs its triggers."
        "Move the descriptor to the owner's file."
        "NEFF specification, Queue Sets: owner";
    DMA_FUNCTION Fault Warning Format "neff-descriptor-function" "a descriptor names a function that the instructions do not declare"
        "function_start must name a function of the engine's binary, else nothing triggers what follows."
        "Declare the function, or remove the field."
        "NEFF specification, DMA Descriptors: function_start";
    DMA_FUNCTION_ARCHITECTURE Fault Error Format "neff-descriptor-function-architecture" "inf1 has no functions"
        "function_start is not supported on inf1."
        "Remove the field."
        "NEFF specification, DMA Descriptors: function_start";
    DMA_SECTION_ARCHITECTURE Fault Error Format "neff-descriptor-section-architecture" "inf1 has no sections"
        "section_start_desc is not supported on inf1."
        "Remove the field."
        "NEFF specification, DMA Descriptors: section_start_desc";
    DMA_EVENT Fault Error Format "neff-descriptor-event" "a descriptor sets an event that no core has"
        "A core has 256 events, 0 to 255."
        "Use a smaller number."
        "NEFF specification, DMA Descriptors: event; Neuron driver, address maps";
    DMA_SEMAPHORE Fault Error Format "neff-descriptor-semaphore" "a descriptor signals a semaphore that no core has"
        "A core has 256 semaphores, 0 to 255."
        "Use a smaller number."
        "NEFF specification, DMA Descriptors: semaphore; Neuron driver, address maps";
    DMA_RESERVED Departure Warning Writers "neff-descriptor-reserved" "a descriptor signals what the runtime keeps for itself"
        "The first runtime_semaphore_count semaphores and runtime_event_count events belong to the runtime."
        "Use a larger number."
        "Files of the compiler";
    DMA_SEMAPHORE_SET Fault Warning Format "neff-descriptor-semaphore-set" "a descriptor signals a semaphore that its queue set does not have"
        "semaphore and semaphore_set of a queue set name what its transfers signal. Whoever waits for the set's semaphores misses this transfer."
        "Use a semaphore of the queue set, or add this one to it."
        "NEFF specification, Queue Sets: semaphore, semaphore_set";
    DMA_QUEUE_TYPE Fault Warning Format "neff-descriptor-queue-type" "a transfer on a queue set of another kind"
        "Queue sets of type dynamic take descriptors that are made at run time, not those of the file; pinned ones fill the state buffer and nothing else."
        "Name a queue set of the kind that the transfer needs."
        "NEFF specification, Queue Sets: type, pinned";
    DMA_REMOTE Fault Error Format "neff-descriptor-remote-semaphore" "a descriptor signals a remote semaphore that no core has"
        "A core has 256 semaphores, 0 to 255."
        "Use a smaller number."
        "NEFF specification, DMA Descriptors: remote_semaphores";
    DMA_REMOTE_ARCHITECTURE Fault Error Format "neff-descriptor-remote-architecture" "remote semaphores need trn2 or later"
        "Only cores of trn2 and later signal each other's semaphores."
        "Compile for trn2."
        "NEFF specification, DMA Descriptors: remote_semaphores";
    DMA_REMOTE_ALONE Fault Warning Format "neff-descriptor-remote-alone" "a remote semaphore, but no other core"
        "remote_semaphores belong to the other core of a logical core of size 2."
        "Remove the field, or compile for a logical core of size 2."
        "NEFF specification, DMA Descriptors: remote_semaphores";
    DMA_EMPTY Fault Error Format "neff-descriptor-empty" "a descriptor has no transfer"
        "desc is required and holds at least one transfer."
        "Add it."
        "NEFF specification, DMA Descriptors: desc";
    DMA_OPERATION Fault Error Format "neff-descriptor-operation" "a transfer has an unknown op"
        "Valid are copy, cast, fma, add, min, max and transpose."
        "Use one of these."
        "NEFF specification, desc: op";
    DMA_OPERATION_ARCHITECTURE Fault Error Format "neff-descriptor-operation-architecture" "inf1 only copies"
        "op is not supported on inf1."
        "Remove the field."
        "NEFF specification, desc: op";
    DMA_FROM Fault Error Format "neff-descriptor-from" "a transfer has no source"
        "from is required for copy, cast and transpose."
        "Name the source."
        "NEFF specification, desc: from";
    DMA_TO Fault Error Format "neff-descriptor-to" "a transfer has no destination"
        "to is always required."
        "Name the destination."
        "NEFF specification, desc: to";
    DMA_FROM_LIST Fault Error Format "neff-descriptor-from-arr" "a compute operation has no list of sources"
        "fma, add, min and max take their sources from from_arr."
        "Put the sources into from_arr."
        "NEFF specification, desc: from_arr";
    DMA_FROM_LIST_LONG Fault Error Format "neff-descriptor-sources" "a compute operation has too many sources"
        "from_arr has at most 16 sources."
        "Split the operation."
        "NEFF specification, desc: from_arr";
    DMA_FROM_LIST_UNUSED Fault Warning Format "neff-descriptor-from-arr-unused" "a list of sources on an operation that takes one"
        "from_arr belongs to fma, add, min and max; the others take from alone."
        "Remove from_arr, or use an operation that takes it."
        "NEFF specification, desc: from_arr";
    DMA_FROM_LIST_ARCHITECTURE Fault Error Format "neff-descriptor-from-arr-architecture" "inf1 has no compute operations"
        "from_arr is not supported on inf1."
        "Use copies."
        "NEFF specification, desc: from_arr";
    DMA_VARIABLE Fault Error Format "neff-descriptor-variable" "a transfer names a variable that is not declared"
        "from and to must be keys of var in def.json."
        "Declare the variable, or mend the name."
        "NEFF specification, desc: from, to";
    DMA_TABLE Fault Error Format "neff-descriptor-dge-table" "a transfer reads or writes a dge-table"
        "A dge-table is a list of variables for instructions; it has no bytes."
        "Name the variable that is meant."
        "NEFF specification, Variables: dge-table";
    DMA_FIELD Fault Error Format "neff-descriptor-field" "a transfer lacks a required field"
        "Offset, steps and sizes are required on both sides."
        "Add the field."
        "NEFF specification, desc";
    DMA_DIMENSIONS Fault Error Format "neff-descriptor-dimensions" "steps and sizes do not make an access pattern"
        "Steps and sizes have equal length, 1 to 4."
        "Mend the lists."
        "NEFF specification, desc: from_steps, from_sizes";
    DMA_ZERO Fault Error Format "neff-descriptor-zero-size" "a dimension of size 0"
        "The transfer moves nothing, and the hardware's count for such a transfer is not zero."
        "Remove the transfer."
        "NEFF specification, desc: from_sizes";
    DMA_BOUNDS Fault Error Format "neff-descriptor-bounds" "a transfer leaves its variable"
        "The access pattern touches bytes outside the variable's size."
        "Mend offset, steps or sizes."
        "NEFF specification, desc";
    DMA_STATE_BUFFER Fault Error Hardware "neff-descriptor-state-buffer" "a transfer leaves the state buffer"
        "The state buffer has 128 partitions, 256 KiB of addresses apart; each holds 192 KiB on trn1, 224 KiB on trn2, 256 KiB on trn3."
        "Mend offset, steps or sizes."
        "Vendor documentation, architecture guides; measured on compiler output";
    DMA_BYTES Fault Error Format "neff-descriptor-bytes" "source and destination have different amounts of data"
        "Source bytes are taken in order of the innermost dimension first and put down in the same order, so both sides enumerate the same number of bytes."
        "Mend the sizes."
        "NEFF specification, desc: from_sizes, to_sizes";
    DMA_ELEMENTS Fault Error Format "neff-descriptor-elements" "source and destination have different numbers of elements"
        "A conversion or computation puts one element down for each that it takes from each source."
        "Mend the sizes."
        "NEFF specification, desc: op";
    DMA_PARTIAL Fault Error Format "neff-descriptor-partial-element" "a side ends inside an element"
        "The bytes of a side are no whole number of elements of its type."
        "Mend the sizes or the type."
        "NEFF specification, desc: from_dtype, to_dtype";
    DMA_DTYPE Fault Error Format "neff-descriptor-dtype" "a transfer has an unknown element type"
        "Valid are float8e3, float8e4, float8e5, float16, float32, float32r, bfloat16, and signed and unsigned integers of 8, 16, 32 and 64 bits."
        "Use one of these."
        "NEFF specification, desc: from_dtype, to_dtype";
    DMA_DTYPE_ARCHITECTURE Fault Error Format "neff-descriptor-dtype-architecture" "inf1 has no element types in transfers"
        "from_dtype and to_dtype are not supported on inf1."
        "Remove the fields."
        "NEFF specification, desc: from_dtype, to_dtype";
    DMA_COPY_TYPES Fault Warning Format "neff-descriptor-copy-types" "a copy between different element types"
        "A copy moves bytes as they are; a conversion is op cast."
        "Use cast, or give both sides one type."
        "NEFF specification, desc: op";
    DMA_SCALE Fault Warning Format "neff-descriptor-scale" "scale on an operation that does not scale"
        "scale and scale_dtype are valid on fma only."
        "Remove the field, or use fma."
        "NEFF specification, desc: scale";
    DMA_SCALE_ARCHITECTURE Fault Error Format "neff-descriptor-scale-architecture" "inf1 does not scale"
        "scale is not supported on inf1."
        "Remove the field."
        "NEFF specification, desc: scale";
    DMA_SCALE_DTYPE Fault Error Format "neff-descriptor-scale-dtype" "scale has another type than float32"
        "The only valid scale_dtype is float32."
        "Use float32."
        "NEFF specification, desc: scale_dtype";
    DMA_CONSTANT Fault Error Format "neff-descriptor-constant" "`constant_dtype` without a constant that it can hold"
        "With constant_dtype a constant is required, and it must be a value of that type."
        "Give the constant."
        "NEFF specification, desc: constant";
    DMA_CONSTANT_DTYPE Fault Error Format "neff-descriptor-constant-dtype" "a constant has an unknown type"
        "Valid are float32, int32 and uint32."
        "Use one of these."
        "NEFF specification, desc: constant_dtype";
    DMA_CONSTANT_UNUSED Fault Warning Format "neff-descriptor-constant-unused" "a constant that nothing uses"
        "constant belongs to min and max, and is ignored without constant_dtype."
        "Remove it, or add the type."
        "NEFF specification, desc: constant";
    DMA_CONSTANT_ARCHITECTURE Fault Error Format "neff-descriptor-constant-architecture" "inf1 has no constants in transfers"
        "constant is not supported on inf1."
        "Remove the field."
        "NEFF specification, desc: constant";
    DMA_TRANSPOSE_SHAPE Fault Error Format "neff-descriptor-transpose-shape" "`transpose_shape` does not fit the transfer"
        "transpose_shape has 4 numbers, and their product is the number of elements moved."
        "Mend the shape; unused dimensions are 1."
        "NEFF specification, desc: transpose_shape";
    DMA_TRANSPOSE_ELEMENT Fault Warning Format "neff-descriptor-transpose-element" "transposed elements of a size that the hardware or the type does not have"
        "DMA engines transpose elements of 2 and 4 bytes, and to_dtype says how many they have."
        "Use such elements."
        "Vendor documentation, DMA overview";
    DMA_TRANSPOSE_UNUSED Fault Warning Format "neff-descriptor-transpose-unused" "transpose fields on another operation"
        "transpose_shape and transpose_element_size belong to transpose."
        "Remove the fields, or use transpose."
        "NEFF specification, desc: transpose_shape";
    DMA_TRANSPOSE_ARCHITECTURE Fault Error Format "neff-descriptor-transpose-architecture" "inf1 does not transpose"
        "transpose_shape and transpose_element_size are not supported on inf1."
        "Remove the fields."
        "NEFF specification, desc: transpose_shape";
    DMA_TILING Fault Warning Format "neff-descriptor-tiling" "no tiled dimension, or more than dimensions"
        "num_tiling_dimensions counts the dimensions of a single tile, so it is at least 1 and at most the number of dimensions."
        "Mend the number."
        "NEFF specification, desc: num_tiling_dimensions";
    DMA_WRITE_CONSTANT Departure Warning Writers "neff-descriptor-write-constant" "a transfer writes what the host or the file gives"
        "Inputs, constants and pointers keep their bytes from run to run; a program that writes them changes its own next run."
        "Write to a variable of type output, tmp-buf or virtual."
        "Chipless";
    RING_LENGTH Fault Warning Format "neff-ring-length" "a ring has more hardware descriptors than it can hold"
        "A ring holds 32 to 2^24 - 16 descriptors. The compiler does not check, and the load fails at run time."
        "Spread the transfers over more queues, or move larger rows."
        "Neuron driver, ring limits";
    DMA_SMALL_ROWS Departure Warning Hardware "neff-dma-small-rows" "a transfer of many short rows is slow"
        "Each contiguous run of bytes takes a hardware descriptor of its own, whose fixed cost is that of more than a thousand bytes. Transfers of short runs reach a small part of the DMA engines' rate."
        "Move longer contiguous runs: change the layout of one side, or transpose on chip instead of in the transfer."
        "NKI guideline to avoid under-utilising DMA bandwidth";
    DMA_WRITE_SIZE Departure Warning Writers "neff-dma-write-size" "a transfer writes runs to the state buffer that are no multiple of 4 bytes"
        "The vendor's compiler warns of writes to the state buffer whose size is not a multiple of 4 bytes. Programs with many of them were seen to run out of DMA rings when they are loaded."
        "Pad the rows of the tensor to a multiple of 4 bytes."
        "Compiler warning \"SBUF DMA write size != 0 mod 4\" in aws-neuron-sdk issue 369";
    DMA_FROM_BESIDE Fault Warning Format "neff-dma-from-beside-list" "`from` stands beside `from_arr`"
        "from_arr replaces the fields that begin with from; which source is meant?"
        "Leave one of them out."
        "NEFF specification, DMA Descriptors: from_arr";
    DMA_DIRECTION Fault Warning Format "neff-dma-direction" "a queue set moves data against its direction"
        "Queue sets of type in move inputs in, those of type out move outputs out."
        "Use a queue set of the other type, or of type data."
        "NEFF specification, Queue Sets: type";
    STATIC_OVERLAP Fault Warning Hardware "neff-dma-rows-overlap" "rows of a destination overlap"
        "Rows go to several rings, which nothing orders: where they overlap, either may be written last."
        "Give each row bytes of its own."
        "NKI DMA overview";
}
