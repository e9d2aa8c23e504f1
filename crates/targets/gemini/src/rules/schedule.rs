//! Rules about what a schedule says.

chipless_model::rules! {
    MESH Fault Error Format "gemini-mesh" "the mesh has no cores"
        "xlen and ylen count the columns and rows of the mesh."
        "Give both at least 1."
        "Scheduler IR format description, top-level keys";
    CORE Fault Error Format "gemini-core" "a core lies outside the mesh"
        "Cores are numbered row by row from 0 to xlen times ylen minus 1, and every core that is named must be one of them."
        "Mend the number, or the mesh."
        "Scheduler IR format description, top-level keys";
    IDLE Departure Warning Writers "gemini-core-idle" "cores of the mesh have no list"
        "Schedulers write a list for every core, if only an empty one."
        "Check xlen and ylen, or whether a part of the file is missing."
        "Scheduler IR format description, top-level keys";
    UNKNOWN_KEY Departure Warning Format "gemini-key-unknown" "a key that the format does not know"
        "It is kept and written back, and means nothing to Chipless."
        "Check its spelling."
        "Scheduler IR format description";
    BUFFER_SIZE Fault Error Format "gemini-buffersize" "the size of the L2 buffer is missing or 0"
        "The spec's dialect gives it in bytes; without it nobody can tell whether a snapshot fits."
        "Write buffersize."
        "Scheduler IR format description, top-level keys";
    BATCH_CUT Fault Error Format "gemini-top-batch-cut" "`top_batch_cut` is 0 or does not go with the batch"
        "It counts the batch groups at the root, so it lies between 1 and the batch."
        "Mend top_batch_cut."
        "Scheduler IR format description, top-level keys";
    BATCH_UNEVEN Departure Warning Writers "gemini-batch-uneven" "`top_batch_cut` does not divide the batch"
        "The schedulers of this family cut the batch into equal groups."
        "Check the batch, which --batch or the front-end file says."
        "Search of the schedulers of this family";
    BATCH Fault Error Format "gemini-batch" "workloads make images beyond the batch"
        "The batch is what --batch says, or else the front-end file; images are counted from 0."
        "Check the batch, or mend the boxes."
        "Scheduler IR format description, lower and upper";
    BATCH_UNMADE Fault Warning Format "gemini-batch-unmade" "workloads make fewer images than the batch has"
        "The rest of the batch that --batch says comes out nowhere."
        "Check --batch, or whether a part of the file is missing."
        "Scheduler IR format description, lower and upper";
    FILE_NAME Departure Warning Writers "gemini-file-name" "the name of the file says something else than the file"
        "Schedulers write batch, cores and DRAM bandwidth in GiB/s into the names of their files: `…_b4_c1_bw16_…`. The bandwidth is taken from there."
        "Check that it is the right file, or give it another name."
        "Files of the schedulers of this family";
    BOX Fault Error Format "gemini-box" "a box has its lower corner above its upper one"
        "Both corners are inside the box, so lower is at most upper in each dimension."
        "Mend the corners."
        "Scheduler IR format description, lower and upper";
    ORDER Fault Error Format "gemini-workload-order" "workload ids are not in ascending order"
        "A core works through its list in the order of the ids; equal ids or a list in another order mean different things to different tools."
        "Number and list the workloads in the order of their work."
        "Scheduler IR format description, workload_id";
    ID_GAP Departure Warning Writers "gemini-workload-gap" "workload ids have gaps"
        "Schedulers number the workloads of a core from 0 without gaps; an assembler may rely on it."
        "Number them without gaps."
        "Measured on scheduler output";
    ID_SHARED Fault Error Format "gemini-workload-shared" "two cores have a workload of the same id"
        "In this dialect ids count over all cores."
        "Number the workloads of all cores together."
        "Files of SET, GEMINI and IR-tiling";
    NO_SOURCE Fault Error Format "gemini-transfer-without-source" "a transfer is read that nobody makes"
        "Every transfer id that a workload or a buffer reads is that of one DRAM `out` entry or of one piece of an ofmap."
        "Add the source, or mend the id."
        "Scheduler IR format description, transfer_id";
    TWO_SOURCES Fault Error Format "gemini-transfer-two-sources" "a transfer has more than one source"
        "A transfer id names one piece of data on its way; two sources would leave open which of them arrives."
        "Give each source an id of its own."
        "Scheduler IR format description, transfer_id";
    NO_READER Departure Warning Format "gemini-transfer-without-reader" "a transfer is made that nobody reads"
        "The data are moved, and cost time and space, but no workload lists the transfer."
        "Remove the transfer, or list it where it is needed."
        "Scheduler IR format description, transfer_id";
    DESTINATION Departure Warning Writers "gemini-destination" "a destination does not read the transfer, or a reader is no destination"
        "Transfers are resolved by their ids; destinations repeat who reads them. Published files exchange two of them now and then."
        "Mend core_id and workload_id of the destination."
        "Scheduler IR format description, destination; measured on scheduler output";
    TRANSFER_TWICE Departure Warning Format "gemini-transfer-twice" "a list of transfers names one of them twice"
        "transfer_id is the set of the transfers that bring the data; each arrives once."
        "Remove one of the two."
        "Scheduler IR format description, transfer_id";
    PADDING_MISSING Departure Warning Writers "gemini-padding-missing" "a workload of processing elements does not say its padding"
        "Every workload and tile of processing elements has `tile_padding_tblr`, if only zeros; an assembler takes the padding from there."
        "Write the padding that is really used at its edges."
        "Scheduler IR format description, tile_padding_tblr; measured on scheduler output";
    NO_DESTINATION Fault Warning Format "gemini-destination-unknown" "a destination names a workload that does not exist"
        "The core has no workload of that id."
        "Mend core_id or workload_id."
        "Scheduler IR format description, destination";
    SOURCE Fault Error Format "gemini-source" "a source names another place than the one that makes the transfer"
        "The core of a source, or DRAM, must be where the transfer with that id comes from."
        "Mend core_id and type of the source."
        "Scheduler IR format description, source";
    SOURCES_EXCHANGED Departure Warning Format "gemini-source-exchanged" "sources name each other's cores"
        "The transfer id counts, and the proof follows it; the core is repeated for readers. One source names the core that makes the transfer of the other, and the other way round."
        "Exchange core_id of the two, or their transfers."
        "Scheduler IR format description, source";
    SOURCE_LAYER Departure Warning Format "gemini-source-layer" "a source names another layer than the one that makes the transfer"
        "Names of layers are repeated for readers; the transfer id counts."
        "Mend the name."
        "Scheduler IR format description, source";
    SOURCE_IDS Fault Error Format "gemini-source-ids" "the transfers of a tensor are not those of its sources"
        "transfer_id of a tensor is the union of the ids of its sources."
        "Make both agree."
        "Scheduler IR format description, source";
    SOURCES_OVERLAP Departure Warning Format "gemini-source-overlap" "two sources of a tensor fill the same elements"
        "Whichever arrives last stays."
        "Cut the sources so that they only touch."
        "Scheduler IR format description, source";
    NO_SPACE Departure Warning Writers "gemini-result-without-space" "a result has no space in the snapshot of the workload that makes it"
        "A result that stays on its core lies in L2 as the input of its future reader, and one that leaves the core as an ofmap, from the start of the workload that makes it."
        "Add the tensor to the snapshot."
        "Measured on scheduler output";
    UNUSED Departure Warning Format "gemini-ofmap-unused" "a part of what a workload makes goes nowhere"
        "The pieces of its ofmap do not make up its box. Rows and columns at its ends may be missing: readers cut them off, or skip them with a stride longer than their window."
        "Add the missing piece, or compute less."
        "Scheduler IR format description, ofmap";
    PADDING Fault Error Format "gemini-padding" "the padding of a workload does not follow from its layer"
        "Only the first and last rows and columns of a layer are padded: top is padding minus first row times stride, if that is above 0, and so on."
        "Mend tile_padding_tblr."
        "Measured on scheduler output; front-end IR files, padding";
    PARTLY Departure Warning Format "gemini-ifmap-partly" "a tensor is filled in part"
        "The sources do not make up its box. In the ancestor dialects that may be the state of a recurrent network before the first step; elsewhere nobody may read the rest."
        "Add the missing source, or shrink the box."
        "Scheduler IR format description, source; files of SET, GEMINI and IR-tiling";
    SOURCE_OUTSIDE Fault Error Format "gemini-source-outside" "a source lies outside its tensor, or has another shape than what is sent"
        "A source is a part of its tensor, in the frame of the tensor, and has the shape of the piece that arrives."
        "Mend the box of the source."
        "Scheduler IR format description, source";
    IFMAP_TENSOR Fault Error Format "gemini-ifmap-missing" "what a workload reads is not in its snapshot"
        "The snapshot of a workload holds every input that it reads, with all of its box."
        "Load or keep the tensor until its last use."
        "Scheduler IR format description, buffer";
    CURRENT Departure Warning Writers "gemini-current-ifmap" "`cur_wl_ifmap` marks other tensors than the workload reads"
        "The mark repeats the transfers of the ifmap list for the assembler."
        "Mark exactly the tensors that the ifmap list names."
        "Scheduler IR format description, cur_wl_ifmap";
    WEIGHT_BOX Fault Error Format "gemini-weight-box" "weights do not fit the workload that uses them"
        "The output channels of the weights are those of the workload, and their input channels those of the ifmap, or an even part of them in grouped convolutions."
        "Mend the box of the weights."
        "Scheduler IR format description, weight";
    SIZE Fault Error Format "gemini-size" "a size does not follow from shape, alignment and bit width"
        "A feature map takes N times C rounded up to align, times H, times W, times bitwidth / 8 bytes. Weights take K times (C rounded up to 8, times R times S, plus 32) bytes. The ancestors count bits of 8-bit data without rounding."
        "Mend the size, or the box."
        "Measured on scheduler output, without exception";
    SIZE_DIFFERS Fault Error Format "gemini-size-differs" "both ends of a transfer give different sizes"
        "What is sent is what arrives."
        "Make both ends agree."
        "Scheduler IR format description, size";
    ALIGN Departure Warning Writers "gemini-align" "channels are not aligned to 64 bits"
        "align counts channels: 8 of 8 bits, 4 of 16 bits. Other values are possible but seen nowhere."
        "Check align."
        "Scheduler IR format description, align; measured on scheduler output";
    BITWIDTH Fault Error Format "gemini-bitwidth" "a bit width that no data have"
        "Data are int8 (8), or int16 and fp16 (16)."
        "Use 8 or 16."
        "Scheduler IR format description, bitwidth";
    OFMAP_BOX Fault Error Format "gemini-ofmap-box" "a piece of an ofmap lies outside its workload"
        "Pieces are counted from the lower corner of the workload or from that of the layer, and lie inside the workload either way."
        "Mend the box."
        "Scheduler IR format description, ofmap; measured on scheduler output";
    UNNAMED Departure Warning Format "gemini-transfer-unnamed" "a transfer between cores is in no list of destinations"
        "Core, layer and box of its source say which workload makes it."
        "Add it to the destinations in the snapshots of that workload."
        "Files of IR-tiling";
    GROUP Fault Error Format "gemini-dram-group" "an interleaved transfer is missing in one of its DRAM groups"
        "Each group lists the transfers that it takes part in. Readers and makers name the groups over which the data are interleaved, as a list; a bare 0 is DRAM and names none. What was stored is read from the groups that it was stored to, and all weights of a layer lie in the same groups."
        "Add the transfer to the group, or mend the list of groups."
        "Files of IR-tiling; search of the schedulers of this family, DRAM of weights and ofmaps by layer";
    DRAM_TYPE Fault Error Format "gemini-dram-type" "weights are read as a feature map, or a feature map as weights"
        "The type of a DRAM tensor is that of the tensors and workloads that its transfer reaches."
        "Mend the type, or the transfer id."
        "Scheduler IR format description, type";
    INPUTS Fault Error Format "gemini-ifmap-count" "a workload has more or fewer inputs than its unit or layer takes"
        "Processing elements read one ifmap, the vector processor one, or two for element-wise layers."
        "Mend the ifmap list."
        "Measured on scheduler output";
    TIME Departure Warning Writers "gemini-time" "the time of a workload does not go with its tiles"
        "Every workload takes time. On the vector processor each tile repeats the time of its workload; on processing elements no tile takes longer than it."
        "Check time and single_tile_time_pred."
        "Measured on scheduler output";
    PACKED Departure Warning Writers "gemini-packed" "no data are aligned"
        "Every tensor has align 1, as `chipless convert` writes schedules of the ancestors, whose sizes count neither aligned channels nor parameters beside the weights. Sizes are checked as those of packed data; the hardware of the spec's dialect needs aligned ones."
        "Nothing, unless the file is meant for that hardware: then schedule the network for it."
        "Chipless; files of SET, GEMINI and IR-tiling";
}
