//! What keeps a schedule from being run.

chipless_model::rules! {
    NOT_LOWERED Unsupported Error Chipless "gemini-not-lowered" "the schedule cannot be made to run"
        "The schedule has more tasks than the limit, numbers without which nothing can run, or a transfer of which it does not say how its bytes lie."
        "The other findings of `check` tell more; `--limit tasks=N` raises the limit."
        "Chipless";
    DATA Fault Error Format "gemini-weights-do-not-fit" "weights do not fit the schedule and its network"
        "A layer's arrays have another shape than the front-end file says or numbers that its type does not have, or the schedule moves another number of bytes."
        "Give the front-end file and the arrays from which the schedule was made."
        "Front-end IR; scheduler IR format description";
}
