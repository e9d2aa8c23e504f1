//! What can be wrong with a `.femto` container.

chipless_model::rules! {
    FILE Fault Error Format "femto-file" "a .femto container that cannot be read"
        "The container starts with a magic, a byte order and the size of its chunks; names are UTF-8; sequences name vectors of the file, each on the right side. A field that says otherwise has been damaged."
        "Copy the file again, or export the model again."
        "containers that femtodriver 2.6 writes and reads";
    PART Unsupported Error Chipless "femto-part" "the chip is not known"
        "The container names its chip by a number: 1 for SPU-001, 3 and 4 for the two versions of SPU-150. Memories of another one are not known, so that nothing can be said of the addresses."
        ""
        "containers that femtodriver 2.6 writes";
    SIZE Fault Error Format "femto-size" "a part of the file does not have its stated size"
        "Sections follow each other without gaps, records have the size of what they list, and the configuration counts the pages that follow."
        "Copy the file again, or export the model again."
        "containers that femtodriver 2.6 writes and reads";
    PAGE Fault Error Hardware "femto-page" "a page of memory contents does not fit the memories of the chip"
        "A page brings up to 62 words of 32 bits to an address of a memory of one core. It must lie in one bank, aligned to words and apart from all other pages; pages are numbered one after the other."
        "Export the model again for this chip."
        "memory maps of SPU-001 and SPU-150 as femtodriver 2.6 has them";
    CORE Fault Error Hardware "femto-core" "a core that the chip lacks, twice, in a state that does not exist, or with contents and not listed"
        "Each core is listed once with its status: 0 off, 1 on, 2 sleeping. Pages go to cores that are listed."
        "Export the model again for this chip."
        "SPU-001 and SPU-150 as femtodriver 2.6 describes them";
    BANK Fault Error Hardware "femto-bank" "a memory bank that the chip lacks, twice, or in a state that does not exist"
        "Data memories are numbered 0x00, 0x04, …, tables 0x20, 0x24, …, the program 0x30, as many as a core has; states are 0 to 5."
        "Export the model again for this chip."
        "SPU-001 and SPU-150 as femtodriver 2.6 describes them";
    KEY Fault Error Hardware "femto-key" "a key of the encryption that the chip lacks"
        "There are 32 keys, 0 to 31; 32 says that nothing is encrypted."
        ""
        "SPU-001 and SPU-150 as femtodriver 2.6 describes them";
    VECTOR Fault Error Hardware "femto-vector" "a vector that the chip cannot take or give"
        "A vector goes to or comes from a core of the chip, starts a program within the program memory, is padded to at least its length, and has elements of 8 or 16 bits."
        "Export the model again for this chip."
        "SPU-001 and SPU-150 as femtodriver 2.6 describes them";
    CLOCK Departure Warning Hardware "femto-clock" "a clock above the highest that is known of the chip"
        "The vendor's driver warns of it too, and ships files with it."
        ""
        "SPU-001 and SPU-150 as femtodriver 2.6 describes them";
}
