//! What the verifier proves of every program, whatever its target: one rule for each way to fail.

chipless_model::rules! {
    MALFORMED Unsupported Error Chipless "program-malformed" "a program that names what it does not have"
        "Lowering made a program whose queues, tasks or barriers refer to something that is not there. The file may be right; Chipless is not."
        "Report it, with the file."
        "the program model: `Program::well_formed`";
    BUFFER_OVERLAP Fault Error Proof "buffer-overlap" "two buffers of one memory share bytes"
        "Each buffer has its bytes to itself; where a file lets variables share bytes, Chipless makes one buffer of them. Two buffers whose addresses and sizes overlap are written and read as if they were apart: one destroys the other."
        "Compare addresses and sizes of the two."
        "the program model: memory";
    BUFFER_BEYOND_MEMORY Fault Error Proof "buffer-beyond-memory" "a buffer exceeds its memory"
        "The memory does not have the bytes at the end of the buffer. Reading or writing them is a fault, or reaches something else. The size of the memory stands in the file or in the machine's figures (`chipless machine TARGET`)."
        "Make the buffer smaller or move it, or say which machine it is with `--machine`."
        "the program model: memory; the size is the file's or the machine's";
    BUFFER_MISALIGNED Fault Error Proof "buffer-misaligned" "a buffer breaks the alignment that its file states"
        "The file says of which number the buffer's address is a multiple, because an engine moves or computes in units of it. The address is none."
        "Move the buffer to a multiple of its alignment, or correct the alignment."
        "the program model: memory; the alignment is the file's";
    OUT_OF_BOUNDS Fault Error Proof "out-of-bounds" "a task touches bytes outside its buffer"
        "A strided access is a base, a run and loops around it; every byte of it must lie inside the buffer that it names. Beyond the end stands another tensor, another program, or nothing: the engine reads somebody else's data, overwrites it, or stops with a fault. Accesses whose bytes data decides (a gather) are only reported when no byte of their bound lies inside."
        "Compare offset, sizes and strides of the access with the size of the buffer. An end that is one step too far usually comes from a count that is one too large; a start that is too far from an address that was not relocated."
        "the program model: memory, synchronisation and accesses";
    READ_BEFORE_WRITE Fault Error Proof "read-before-write" "an output depends on bytes that nothing has written"
        "Inputs, constants and state hold bytes before the program starts; every other byte is undefined until a task has written it. The bytes named were written by no task that comes before the reader in the program's order, so that it reads what an earlier program left there, and an output or what a task does depends on them: the result differs from run to run. Undefined bytes that reach no output, such as padding that meets absent weights, are not reported."
        "Find the transfer that should fill this range. It may be missing, target another address, be too short, or lack a barrier or semaphore before this read."
        "the program model: memory, synchronisation and accesses";
    STALE_READ Fault Error Proof "stale-read" "a task reads a tensor of which a part is left over from an older one"
        "On-chip memory is used again and again. The task reads bytes of one tensor together with bytes of another one that was written over a part of the first after that had been read: the newer tensor is not complete, and what is missing still holds the old bytes. An output or an address depends on them."
        "Look for what should have written the missing part: rows from a neighbouring tile (halo regions), the last rows or channels of a workload, a transfer that is too short or goes elsewhere."
        "the program model: memory, synchronisation and accesses";
    RACE_WRITE_WRITE Fault Error Proof "race-write-write" "two tasks write the same bytes, and nothing orders them"
        "Two accesses are ordered when a chain of queue order, barriers, semaphores, events or releases leads from the end of one to the start of the other. Without it either may come last, and which bytes remain depends on timing. Strided accesses are compared byte by byte: interleaved rows do not conflict."
        "Make one of the two wait for the other, or give them different bytes."
        "the program model: memory, synchronisation and accesses";
    RACE_READ_WRITE Fault Error Proof "race-read-write" "a task reads bytes while another may write them"
        "One task reads and another writes the same bytes, and no chain of queue order, barriers, semaphores, events or releases leads from one to the other. The reader gets the bytes from before or after the write, or some of each, depending on timing. It is the usual consequence of a missing wait or signal: data used before its transfer has completed, or a slot reused before its last reader has finished. `chipless run --no-verify --order late:TASK` shows it with one of the two tasks; a run does not take the parts of a DMA transfer apart, so of several pairs only some show."
        "Make the later task wait for a barrier or semaphore that the earlier one signals when it is done."
        "the program model: memory, synchronisation and accesses";
    RACE_DUPLICATE Fault Warning Proof "race-duplicate-write" "two transfers of one kind write the same bytes, and nothing orders them"
        "Two transfers with the same operation and the same steps copy from two tiles to overlapping bytes. Compilers do that for rows that both tiles hold (halos): then both write the same values, and the order does not matter. Whether the values are the same is not proven."
        "If the rows are copies of the same data, allow this code (`--allow race-duplicate-write`). Otherwise order the two transfers."
        "the program model: memory, synchronisation and accesses";
    CONSTANT_WRITTEN Fault Error Proof "constant-written" "a task writes bytes that must not change"
        "Constants keep their bytes for every inference, and inputs belong to the host. A program that writes them works once."
        "Write to a buffer of its own, or declare the bytes as state."
        "the program model: memory, synchronisation and accesses";
    OUTPUT_NOT_WRITTEN Fault Error Proof "output-not-written" "bytes of an output are never written"
        "The host reads the whole tensor when the program is done. Bytes that no task writes hold whatever was there before."
        "Find the transfer that should write these bytes: it may be missing, too short, or target another address."
        "the program model: memory, synchronisation and accesses";
    COMPLETION_BEFORE_OUTPUT Fault Error Proof "completion-before-output" "the program may report that it is done before its output is written"
        "The host takes the outputs as soon as the completion barrier is lit. A task that writes an output must come before that: it produces the barrier, or something that produces the barrier waits for it."
        "Let the task produce the completion barrier, and raise the barrier's producer count."
        "the program model: memory, synchronisation and accesses";
    WORK_AFTER_COMPLETION Fault Warning Proof "work-after-completion" "a task may still run after the program has reported that it is done"
        "The task does not come before the completion. It writes no output, but it may still hold on-chip memory and barriers when the next inference starts."
        "Let the task, or one that waits for it, produce the completion barrier."
        "the program model: memory, synchronisation and accesses";
    PRODUCER_COUNT Fault Error Proof "barrier-producer-count" "a barrier expects another number of producers than it has"
        "A barrier is lit when as many signals came as its configuration says. With more producers configured than tasks that signal, it never lights and its waiters hang; with fewer, it lights before all of them are done, and the signal that is left over disturbs the next use of the barrier or stops the engine."
        "Set the producer count to the number of tasks that signal the barrier in this use."
        "the program model: memory, synchronisation and accesses";
    CONSUMER_COUNT Fault Error Proof "barrier-consumer-count" "a barrier expects another number of consumers than it has"
        "A barrier retires, and may be used again, when as many tasks have consumed it as its configuration says. With fewer consumers configured than there are, it retires too early: the consumer that comes last finds no configuration, or takes a count of the next use. With more, it never retires, and what its retirement releases never comes."
        "Set the consumer count to the number of tasks that consume the barrier in this use."
        "the program model: memory, synchronisation and accesses";
    UNPROGRAMMED Fault Error Proof "barrier-unprogrammed" "a task names a barrier that nobody configures"
        "A barrier without a configuration is never lit. A task that waits for it hangs with everything behind it; a signal to it is a fault."
        "Configure the barrier, or remove it from the task's waits and signals."
        "the program model: memory, synchronisation and accesses";
    REUSE Fault Error Proof "barrier-reuse" "a barrier may be used again while its previous use is not over"
        "A physical barrier serves one use after another. The hardware does not know which use a task means: a task of the next use that comes while the previous one is active passes too early or steals a count. So every producer and consumer of one use must come before every producer, consumer and waiter of the next, by an order other than this barrier's."
        "Let the task wait for something that comes after the last consumer of the previous use, or use another barrier."
        "the program model: memory, synchronisation and accesses";
    REUSE_LATE Fault Warning Proof "barrier-reuse-late" "a barrier is used again while a task that only consumes its previous use may be late"
        "A task of the next use could come while the previous use is still active, if a task that consumes the previous use and signals nothing else were held up for that long. Compilers count on such tasks, mostly transfers that fetch ahead, to be done by then. If one is not, the task passes too early. `run` takes it that they are: a task waits for the use that it means."
        "Let the task wait for something that comes after the last consumer of the previous use, or use another barrier."
        "the program model: memory, synchronisation and accesses";
    BARRIER_FAULT Fault Error Proof "barrier-fault" "a barrier is signalled against its configuration"
        "A signal came while the barrier had no configuration, or when all signals of that kind had come; or it was given more configurations than its FIFO holds."
        "Compare the counts of the use with the tasks that signal it, and the order in which configurations are pushed."
        "the program model: memory, synchronisation and accesses";
    CONFIGURATION_ORDER Fault Error Proof "barrier-configuration-order" "two configurations of one barrier may be pushed in either order"
        "The configurations of a barrier form a FIFO. Tasks that push them must be ordered, or the uses change places."
        "Push all configurations of one barrier from one queue, or order the pushes."
        "the program model: memory, synchronisation and accesses";
    NEVER_CONFIGURED Fault Error Proof "barrier-never-configured" "a configuration is never given to its barrier"
        "No task that runs pushes this configuration, and it does not stand in the FIFO at the start."
        "Push it, or remove it."
        "the program model: memory, synchronisation and accesses";
    DEADLOCK Fault Error Proof "deadlock" "the program gets stuck"
        "Nothing can move and work is left: every queue that has work waits for a condition that does not hold, and no task that could make it hold can run. On hardware the inference hangs until a watchdog resets the device."
        "Follow the tasks above in order: one of them waits for a signal that can only come after itself, or that no task gives. Remove that wait, or give the signal earlier."
        "the program model: memory, synchronisation and accesses";
    NEVER_RELEASED Fault Error Proof "never-released" "work that nothing releases"
        "Tasks run when their piece of the queue is released: before the start, by a task, or by a barrier that retires. These tasks belong to a piece that nothing releases, so that they never run."
        "Release the piece, or remove the tasks."
        "the program model: memory, synchronisation and accesses";
    RELEASED_TWICE Fault Error Proof "released-twice" "work that is released twice"
        "A piece of a queue is released a second time. Its tasks would run again, with the waits and signals of the first time."
        "Release it once."
        "the program model: memory, synchronisation and accesses";
    RELEASE_ORDER Fault Error Proof "release-order" "two pieces of one queue may be released in either order"
        "A queue takes its pieces in the order of their release. When nothing orders the two releases, the order of the work depends on timing."
        "Release both from the same place, or let one release wait for the other."
        "the program model: memory, synchronisation and accesses";
    SEMAPHORE_RANGE Fault Error Proof "semaphore-range" "a semaphore leaves its range"
        "A counter has a smallest and a largest value. A signal beyond them wraps, saturates or stops the engine."
        "Reset the semaphore, or use another one."
        "the program model: memory, synchronisation and accesses";
    EVENT_TWICE Fault Error Proof "event-set-twice" "an event or token is set while it is set"
        "An event is a flag. Setting it again loses a signal: a waiter that should see two sees one."
        "Reset the event between the two, or use another one."
        "the program model: memory, synchronisation and accesses";
    WAIT_MISSED Fault Error Proof "wait-missed" "a wait for an exact value that may be passed by"
        "The task waits until a counter equals a value. Signals that nothing orders after the task may raise the counter further before the task looks, and then the value never comes back."
        "Wait for at least the value, or order the further signals after the task."
        "the program model: memory, synchronisation and accesses";
    CONSERVATIVE Limit Warning Chipless "semaphore-order-unproven" "a semaphore whose value falls, used by tasks that nothing orders"
        "For counters that only rise every legal order of the program behaves alike, and Chipless proves races and deadlocks exactly. A counter that falls while several queues wait for it may behave differently in another order. Races are still found; that no other order gets stuck is not proven."
        "Order the tasks that lower the semaphore with those that wait for it."
        "the program model: memory, synchronisation and accesses";
    ORDER_BOUND Limit Warning Chipless "order-not-exact" "the order of signals was bounded instead of computed"
        "Semaphores with many signalling queues that depend on each other in turn needed too many rounds. The order that was used is weaker than the true one, so that a race that is reported may not exist."
        "Use a semaphore for each signalling queue."
        "the program model: memory, synchronisation and accesses";
    OVERLAP_BOUND Limit Warning Chipless "overlap-too-hard" "whether two strided accesses touch is not decided"
        "The two accesses are not ordered. Whether they have a byte in common is a bounded Diophantine equation, and deciding it took too many steps. A race is possible."
        "Order the two tasks, or simplify the strides."
        "the program model: memory, synchronisation and accesses";
}
