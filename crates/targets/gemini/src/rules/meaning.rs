//! Rules about what a schedule computes.

chipless_model::rules! {
    DEADLOCK Fault Error Proof "gemini-deadlock" "work waits for itself"
        "Each core works in the order of its list, the accesses of DRAM come in the order of their queue, a tensor comes when its space is free, and a workload starts when what it reads is there. Following who must come before whom leads round in a circle."
        "Change the order of the workloads, or of the DRAM queue."
        "Scheduler IR format description, workload_id, transfer_id and tensor_order";
    INPUT Fault Error Proof "gemini-input" "a workload reads other elements than its layer needs"
        "Every element is followed from DRAM and from the workload that makes it to the one that reads it. What a workload reads must be exactly the elements that its operation needs for its box. A result that rests on others is wrong, and it reaches an output."
        "Follow the tensor that is named: its sources, their boxes, the cores that its transfers go to, and the snapshots in which it stands."
        "Proof over the schedule and its network";
    WEIGHTS Fault Error Proof "gemini-weights" "a workload computes with other weights than its own"
        "Its weights are those of its layer and of its output channels. They must be in the weight buffer, from the load or the tensor in L2 that brings them, and nothing else may lie there until the last use."
        "Mend the transfer of the weights, or their entry in the weight buffer."
        "Proof over the schedule and its network";
    RACE Fault Error Proof "gemini-race" "what is read may be overwritten, or may not be there yet"
        "In some order that the schedule allows, bytes of L2 are written between the arrival of what a workload, store or transfer reads there and the read, or the read does not wait for the arrival."
        "Move one of the tensors, or change the snapshots or the DRAM queue so that one waits for the other."
        "Proof over the schedule";
    OUTPUT Fault Error Proof "gemini-output" "an output of the network does not end in DRAM"
        "At the end every element of every layer that feeds an output must lie in its place in DRAM. A store takes place where the piece names DRAM, `in` has its transfer, and a tensor of type ofmap holds it until `start_send`."
        "Add what the store lacks, or the workload that makes the element."
        "Proof over the schedule and its network";
    UNUSED Fault Warning Proof "gemini-wrong-unused" "a workload reads other elements than it needs, and nobody uses its result"
        "The result is wrong, and no output depends on it."
        "Mend what it reads, or remove the workload."
        "Proof over the schedule and its network";
    UNSUPPORTED Unsupported Error Chipless "gemini-operation" "an operation that Chipless does not know"
        "Nobody can say what a workload of this layer must read and make."
        "Leave out --network to check the rest."
        "Chipless";
    WORK Limit Error Chipless "gemini-proof-limit" "the proof would take too long"
        "Too many transfers that nobody waits for share bytes with too many tensors."
        "Make workloads wait for what is loaded."
        "Chipless";
}
