//! Rules of instructions.

chipless_model::rules! {
    STREAM_LENGTH Fault Error Format "neff-stream-length" "an instruction stream is no whole number of slots"
        "Instructions are slots of 64 bytes; the member has bytes behind the last whole one."
        "The member is cut off: take the file from its origin again."
        "compiled programs";
    SLOT_LENGTH Departure Warning Writers "neff-slot-length" "a slot says that it has another length than 16 words"
        "Byte 1 of a slot counts its 32-bit words, and is 16 in every known program. The slot is read as 64 bytes."
        "Compile again."
        "compiled programs";
    OPCODE Unsupported Warning Chipless "neff-opcode" "an opcode is not supported: it has no known name"
        "Chipless knows the opcodes that compiled programs and public sources name; this byte is none of them. A functional run stops there; a timing run goes on."
        "If the compiler is newer than Chipless, report the opcode; else the file is damaged."
        "table of opcodes in the documentation";
    NOT_EXECUTED Unsupported Note Chipless "neff-not-executed" "an instruction or a transfer is listed, not executed"
        "It has a name, but what it does is not proven by any program at hand. A functional run stops there; a timing run goes on. What it would have written counts as written."
        "Use --timing-only for the timing."
        "table of opcodes in the documentation";
    EVENT_MODE Unsupported Error Chipless "neff-event-mode" "a wait or update mode is not supported"
        "The byte that says how an instruction waits or signals has a value whose meaning is not known, or one that needs registers."
        "If the compiler is newer than Chipless, report the mode; else the file is damaged."
        "compiled programs; profiler schema";
    ELEMENT_CODE Unsupported Error Chipless "neff-element-code" "an element type code is not supported: it has no known meaning"
        "Instructions name element types by a code of four bits; not every code is known."
        "If the compiler is newer than Chipless, report the code; else the file is damaged."
        "compiled programs";
    TILE_BOUNDS Fault Error Hardware "neff-tile-bounds" "an instruction reaches beyond its memory"
        "Elements of the state buffer and of PSUM must lie inside the bytes of a partition, in one of 128 partitions."
        "Check the allocation of on-chip memory."
        "NKI architecture guides";
    START_PARTITION Fault Error Hardware "neff-start-partition" "an instruction starts at a partition where it must not"
        "More than 64 partitions start at 0, more than 32 at 0 or 64, up to 32 at 0, 32, 64 or 96."
        "Move the tile to a legal partition."
        "NKI architecture guides";
    TILE_SIZE Fault Error Hardware "neff-tile-size" "a tile is larger than the engine takes, or empty"
        "The matrix engine has 128 rows and 128 columns, and takes 512 columns of moving data at a time."
        "Split the instruction; leave out an empty one."
        "NKI architecture guides";
    PSUM_BANK Fault Error Hardware "neff-psum-bank" "a matrix product does not stay in one PSUM bank"
        "The sums of one instruction must lie in one bank of 2 KiB in each partition, of PSUM."
        "Move the sums to a bank boundary, or split the instruction."
        "NKI architecture guides";
    ELEMENT_COUNT Fault Error Hardware "neff-element-count" "source and destination of an instruction differ in elements"
        "Element-wise instructions write as many elements as they read."
        "Check the shapes."
        "NKI architecture guides";
    INSTRUCTION Fault Error Hardware "neff-instruction" "an instruction cannot be executed by any engine"
        "Its operands contradict each other or what the engine has: another number of elements than it makes, types that it does not take, a register or a function that does not exist."
        "Check shapes and types; compile again."
        "NKI API reference; table of opcodes in the documentation";
    DMA_TARGET Unsupported Error Chipless "neff-dma-target" "the address of a transfer is not supported"
        "An address counts from a variable or from an entry of a table of variables; others are not known."
        "If the compiler is newer than Chipless, report the tag; else the file is damaged."
        "compiled programs";
    DMA_VARIABLE Fault Error Format "neff-dma-variable" "the address of a transfer leads to no variable"
        "The number of a variable or the index into the table that an instruction names does not exist in def.json."
        "Compile again: instructions and def.json do not belong together."
        "NEFF specification, Variables";
    DMA_BOUNDS Fault Error Format "neff-dma-bounds" "a transfer leaves its variable"
        "Rows of a transfer start or end outside the variable that they are counted from."
        "Check offset, steps and counts against the size of the variable."
        "NEFF specification, Variables";
    DMA_COUNT Fault Error Format "neff-dma-count" "source and destination of a transfer differ in size"
        "A transfer writes as many bytes as it reads, or, where it casts, as many elements."
        "Check rows and row sizes of both sides."
        "compiled programs";
    DMA_WRITES_INPUT Fault Warning Format "neff-dma-writes-input" "a transfer writes to an input or a constant"
        "The host expects inputs and constants to be as they were; the next run would see other values."
        "Check which variable the destination names."
        "NEFF specification, Variables";
    KEPT_BYTES Departure Warning Writers "neff-kept-bytes" "state buffer bytes that somebody else keeps are written"
        "runtime_statebuffer_reservation names bytes that the runtime uses while the program runs, dynamic_dma those in which descriptors are built. Written over, other work of the core goes wrong."
        "Move the tile."
        "Measured on compiler output";
    OPERAND_ALIGNMENT Departure Warning Writers "neff-operand-alignment" "elements do not start at a multiple of their size"
        "Compilers place elements of two and four bytes at even addresses and multiples of four. Chipless reads them where they are; that hardware does so too is not proven."
        "Align the tile."
        "Measured on compiler output";
    PSUM_GROUP Departure Warning Writers "neff-psum-group" "a group of sums does not end with stop, or goes on behind it"
        "The first MATMUL of a group of sums says start and overwrites what PSUM holds, the last one says stop; only then are the sums complete, and other engines may read them. Chipless adds by start alone."
        "Check the accumulation flags of the MATMULs into this bank."
        "Measured on compiler output";
    DMA_OVERLAP Fault Warning Hardware "neff-dma-overlap" "a transfer writes bytes twice"
        "Rows of a transfer go to several rings, which nothing orders: where rows of the destination overlap, either may be written last."
        "Give each row bytes of its own."
        "NKI DMA overview";
    DMA_QUEUE Departure Warning Writers "neff-dma-queue" "a transfer has no queue set of its own"
        "Instructions hand transfers to the dynamic queue set that their engine owns, and signal a semaphore of its set."
        "Declare a queue set of type dynamic for the engine, and use its semaphores."
        "NEFF specification, Queue Sets; compiled programs";
}
