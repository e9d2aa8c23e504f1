//! What can be wrong with the control structures and the chains of descriptors.

chipless_model::rules! {
    LIMIT Limit Error Chipless "npu-limit" "the program is larger than a limit of Chipless"
        "Every count and size that a file asks for is bounded, so that a damaged or hostile file cannot take the machine."
        "If the program is genuine, raise the limit that the message names with --limit NAME=VALUE."
        "Chipless";
    MODE Unsupported Error Chipless "npu-unsupported-mode" "a programming mode that Chipless does not execute"
        "The mode byte of the managed mapped inference says who programs barriers and enqueues work: the firmware (0), or the program's own DMAs, wholly (3) or in part (1, 2, 4). The partial modes occur in no program at hand."
        "Compile with the default workload management, or with the fully managed one."
        "NPU4 managed mapped inference, offset 415";
    MEDIA Unsupported Error Chipless "npu-unsupported-media" "media (M2I) work items"
        "The media unit's descriptors are known by layout only; Chipless does not execute them."
        "Compile without the media pre-processing."
        "NPU4 work item, offset 8";
    DMA_IN_CMX Unsupported Error Chipless "npu-unsupported-dma-in-cmx" "a DMA list goes on in CMX"
        "Some kernels of release 2026.4.0 and later (scatter_update_dma, topk_dma, attention_dma and others) drive the DMA engines: a list waits at a descriptor in CMX that links to itself until the kernel gives it another link. What the kernel writes there is not known."
        "Compile with another release, or without the operation."
        "compiled programs; kernels of the vendor's library, by name";
    SHAVE_UNIT Unsupported Error Chipless "npu-unsupported-shave-unit" "work for one SHAVE of a tile alone"
        "The sub unit of a SHAVE's work item says which SHAVE of the tile takes it: 0 is any of the two. Programs whose SHAVEs have a list each (NPU_TURBO) number them; in other programs no compiler was seen to name one."
        "Compile with the default number of SHAVE queues, or with NPU_TURBO."
        "NPU4 work item, offset 10";
    TILE Fault Error Hardware "npu-tile" "a tile that the program does not use"
        "A program has a CMX workspace for each tile that it uses. Work for another tile would run in somebody else's memory."
        "The blob was compiled for more tiles than it is given, or a work item is damaged."
        "NPU4 work item, offset 9";
    BARRIER_ID Fault Error Hardware "npu-barrier-id" "a physical barrier that the program does not have"
        "Each tile brings 16 physical barriers. Waiting for or posting a barrier beyond them hangs or disturbs another context."
        "The blob was compiled for more tiles than it is given, or a mask is damaged."
        "NPU4: 16 barriers a tile";
    BARRIER_UNPROGRAMMED Fault Error Hardware "npu-barrier-unprogrammed" "a virtual barrier is never loaded"
        "Every virtual barrier is loaded at the start (program.bootstrap) or after another use of its physical barrier. One that is never loaded never lights, and its waiters hang."
        "Add it to program.bootstrap, or to the chain of its physical barrier."
        "NPU4 program.bootstrap";
    BOOTSTRAP Fault Error Hardware "npu-bootstrap" "the list of barriers to load first is wrong"
        "program.bootstrap names the first use of every physical barrier, each exactly once."
        "Compare the list with the table of barriers in `info --raw`."
        "NPU4 program.bootstrap";
    DMA_LINK Fault Error Hardware "npu-dma-link" "a DMA link leads to no descriptor"
        "A link address names the start of another 224-byte descriptor of the same engine and list, or is 0 at the end."
        "Check the relocations of the section of descriptors."
        "NPU4 DMA descriptor, offset 0";
    DMA_CYCLE Fault Error Hardware "npu-dma-link-cycle" "DMA links form a cycle"
        "A descriptor that is reached twice makes the engine repeat its list for ever."
        "The last descriptor of a list has link address 0."
        "NPU4 DMA descriptor, offset 0";
    DMA_LENGTHS Fault Error Hardware "npu-dma-lengths" "a DMA reads and writes different numbers of bytes"
        "Source and destination are walked independently; the byte streams must be equally long, after a conversion where there is one. Otherwise the engine stops with an error or hangs."
        "Check widths (full values) and sizes (n − 1) of both sides."
        "NPU4 DMA descriptor, offset 24 to 164";
    NEVER_FETCHED Fault Error Hardware "npu-descriptor-never-fetched" "an engine is sent to CMX where no descriptor is"
        "DPU and SHAVE execute descriptors from CMX, where the program's own DMAs must have put them."
        "Look for the DMA that should fetch it: it is missing, comes too late, or goes to another address."
        "NPU4 workload management";
    VARIANT_POINTER Fault Error Hardware "npu-variant-pointer" "a DPU is sent to bytes that are no variant"
        "A DPU work item, a FIFO entry or the chain of another variant names the start of a 224-byte variant."
        "Check next_sram_job_addr of the variant before, or the work item."
        "NPU4 DPU variant, offset 28";
    INVARIANT_POINTER Fault Error Hardware "npu-invariant-pointer" "a variant points to bytes that are no invariant of its tile"
        "invar_ptr is the CMX offset of the invariant divided by 32; the 64-bit address beside it names the same bytes in the same tile."
        "The variant was moved without its invariant, or the other way round."
        "NPU4 DPU variant, offset 0 and 192";
    CHAIN_CYCLE Fault Error Hardware "npu-chain-cycle" "a chain of descriptors is a cycle"
        "A variant or invocation that is reached twice makes its unit repeat for ever."
        "Clear next_sram_job_valid (or the next address) of the last one."
        "NPU4 DPU variant, offset 28; SHAVE invocation, offset 92";
    INVOCATION_POINTER Fault Error Hardware "npu-invocation-pointer" "a SHAVE is sent to bytes that are no invocation"
        "A SHAVE work item, a FIFO entry or the chain of another invocation names the start of a 96-byte invocation."
        "Check the next address of the invocation before, or the work item."
        "NPU4 SHAVE invocation, offset 92";
    RANGE_POINTER Fault Error Hardware "npu-range-pointer" "an invocation points to bytes that are no kernel range"
        "The first field of an invocation is the CMX address of its 40-byte kernel range."
        "The invocation was moved without its range, or the other way round."
        "NPU4 SHAVE invocation, offset 0";
    REGISTER_WRITE Fault Error Hardware "npu-register-write" "a DMA writes registers in a way that cannot be followed"
        "In fully managed programs DMAs write barrier and work FIFOs. Chipless follows plain copies of 32-bit words of the file to registers that it knows."
        "Compare the destination with the register map in the docs."
        "NPU4 fully managed workload management";
    UNREACHED Fault Error Hardware "npu-task-unreached" "a task is never executed"
        "No work item, link or chain leads to this descriptor. What it should have moved or computed is missing, and barriers that count on it never light."
        "Look at the link of the descriptor before it."
        "NPU4 task lists";
    VARIANT_COUNT Fault Error Hardware "npu-variant-count" "an invariant says another number of variants than it has"
        "variant_count of an invariant is the number of variants that use it; the firmware sizes its buffers by it."
        "Count the variants whose invar_ptr names this invariant."
        "NPU4 DPU invariant, offset 0x158";
}
