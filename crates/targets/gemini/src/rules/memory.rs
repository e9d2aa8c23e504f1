//! Rules about buffers, tiles, DRAM and the front-end file.

chipless_model::rules! {
    L2_OVERLAP Fault Error Format "gemini-l2-overlap" "two tensors lie on the same bytes of L2"
        "What a snapshot holds is there at the same time. Addresses wrap around at the end of their ring region."
        "Move one of them."
        "Scheduler IR format description, address and ring_buffer_info";
    BLOCK_OVERLAP Departure Warning Format "gemini-block-overlap" "two tensors of a snapshot lie on the same bytes of L2"
        "Allocators of the family let a tensor that is being sent share space with one that is being loaded. In the spec's dialect the proof says whether anything that is read may be overwritten."
        "Check that the one is gone before the other comes."
        "Scheduler IR format description, address; files of IR-tiling with addresses";
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
        "Nothing moves a tensor inside L2: while it is there it keeps its address."
        "Keep it where it is."
        "Files of SET with addresses";
    TENSOR_TWICE Fault Error Format "gemini-tensor-twice" "a snapshot has two tensors of one id"
        "tensor_id names one tensor."
        "Number the tensors."
        "Scheduler IR format description, tensor_id";
    TENSOR_LAYER Departure Warning Format "gemini-tensor-layer" "a tensor names another layer than the workload that makes or uses it"
        "layer_name of weights is the layer that uses them, that of an ofmap the layer that makes it. Transfer ids count; names are repeated for readers."
        "Mend the name."
        "Scheduler IR format description, layer_name";
    BLOCK Fault Error Hardware "gemini-block" "a block is larger than the memory of any core"
        "The ancestors count blocks of L2 in KiB; cores of the family have a few MiB."
        "Mend block."
        "Files of SET, GEMINI and IR-tiling; machines of the family";
    WL_BOUNDS Departure Warning Writers "gemini-weight-buffer-bounds" "a tensor ends far beyond what weight buffers are known to hold"
        "The capacity is not published. The largest end that was seen is 18816 bytes in each bank; beyond 65536 a mistake is likely."
        "Check the address."
        "Measured on scheduler output";
    WL_SIZE Fault Error Format "gemini-weight-buffer-size" "a size in the weight buffer does not follow from the weights"
        "Bytes in each of the 64 banks: K / 64 rounded up, times (C rounded up to 8, times R times S, plus 32, rounded up to 32); from L2 also a half, a quarter or an eighth of it."
        "Mend the size."
        "Measured on scheduler output, without exception";
    WL_ALIGN Departure Warning Writers "gemini-weight-buffer-align" "an address in the weight buffer is no multiple of 32"
        "Banks have rows of 256 bits, and instructions count in them."
        "Move the tensor."
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
    RELATED_ONE_SIDED Departure Warning Format "gemini-related-one-sided" "only one end of a pair of DRAM transfers names the other"
        "The write names the reads of its bytes and the read the writes."
        "Add the other link."
        "Scheduler IR format description, related_ofmap and related_ifmap";
    UNWRITTEN Fault Error Format "gemini-dram-unwritten" "DRAM is read before it is written"
        "The program makes these data and stores them, but the read is not linked to stores that cover its box, so nothing orders it behind them."
        "Name all the stores in related_ifmap."
        "Scheduler IR format description, related_ifmap";
    UNLINKED Departure Warning Format "gemini-dram-unlinked" "DRAM is read that the program writes, without a link between the two"
        "The program makes these data and stores them, but the read names none of the stores. Only the queue of DRAM, if that, orders it behind them."
        "Name all the stores in related_ifmap."
        "Scheduler IR format description, related_ifmap";
    UNSTORED Departure Warning Format "gemini-dram-unstored" "DRAM is read that the program makes but does not store"
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
    QUEUE_GAP Departure Warning Writers "gemini-tensor-order-gap" "`tensor_order` has gaps or numbers what stays on the chip"
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
    LAYER_UNIT Fault Error Format "gemini-layer-unit" "a layer runs on another unit than its operation needs"
        "Convolutions, dense layers and matrix products run on the processing elements (pe), pooling, element-wise layers, quantize, softmax, exp and layer_norm on the vector processor (vp); what only moves data is data transfer (dt)."
        "Check layer_type."
        "Front-end IR files, operation; measured on scheduler output";
    LAYER_WEIGHT Fault Error Format "gemini-layer-weight" "weights are not those of their layer"
        "The box of the weights is a part of K, and all of C and of R times S, of the layer."
        "Mend the box."
        "Front-end IR files, input_shape";
    LAYER_TIME Fault Error Hardware "gemini-layer-time" "a time that the processing elements cannot have"
        "They multiply 4096 pairs in a cycle, so that no workload takes less than its products / 4096 cycles. Nor does any take more than 16 times the cycles of its products, of its weights at 32 bytes a cycle and of its result at 32 bytes a cycle, and 4096 more."
        "Mend time."
        "Scheduler IR format description, time and tile_info; peak of the processing elements";
    LAYER_CUT Fault Error Hardware "gemini-layer-cut" "a tile cuts its input channels into parts that are not even"
        "Input channels come in groups of 8. ci_cut_num divides their number, and cut_mode KC shares them over 8 units."
        "Mend ci_cut_num or cut_mode."
        "Scheduler IR format description, tile_info";
    LAYER_TYPE Fault Error Format "gemini-layer-bitwidth" "the bit width of data differs from the layer's type"
        "int8 has 8 bits, int16 and float16 have 16."
        "Pass the front-end file from which the schedule was made as --network. If it is that one, mend the bit width."
        "Front-end IR files, input_dtype and output_dtype";
}
