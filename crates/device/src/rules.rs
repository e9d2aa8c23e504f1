//! What can be wrong with a workload file.

chipless_model::rules! {
    SYNTAX Fault Error Format "workload-syntax" "a workload file is no YAML"
        "A workload is one YAML document. The reader stopped at the place that the finding names: a bracket or a quote that nobody closes, a tab where blanks belong, a value that is indented less than its key, a second document."
        "Mend the text at that place. JSON is YAML, so a workload may be written by a program."
        "YAML 1.2, and docs/npu-device.md";
    FIELD Fault Error Format "workload-field" "a field that workloads do not have"
        "Every mapping of a workload has a fixed set of fields. One that nobody reads would be silently without effect, so it is refused."
        "Spell the field as docs/npu-device.md has it; the finding says which known field is close."
        "docs/npu-device.md, the workload file";
    TYPE Fault Error Format "workload-type" "a value of another type or unit than its field wants"
        "Times need a unit (ps, ns, us, ms, s), rates are written `40/s`, sizes are bytes or have a unit (B, KiB, MiB, GiB, kB, MB, GB), and a mapping cannot stand where a list belongs."
        "Write the value with the unit that the finding names."
        "docs/npu-device.md, the workload file";
    MISSING Fault Error Format "workload-missing" "a field that a workload cannot do without"
        "A workload has a machine, contexts and streams; a stream has a name, a context, a program and arrivals; and arrivals end: by `duration`, or by a `count` in each stream."
        "Add the field."
        "docs/npu-device.md, the workload file";
    DUPLICATE Fault Error Format "workload-duplicate" "two things of one name"
        "Streams are named in results, in files of jobs and in directories of outputs, and fields stand once in a mapping; a second one of the same name would hide the first."
        "Give each its own name."
        "docs/npu-device.md, the workload file";
    CONTEXT Fault Error Format "workload-context" "a stream in a context that is not there"
        "A stream submits its jobs to the ring of a context, which says whose address space and which band they have. The context must be one of `contexts`."
        "Declare the context, or name one that is declared."
        "docs/npu-device.md, the workload file";
    BAND Fault Error Hardware "workload-band" "a band or a priority that the scheduler does not have"
        "The firmware interface knows four bands, idle, normal, focus and realtime, and priorities from -7 to 7 within a process."
        "Name one of the four bands, and a priority between -7 and 7."
        "linux-npu-driver, firmware/include/api/vpu_jsm_api.h";
    ARRIVALS Fault Error Format "workload-arrivals" "arrivals of no kind, of several kinds, or that make no sense"
        "A stream's arrivals are exactly one of `every`, `poisson`, `in_flight` and `at`. A period or a rate of zero, no job in flight, or a time that cannot be read make no sense."
        "Keep one kind, with a value above zero."
        "docs/npu-device.md, the workload file";
    PROGRAM Fault Error Format "workload-program" "a program that is not there or cannot be read"
        "The program of a stream is a file of any target, found from the folder of the workload, or a synthetic one. The finding says why the file cannot be used; `chipless check` tells more about it."
        "Mend the path, or the file."
        "docs/npu-device.md, the workload file";
    FIGURE Fault Error Format "workload-figure" "a figure that the machine does not have, or a value that makes no sense"
        "`set` and `what_if` override machine parameters by their keys. A cache without ways, a bandwidth of zero or a page that is no power of two cannot be simulated."
        "`chipless machine npu` lists the keys with their units."
        "docs/npu-device.md, the figures";
    MACHINE Fault Error Format "workload-machine" "a machine that is not there or cannot be read"
        "`machine` is the name of a machine that comes with Chipless and describes a device (npu4), or a machine file, found from the folder of the workload."
        "Name npu4, or write a file with `chipless machine npu --toml` and edit it."
        "docs/npu-device.md, the workload file";
    TILES Fault Error Hardware "workload-tiles" "a program on more tiles than the machine has"
        "A job of the NN engine holds its tiles alone while it runs. One that wants more than `device.tiles` could never be placed, and jobs of the copy engine take none."
        "Compile for fewer tiles, or set device.tiles."
        "The machine file, device.tiles";
    CONTEXTS Fault Error Hardware "workload-contexts" "more contexts than the device has"
        "The table of context descriptors has 256 entries (device.contexts)."
        "Put streams that belong together into one context."
        "spec/vpu4-notes.md; linux drivers/accel/ivpu/ivpu_mmu.c";
    DOORBELLS Fault Error Hardware "workload-doorbells" "more contexts with streams than doorbells"
        "A context that submits jobs has a doorbell of its own; their ids are 1 to 255 (device.doorbells)."
        "Put streams that belong together into one context."
        "linux drivers/accel/ivpu/ivpu_drv.h, IVPU_MIN_DB and IVPU_MAX_DB";
    DOORBELL_TIMES Fault Error Format "workload-doorbell-times" "a doorbell that is taken back before it is granted"
        "A context has its doorbell from `granted` until `revoked`; before, its pushes are refused, behind, its jobs are aborted."
        "Put `revoked` behind `granted`, or leave one of them out."
        "docs/npu-device.md, the ways to the device";
    AGENT Fault Error Format "workload-agent" "an agent whose traffic makes no sense"
        "An agent on the chip has exactly one of `rate` and `at`. `burst` and `working_set` belong to a rate, a path names network, cache or ddr, and a recorded trace has a time, bytes and perhaps an address on each line, in the order of the times."
        "Mend the field that the finding names."
        "docs/npu-device.md, other agents on the chip";
    SYNTHETIC Fault Error Format "workload-synthetic" "a task of a synthetic program that makes no sense"
        "A task is exactly one of compute, transfer, push and hang; `after` names tasks before it, counted from 0 with repetitions written out; paths name resources of the machine, each once; `stride` needs `repeat` and `address`."
        "Mend the task that the finding names."
        "docs/npu-device.md, synthetic programs";
}
