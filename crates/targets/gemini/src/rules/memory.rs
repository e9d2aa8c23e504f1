//! Rules about buffers, tiles, DRAM and the front-end file.

chipless_model::rules! {
    L2_OVERLAP Fault Error Format "gemini-l2-overlap" "two tensors lie on the same bytes of L2"
        "What a snapshot holds is there at the same time. Addresses wrap around at the end of their ring region."
        "Move one of them."
        "Scheduler IR format description, address and ring_buffer_info";
    BLOCK_OVERLAP Fault Warning Format "gemini-block-overlap" "two blocks lie on the same KiB of L2"
        "Experimental allocators of this dialect let a tensor that is being sent share space with one that is being loaded."
        "Check that the one is gone before the other comes."
        "Files of IR-tiling with addresses";
    L2_BOUNDS Fault Error Format "gemini-l2-bounds" "a tensor lies outside the regions of the L2 buffer"
        "It must start in a ring region, and the regions end at buffersize."
        "Move or shrink the tensor."
        "Scheduler IR format description, buffersize and ring_buffer_info";
    L2_ALIGN Fault Error Format "gemini-l2-align" "an address in L2 is no multiple of 8"
        "Instructions address L2 in units of 64 bits, and channels are aligned to them."
        "Move the tensor."
        "Assembly files; measured on scheduler output";
    RING_WRAP Fault Error Format "gemini-ring-wrap" "a tensor is larger than the ring region that it starts in"
        "It would wrap around onto itself."
        "Use a larger region."
        "Scheduler IR format description, ring_buffer_info";
    RING Fault Error Format "gemini-ring-region" "the ring regions are empty, overlap or leave the buffer"
        "Each region is [first byte, byte behind the last], and no byte belongs to two."
        "Mend ring_buffer_info."
        "Scheduler IR format description, ring_buffer_info";
    NEWLY_ADDED Fault Error Format "gemini-newly-added" "`newly_added` says something else than the snapshots"
        "A tensor is new exactly if the snapshot before did not have it; in the first snapshot everything is new."
        "Mend the mark, or keep the tensor."
        "Scheduler IR format description, newly_added; measured on scheduler output";
    MOVED Fault Error Format "gemini-tensor-moved" "a resident tensor changes between two snapshots"
        "Nothing moves a tensor inside L2: while it is there it keeps its address, size and transfers."
        "Keep it where it is, or give the new one an id of its own."
        "Scheduler IR format description, tensor_id and address";
    TENSOR_TWICE Fault Error Format "gemini-tensor-twice" "a snapshot has two tensors of one id"
        "tensor_id names one tensor."
        "Number the tensors."
        "Scheduler IR format description, tensor_id";
    BACK Fault Error Format "gemini-tensor-back" "a tensor is gone and comes back"
        "What leaves the snapshots is overwritten. A transfer brings its data once; to have them again takes another transfer."
        "Keep the tensor until its last use."
        "Scheduler IR format description, buffer";
    LATE Fault Error Format "gemini-tensor-late" "a result gets its space after it was made"
        "A result that stays on its core needs its space when it is made; a tensor that appears later cannot hold it."
        "Put the tensor into the snapshot of the workload that makes it, and keep it until it is read."
        "Measured on scheduler output";
    STAGED Fault Error Format "gemini-ofmap-tensor" "an ofmap tensor is no piece of what its workload makes"
        "A tensor of type ofmap stages what the workload of the snapshot makes: one of the pieces of its ofmap, or all of it."
        "Mend its box and size."
        "Measured on scheduler output";
    START_SEND Fault Warning Format "gemini-start-send" "an ofmap tensor is not sent"
        "Tensors of type ofmap exist only in the snapshot of the workload that makes and sends them."
        "Check start_send."
        "Measured on scheduler output";
    TENSOR_LAYER Fault Warning Format "gemini-tensor-layer" "a tensor names another layer than the workload that makes or uses it"
        "layer_name of weights is the layer that uses them, that of an ofmap the layer that makes it. Transfer ids count; names are repeated for readers."
        "Mend the name."
        "Scheduler IR format description, layer_name";
    WL_OVERLAP Fault Error Format "gemini-weight-buffer-overlap" "two tensors lie on the same bytes of the weight buffer"
        "What a snapshot holds is there at the same time."
        "Move one of them."
        "Scheduler IR format description, wl0_buffer";
    WL_BOUNDS Fault Warning Format "gemini-weight-buffer-bounds" "a tensor ends far beyond what weight buffers are known to hold"
        "The capacity is not published. The largest end that was seen is 18816 bytes in each bank; beyond 65536 a mistake is likely."
        "Check the address."
        "Measured on scheduler output";
    WL_SOURCE Fault Error Format "gemini-weight-buffer-source" "weights come from L2, where they are not"
        "A weight buffer entry with source CORE is filled from a weight tensor in the L2 snapshot of the same workload."
        "Keep the weights in L2, or take them from DRAM (DDR)."
        "Scheduler IR format description, wl0_buffer";
    WL_SIZE Fault Error Format "gemini-weight-buffer-size" "a size in the weight buffer does not follow from the weights"
        "Bytes in each of the 64 banks: K / 64 rounded up, times (C rounded up to 8, times R times S, plus 32, rounded up to 32); from L2 also a half, a quarter or an eighth of it."
        "Mend the size."
        "Measured on scheduler output, without exception";
    WL_ALIGN Fault Warning Format "gemini-weight-buffer-align" "an address in the weight buffer is no multiple of 32"
        "Banks have rows of 256 bits, and instructions count in them."
        "Move the tensor."
        "Measured on scheduler output";
    WL_BACK Fault Error Format "gemini-weight-buffer-back" "weights are gone from the weight buffer and come back"
        "What leaves the snapshots of the weight buffer is overwritten. A transfer from DRAM brings its data once; to have them again takes another transfer."
        "Keep the entry until its last use."
        "Scheduler IR format description, wl0_buffer";
    WL_ABSENT Fault Warning Format "gemini-weight-buffer-absent" "a workload starts without its weights in the weight buffer"
        "Processing elements take weights from the weight buffer, so that its snapshot has an entry of the weights of its workload."
        "Add the entry."
        "Measured on scheduler output";
    TILE_COVER Fault Error Format "gemini-tile-cover" "the tiles do not cover their workload exactly once"
        "The output boxes of the tiles fill the box of the workload, without gaps and without overlaps."
        "Mend the tiles."
        "Scheduler IR format description, tile_info";
    TILE_INPUT Fault Error Format "gemini-tile-input" "a tile reads outside the input of its workload"
        "The input box of a tile lies in that of its workload."
        "Mend ifmap_lower and ifmap_upper."
        "Scheduler IR format description, tile_info";
    TILE_FIELDS Fault Error Format "gemini-tile" "a tile has a mode or mini-tile that makes no sense"
        "loop_order is a permutation of K, N, H and W; cut_mode is KC, KH, KK, KW or KN; mini-tiles have no empty dimension and fit their tile."
        "Mend the field."
        "Scheduler IR format description, tile_info; measured on scheduler output";
    RELATED Fault Error Format "gemini-related-unknown" "a related transfer does not exist"
        "related_ofmap of an `in` entry names `out` entries, related_ifmap of an `out` entry names `in` entries."
        "Mend the id."
        "Scheduler IR format description, related_ofmap and related_ifmap";
    RELATED_DISJOINT Fault Error Format "gemini-related-disjoint" "related DRAM transfers have no byte in common"
        "A link says that the read takes what the write put there; boxes that do not overlap are not related."
        "Mend the ids."
        "Scheduler IR format description, related_ofmap and related_ifmap";
    RELATED_ONE_SIDED Fault Warning Format "gemini-related-one-sided" "only one end of a pair of DRAM transfers names the other"
        "The write names the reads of its bytes and the read the writes."
        "Add the other link."
        "Scheduler IR format description, related_ofmap and related_ifmap";
    UNWRITTEN Fault Error Format "gemini-dram-unwritten" "DRAM is read before it is written"
        "The program makes these data and stores them, but the read is not linked to stores that cover its box, so nothing orders it behind them."
        "Name all the stores in related_ifmap."
        "Scheduler IR format description, related_ifmap";
    UNSTORED Fault Warning Format "gemini-dram-unstored" "DRAM is read that the program makes but does not store"
        "The layer is computed by this program; none of its stores is linked to the read."
        "Name the stores in related_ifmap."
        "Scheduler IR format description, related_ifmap";
    IN_SOURCE Fault Error Format "gemini-dram-in" "an `in` entry and the ofmap that is stored do not fit"
        "Each `in` entry has the id of one piece of an ofmap whose destination is DRAM, on the core that it names, and the piece's shape."
        "Mend the entry or the destination."
        "Scheduler IR format description, DRAM data";
    QUEUE Fault Error Format "gemini-tensor-order" "two transfers have the same place in the DRAM queue, or one has none"
        "tensor_order numbers the accesses of DRAM from 0: loads to L2, loads to the weight buffers and stores share one queue."
        "Number the queue."
        "Scheduler IR format description, tensor_order";
    QUEUE_GAP Fault Warning Format "gemini-tensor-order-gap" "`tensor_order` has gaps or numbers what stays on the chip"
        "The queue is numbered without gaps; tensors that stay on the chip carry the number of its entries."
        "Number the queue."
        "Measured on scheduler output";
    LAYER Fault Error Format "gemini-layer-unknown" "a layer is not in the front-end file"
        "Every layer name of a schedule is a key of the front-end file."
        "Give the front-end file from which the schedule was made."
        "Front-end IR files";
    LAYER_BOX Fault Error Format "gemini-workload-outside" "a workload lies outside its layer"
        "The box of a workload is a part of the layer's output."
        "Mend the box."
        "Front-end IR files, output_shape";
    LAYER_COVER Fault Error Format "gemini-layer-cover" "the workloads do not make all of their layer"
        "Together the workloads of a layer make its whole output."
        "Add the missing workloads."
        "Front-end IR files, output_shape";
    LAYER_UNIT Fault Warning Format "gemini-layer-unit" "a layer runs on another unit than its operation needs"
        "Convolutions and dense layers run on the processing elements, everything else on the vector processor or as data transfer."
        "Check layer_type."
        "Front-end IR files, operation; measured on scheduler output";
    LAYER_WEIGHT Fault Error Format "gemini-layer-weight" "weights lie outside those of their layer"
        "The box of the weights is a part of K, C and R times S of the layer."
        "Mend the box."
        "Front-end IR files, input_shape";
    LAYER_INPUT Fault Error Format "gemini-layer-input" "a workload reads too little or too much of its layer's input"
        "Kernel, stride and padding of the layer say which input a box of the output needs; what is read lies inside the layer's input."
        "Mend the box of the ifmap."
        "Front-end IR files, kernel_size, stride and padding";
    LAYER_TYPE Fault Error Format "gemini-layer-bitwidth" "the bit width of data differs from the layer's type"
        "int8 has 8 bits, int16 and float16 have 16."
        "Mend the bit width."
        "Front-end IR files, input_dtype and output_dtype";
}
