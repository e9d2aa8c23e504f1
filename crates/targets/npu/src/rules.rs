//! What the reader of NPU blobs can find fault with.

chipless_model::rules! {
    TRAILER_FOOTER Fault Warning Format "trailer-footer" "bytes behind the ELF do not end in the plugin's footer"
        "A blob that OpenVINO exports is an ELF followed by the plugin's metadata; its last 13 bytes are the size of the ELF and the letters OVNPU. This file goes on behind its ELF but does not end so: it was cut, or something was appended. The ELF alone is used."
        "Export the model again, or cut the file at the end of its ELF."
        "OpenVINO intel_npu plugin, metadata.cpp (versions 2.0 to 2.7)";
    TRAILER_SIZE Fault Error Format "trailer-size" "the footer's payload size does not fit the file"
        "The footer says how many bytes of ELF come before the plugin's metadata. With this size the metadata would start behind the footer or lie inside the ELF."
        "Export the model again; a tool that edits the ELF must write its new size into the footer."
        "OpenVINO intel_npu plugin, metadata.cpp (versions 2.0 to 2.7)";
    TRAILER_VERSION Fault Error Format "trailer-version" "the plugin's metadata has an unknown version"
        "The metadata behind the ELF starts with its version; 2.0 to 2.7 are known. Another number means a newer plugin, or that the footer's payload size points to the wrong place."
        "Check the payload size in the footer; export with a known release of OpenVINO."
        "OpenVINO intel_npu plugin, metadata.cpp (versions 2.0 to 2.7)";
    TRAILER_STRING Fault Error Format "trailer-string" "a string of the plugin's metadata runs past its end"
        "Layouts and the compatibility string are stored with their length; this length is larger than what is left before the footer."
        "Export the model again."
        "OpenVINO intel_npu plugin, metadata.cpp (versions 2.0 to 2.7)";
    TRAILER_COUNT Fault Error Format "trailer-count" "a count in the plugin's metadata is larger than the metadata"
        "The metadata counts init schedules and the layouts of inputs and outputs. So many of them would not fit before the footer."
        "Export the model again."
        "OpenVINO intel_npu plugin, metadata.cpp (versions 2.0 to 2.7)";
    TRAILER_SHORT Fault Error Format "trailer-short" "the plugin's metadata ends before its last field"
        "Each version of the metadata has a fixed list of fields; the footer starts before they are complete."
        "Export the model again."
        "OpenVINO intel_npu plugin, metadata.cpp (versions 2.0 to 2.7)";
    TRAILER_UNSUPPORTED Unsupported Error Chipless "trailer-unsupported" "the payload is of a kind that is not supported"
        "The plugin can encrypt a blob, export LLVM or bytecode instead of an ELF, and put init schedules (weights separated from the program) behind the main ELF. Only one plain ELF can be run here."
        "Export without encryption and without weights separation."
        "OpenVINO intel_npu plugin, metadata.cpp (versions 2.0 to 2.7)";
    ELF_HEADER Fault Error Format "elf-header" "the file is not the ELF of an NPU program"
        "NPU blobs are relocatable little-endian ELF64 files that name no machine (e_machine 0)."
        "Give a blob as the compiler or OpenVINO's export wrote it."
        "ELF-64 object file format; loader checks of npu_compiler_elf (vpux_loader.cpp, reader.hpp)";
    ELF_SECTION_TABLE Fault Error Format "elf-section-table" "the section header table cannot be read"
        "e_shoff, e_shnum, e_shentsize and e_shstrndx of the ELF header say where the section headers and their names are; without them nothing of the program can be found."
        "The file is cut or damaged: compile or export it again."
        "ELF-64 object file format; loader checks of npu_compiler_elf (vpux_loader.cpp, reader.hpp)";
    ELF_SECTION_BEYOND_FILE Fault Error Format "elf-section-beyond-file" "a section reaches beyond the end of the ELF"
        "sh_offset + sh_size of a section with bytes must lie inside the file, or inside the payload where a trailer follows."
        "The file is cut, or its footer names too small a payload: compile or export it again."
        "ELF-64 object file format; loader checks of npu_compiler_elf (vpux_loader.cpp, reader.hpp)";
    ELF_SECTION_OVERLAP Fault Error Format "elf-section-overlap" "two sections share bytes of the file"
        "Every section has bytes of its own: a relocation of one would otherwise be read through the other, and what the compiler wrote is no longer what is loaded."
        "The file is damaged: compile or export it again."
        "layout of compiled programs; the compiler's writer places sections one after the other";
    ELF_STRING Fault Error Format "elf-string" "a name is not a NUL-terminated string inside its table"
        "Names of sections and symbols are offsets into a string table and end with a NUL byte."
        "The file is damaged: compile or export it again."
        "ELF-64 object file format; loader checks of npu_compiler_elf (vpux_loader.cpp, reader.hpp)";
    ELF_ENTRY_SIZE Fault Error Format "elf-entry-size" "a symbol or relocation table does not consist of 24-byte entries"
        "Entries of both kinds of tables are 24 bytes in ELF64; sh_entsize must say so and sh_size be a multiple."
        "The file is damaged: compile or export it again."
        "ELF-64 object file format; loader checks of npu_compiler_elf (vpux_loader.cpp, reader.hpp)";
    ELF_LINK Fault Error Format "elf-link" "a table refers to a section that is not of the needed kind"
        "sh_link of a symbol table is the string table with its names."
        "The file is damaged: compile or export it again."
        "ELF-64 object file format; loader checks of npu_compiler_elf (vpux_loader.cpp, reader.hpp)";
    ELF_NOTE Fault Error Format "elf-note" "a note does not fit its section"
        "A note has a header with the sizes of its name and its content. The versions of the loader ABI and of the mapped inference are notes with four numbers."
        "The file is damaged: compile or export it again."
        "ELF-64 object file format; loader checks of npu_compiler_elf (vpux_loader.cpp, reader.hpp)";
    ELF_SECTION_KIND Fault Error Format "elf-section-kind" "a section has a type that the loader refuses"
        "Hash tables, dynamic sections, relocations without addend and unknown types outside the user range have no meaning in an NPU program."
        "Compile the model again."
        "ELF-64 object file format; loader checks of npu_compiler_elf (vpux_loader.cpp, reader.hpp)";
    ELF_ALIGNMENT Fault Error Format "elf-alignment" "a section's alignment is not a power of two"
        "The loader places sections at multiples of sh_addralign."
        "Compile the model again."
        "ELF-64 object file format; loader checks of npu_compiler_elf (vpux_loader.cpp, reader.hpp)";
    ELF_MEMORY_LIMIT Limit Error Chipless "elf-memory-limit" "the sections take more memory than the limit memory_bytes"
        "Sections without bytes in the file (inputs, outputs, scratch) are memory that the loader must provide. Their sizes come from the file alone, so they are held to a limit before anything is allocated."
        "If the program is meant to be so large, raise memory_bytes; otherwise the size is damaged."
        "chipless limit memory_bytes; the chip addresses 48 bits";
    SECTION_SIZE Fault Error Format "section-size" "a section is not as large as its structure"
        "perf.metrics, meta.PlatformInfo and info.compiler.hash hold one structure each."
        "The file is damaged: compile or export it again."
        "npu_compiler_elf: metadata_primitives.hpp, serial_struct_base.hpp";
    SECTION_COUNT Fault Error Format "section-count" "a section that every program has exactly once is missing or repeated"
        "The loader needs one network description (type VPU_NETDESC) and one platform (VPU_PLATFORM_INFO)."
        "The file is not an NPU program, or damaged."
        "ELF-64 object file format; loader checks of npu_compiler_elf (vpux_loader.cpp, reader.hpp)";
    METADATA_STRUCTURE Fault Error Format "metadata-structure" "the network's description cannot be read"
        "The section is a chain of ten descriptors (offset of the data, offset of the next descriptor, count, size of an element). Every one must lie inside the section, come after the one before, and have elements of the known size."
        "The file is damaged: compile or export it again."
        "npu_compiler_elf: metadata_primitives.hpp, serial_struct_base.hpp";
    METADATA_VALUE Fault Error Format "metadata-value" "a value of the network's description is impossible"
        "Names are NUL-terminated UTF-8 in 256 bytes; a tensor has up to 8 dimensions and 9 strides."
        "The file is damaged: compile or export it again."
        "npu_compiler_elf: metadata_primitives.hpp, serial_struct_base.hpp";
    UNSUPPORTED_PLATFORM Unsupported Error Chipless "npu-unsupported-platform" "the program is for another chip"
        "meta.PlatformInfo names the chip. Chipless runs programs for NPU3720 (ArchKind 3, VPUX37XX, Meteor and Arrow Lake, two tiles), NPU4000 (ArchKind 4, VPUX40XX, Lunar Lake, six tiles) and NPU5010 (ArchKind 5, Panther Lake, three tiles). `info` still shows what the file says about itself."
        "Compile the model with NPU_PLATFORM=3720, NPU_PLATFORM=4000 or NPU_PLATFORM=5010."
        "npu_compiler_elf, vpux_headers/platform.hpp";
    UNSUPPORTED_VERSION Unsupported Error Chipless "npu-unsupported-version" "the program follows an ABI that is not known"
        "Two notes say which versions the program follows: that of the loader's ABI (major 1 is known) and that of the mapped inference (major 11 is known, for NPU3720 major 7). A new major number means that structures have changed."
        "Compile the model with a compiler of the known ABI."
        "npu_compiler_elf version rule: major equal, minor not larger";
    PROGRAM_VERSION Fault Error Format "program-version" "the versions of the mapped inference disagree"
        "The API version stands in note.MappedInferenceVersion and in both structures of program.mapped_inference; the runtime refuses a program in which they differ."
        "Compile the model again."
        "NPU firmware headers: vpu_nnrt_api_40xx.h, vpu_nnrt_wlm.h";
    RELOCATION_SECTION Fault Error Format "relocation-section" "a relocation section has no symbol table or no target"
        "sh_link is the symbol table, sh_info the section to patch (with the flag INFO_LINK), which must be loaded and have bytes."
        "Compile the model again."
        "npu_compiler_elf, vpux_elf/types/vpu_extensions.hpp and vpux_loader.cpp";
    RELOCATION_SYMBOL Fault Error Format "relocation-symbol" "a relocation's symbol has no address"
        "The symbol must exist in the table and belong to a section that is loaded, or carry a fixed on-chip address."
        "Compile the model again."
        "npu_compiler_elf, vpux_elf/types/vpu_extensions.hpp and vpux_loader.cpp";
    RELOCATION_OFFSET Fault Error Format "relocation-offset" "a relocation patches bytes beyond its target section"
        "r_offset plus the bytes that the kind of relocation patches must lie inside the section."
        "Compile the model again."
        "npu_compiler_elf, vpux_elf/types/vpu_extensions.hpp and vpux_loader.cpp";
    RELOCATION_KIND Fault Error Format "relocation-kind" "a relocation is of an unknown kind"
        "NPU relocations are numbered 0 to 28 and 1011 to 1013. The compiler writes only R_VPU_64 and R_VPU_32 for NPU4000."
        "Compile the model again."
        "npu_compiler_elf, vpux_elf/types/vpu_extensions.hpp and vpux_loader.cpp";
    RELOCATION_UNSUPPORTED Unsupported Error Chipless "relocation-unsupported" "a relocation needs what only another chip or a running driver has"
        "Kinds that count slots of the runtime's own symbols or spread addresses over tiles belong to NPU3720, others to NPU5; R_VPU_DMA_TASK_* compute descriptors from strides that are known only at the inference."
        "Compile for NPU4000 and with static shapes and strides."
        "npu_compiler_elf, vpux_elf/types/vpu_extensions.hpp and vpux_loader.cpp";
    RELOCATION_OVERFLOW Fault Error Format "relocation-overflow" "a relocated value does not fit its field"
        "R_VPU_32 fields hold addresses below 4 GiB; no address can be negative or beyond 2^64."
        "Compile the model again; the addend is probably damaged."
        "npu_compiler_elf, vpux_elf/types/vpu_extensions.hpp and vpux_loader.cpp";
    RELOCATION_TWICE Fault Error Format "relocation-twice" "two relocations write different values to the same bytes"
        "R_VPU_64 and R_VPU_32 replace what is there: of two different values for the same bytes one is lost, and the field that it was meant for keeps its old value. The same value twice is no fault."
        "Compile the model again."
        "npu_compiler_elf, vpux_elf/types/vpu_extensions.hpp and vpux_loader.cpp";
    PROGRAM_ENTRY Fault Error Format "program-entry" "the program does not have exactly one entry"
        "A symbol of type 10 (VPU_STT_ENTRY) names the mapped inference, from which the runtime finds everything else."
        "Compile the model again."
        "NPU firmware headers: vpu_nnrt_api_40xx.h, vpu_nnrt_wlm.h";
    PROGRAM_RECORD_SIZE Fault Error Format "program-record-size" "a section does not consist of whole records"
        "Task sections are arrays: DMA descriptors of 224 bytes, DPU invariants of 352 and variants of 224, SHAVE ranges of 40 and invocations of 96, barriers of 24, work items of 64, the bootstrap list of 4."
        "Compile the model again."
        "NPU firmware headers: vpu_nnrt_api_40xx.h, vpu_nnrt_wlm.h";
    PROGRAM_TASK_COUNT Fault Error Format "program-task-count" "the mapped inference counts other tasks than the section holds"
        "Every list of tasks is referred to by address and count; the count must be that of the section's records."
        "Compile the model again."
        "NPU firmware headers: vpu_nnrt_api_40xx.h, vpu_nnrt_wlm.h";
    PROGRAM_REFERENCE Fault Error Format "program-reference" "a reference of the mapped inference does not lead to its section"
        "The mapped inference refers to task lists, barriers, work items and configuration by relocated addresses; each must be the start of the section of that name, and the structure must be whole."
        "Compile the model again; a relocation of program.mapped_inference is probably missing."
        "NPU firmware headers: vpu_nnrt_api_40xx.h, vpu_nnrt_wlm.h";
    PROGRAM_INTERFACE Fault Error Format "program-interface" "an input or output has no memory of its size"
        "The network's description lists inputs and outputs in the order of the sections io.NetworkInput.N, io.NetworkOutput.N and io.ProfilingOutput.N; each section must exist and hold its tensor."
        "Compile the model again."
        "npu_compiler_elf: metadata_primitives.hpp, serial_struct_base.hpp";
    PROGRAM_INTERFACE_SIZE Departure Warning Writers "program-interface-size" "two places of the file give an input or output different sizes"
        "The network's description gives the shape of each input and output, its symbol the size in bytes. Compilers write the same; the driver may believe either."
        "Compile the model again."
        "npu_compiler_elf: metadata_primitives.hpp; every program at hand";
    PROGRAM_BARRIER_INDEX Fault Error Format "program-barrier-index" "a barrier number is beyond the barriers of the program"
        "program.bootstrap, final_barrier and next_same_id are indices into program.managedBarrier; next_same_id leads to a later use of the same physical barrier."
        "Compile the model again."
        "NPU firmware headers: vpu_nnrt_api_40xx.h, vpu_nnrt_wlm.h";
    PROGRAM_WORK_ITEM_RANGE Fault Error Format "program-work-item-range" "work items are enqueued that do not exist"
        "A barrier that retires enqueues enqueue_count work items from work_item_idx; the start enqueues the first bootstrap_workitems_count. Both must lie inside program.workItem."
        "Compile the model again."
        "NPU firmware headers: vpu_nnrt_api_40xx.h, vpu_nnrt_wlm.h";
    PROGRAM_WORK_ITEM_KIND Fault Error Format "program-work-item-kind" "a work item is for an engine that the chip does not have"
        "A work item names the kind of engine (0 DPU, 1 DMA, 2 SHAVE, 3 media, 4 DPU auto), its number and, for DMA, the direction (0 from DDR, 1 from CMX)."
        "Compile the model again."
        "NPU firmware headers: vpu_nnrt_api_40xx.h, vpu_nnrt_wlm.h";
    PROGRAM_WORK_ITEM_ADDRESS Fault Error Format "program-work-item-address" "a work item does not point to a descriptor of its engine"
        "DMA work items point to a descriptor in the task list of that engine and direction; DPU and SHAVE work items point into the CMX of their own tile."
        "Compile the model again."
        "NPU firmware headers: vpu_nnrt_api_40xx.h, vpu_nnrt_wlm.h";
}
