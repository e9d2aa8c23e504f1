//! Rules about instructions that start descriptors, and about functions.

chipless_model::rules! {
    TRIGGER_QUEUE Fault Error Format "neff-trigger-queue" "an instruction starts transfers of a queue set that does not exist"
        "PSEUDO_DMA_TRIGGER names a queue set of def.json, or an instance of one."
        "Compile again: instructions and def.json do not belong together."
        "NEFF specification, queue and instance_name; quoted instruction headers";
    TRIGGER_ID Fault Error Format "neff-trigger-id" "an instruction starts descriptors that do not exist"
        "The id of a PSEUDO_DMA_TRIGGER is that of entries of the engine's own file, of the queue set that it names, in the function that it stands in."
        "Compile again: instructions and engine file do not belong together."
        "NEFF specification, id; quoted instruction headers";
    TRIGGER_COUNT Unsupported Warning Chipless "neff-trigger-count" "an instruction starts more transfers than are left"
        "A PSEUDO_DMA_TRIGGER that counts is taken to start the next so many items of desc of its queue set; that reading is assumed."
        "None: a functional run stops there."
        "assumed";
    TRIGGER_FORM Unsupported Warning Chipless "neff-trigger-form" "the form of a trigger is not supported"
        "The word at 0x2c of PSEUDO_DMA_TRIGGER says whether an id or a count follows; other forms have no public layout."
        "None: a functional run stops there; --timing-only goes on."
        "quoted instruction headers";
    TRIGGER_OWNER Fault Warning Format "neff-trigger-owner" "an engine starts transfers of a queue set that another one owns"
        "The owner of a queue set is the engine whose instructions start its transfers."
        "Correct owner, or move the instruction."
        "NEFF specification, owner";
    TRIGGER_INSTANCE Departure Warning Chipless "neff-trigger-instance" "an instruction starts transfers of an instance that is not current"
        "PSEUDO_DMA_SWAP_QUEUE_SET makes an instance of a queue set current; the rings of the others are not in place."
        "Swap the instance in before it is used."
        "assumed";
    NOT_TRIGGERED Departure Warning Chipless "neff-not-triggered" "no instruction starts a descriptor"
        "Other descriptors of the program are started by instructions; this one is not, so it never moves."
        "Start it, or leave it out."
        "NEFF specification, id";
    SWAP_INSTANCE Fault Error Format "neff-swap-instance" "an instruction swaps to an instance that does not exist"
        "PSEUDO_DMA_SWAP_QUEUE_SET names an instance in queue_instances of a queue set."
        "Compile again: instructions and def.json do not belong together."
        "NEFF specification, queue_instances";
    FUNCTION_TWICE Fault Warning Format "neff-function-twice" "two functions have one name"
        "Calls and function_start name a function; with two of one name it is not clear which."
        "Rename one."
        "NEFF specification, function_start";
    FUNCTION_CALLED Fault Warning Format "neff-function-called" "a function is called that does not exist, or too deep"
        "PSEUDO_FUNCTION_CALL names a function that PSEUDO_FUNCTION_BEGIN begins. How calls are encoded is assumed."
        "Compile again."
        "assumed";
}
