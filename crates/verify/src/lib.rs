//! Proves a program safe before it runs, or says why it is not.
//!
//! [`verify`] takes a [`Program`] and gives a [`Verified`], the proof, or findings. It executes nothing and reads no data:
//! what it says holds for every legal order of the program and for all inputs. This page is the definition; the modules
//! follow it.
//!
//! # Points and order
//!
//! A task `t` has three points: its start `s(t)`, the point `r(t)` at which it has taken its sources, and its completion
//! `c(t)`, with `s(t) ≤ r(t) ≤ c(t)`. A signal of `t` happens at `r(t)` or `c(t)`. *Happens-before*, `≤`, is the
//! smallest order of points in which
//!
//! 1. **queue**: `c(t) ≤ s(u)` where `u` follows `t` in a piece, or begins the piece after the one that `t` ends, on a queue
//!    with one server;
//! 2. **release**: `x ≤ s(t)` where `t` begins a piece that is released by a signal at `x`, or by a retirement that `x` is part of;
//! 3. **barrier**: `x ≤ s(t)` where `t` waits for use `g` of a barrier and `x` is a signal that produces `g`, or part of the
//!    *activation* of `g`: the signal that pushed the configuration `g`, and the *retirement* of use `g − 1`, which consists of all
//!    producers, all consumers and the activation of `g − 1`;
//! 4. **counter**: `x ≤ s(t)` where `t` waits for a value of a counter that cannot be reached
//!    without what comes after `x` (below).
//!
//! A queue with `n` *lanes* ([`PieceOrder::Lanes`](chipless_model::PieceOrder::Lanes)) is `n` queues, each of which does a part of every task: `s(t)` is the start of its
//! first part, `c(t)` the end of its last, and each part gives a signal its share. So rule 1 gives `c(t) ≤ c(u)` there, not `c(t) ≤ s(u)`, but within a
//! piece; and a wait needs all of `t` where it needs the part of one lane, since no lane is unlike another.
//!
//! # Which use of a barrier
//!
//! Rule 3 speaks of the use `g` that a task means, and hardware knows no such thing: a task that waits sees whatever use is
//! active. The verifier takes one legal order, the *reference order*, notes the use that each wait and signal met there, and proves that
//! it is the same in every legal order. For every task `t` that met use `g`, with `≤ₜ` the order without the wait in question:
//!
//! - every producer and consumer of use `g − 1` is `≤ₜ s(t)` (or `≤` its signal, for producers and consumers of `g`), so that `t` does not come too early;
//! - `t` consumes `g`, or comes before somebody who does, so that it does not come too late.
//!
//! Suppose some legal order met another use, and look at the first wait or signal that does: everything before it went as in the reference
//! order, so `≤ₜ` holds for it, and it met the same use: a contradiction. What cannot be proved so is reported
//! (`barrier-reuse`). Where a task waits for several barriers, each is proved with the help of those proved already.
//!
//! Some compilers count on tasks that only consume a barrier, and signal nothing, to be done before the barrier is used again. Their
//! programs say which use each wait means (`Program::meant`), here and when they run; where only such a task is not ordered
//! before the next use, that is said (`barrier-reuse-late`), and the use is taken for the one that is meant.
//!
//! # What a wait for a counter needs
//!
//! For a wait of `t` for `value ≥ n`:
//!
//! ```text
//! x ≤ s(t)  ⇔  initial + Σ { amount(y) : y rises, not x ≤ y, not s(t) ≤ y } − Σ { amount(z) : z falls, z ≤ s(t) }  <  n
//! ```
//!
//! for every point `x`, be it a signal to this counter or not. This is an equation for `≤`. For counters that only rise its *greatest* solution is exact: a point `w` does not need `x`
//! if and only if it is reached when `x` is left out, and the points that are reached are the least fixed point of going on as far as one can. The
//! verifier starts from the reference order, which orders too much, and computes the right hand side until nothing changes.
//! A wait for an exact value is a wait for at least and at most that value (rises and falls change their roles), and it is reported where signals that
//! nothing orders after `t` may pass the value (`wait-missed`). Where counters fall and several queues compete, other orders may get stuck
//! where the reference order does not: this is reported as not proven (`semaphore-order-unproven`), and the order that is used contains only what every legal order has.
//!
//! # Deadlock
//!
//! In programs whose counters only rise and whose barriers pass the proof above, what can happen stays possible until it happens. So all
//! legal orders that cannot be continued consist of the same tasks, and the reference order shows whether these are all of them.
//!
//! # Memory
//!
//! An access of `t` takes place from `s(t)` to `r(t)` if it reads and from `s(t)` to `c(t)` if it writes. Two accesses of different tasks
//! *race* if they have a byte in common, one of them writes, and neither ends at or before the start of the other. Strided patterns are
//! compared exactly, see the module `overlap`. Accesses that data decides are bounds: they are reported only
//! when no byte of them is inside the buffer, and they count as written for the tasks that read after them.
//!
//! Buffers lie inside their memories, at multiples of their alignments, and no two of them share a byte.
//!
//! A byte that no task before has written in the reference order (one that is not before in every order races), and that has no value from the
//! beginning, is in *doubt*. So are *remnants*, where a program says which tasks make a tensor together: bytes of a tensor that are read along with
//! those of another one which has taken its place in part (module `remnants`). Doubt is followed from task to task by what kernels say of their
//! dependences, and is a fault where it reaches an output, state, an address or an index (module `doubt`). Of two writes of the same bytes that nothing
//! orders and that look like duplicates, either may come last: what is in doubt in one of them stays so.
//!
//! # Clocks
//!
//! Every queue with one server is a thread, and so is every piece of other queues, as far as releases do not chain them. What comes before a point is the set of points
//! that a vector clock names, one number for each thread. All accesses of a task to one buffer in one direction are a *footprint*; equal
//! footprints are one, and what is known of its bytes (inside the buffer, written, without holes) is found out once. Shadow cells hold, for every range of bytes, the accesses that a later one can race
//! with; an access that covers earlier ones and comes after them replaces them. So the cost is near linear in the number of accesses.

mod access;
mod barrier;
mod bounds;
mod cells;
mod clock;
mod doubt;
mod filled;
mod findings;
mod footprint;
mod layout;
mod marks;
mod memory;
mod mends;
mod needs;
mod order;
mod overlap;
mod pending;
mod protocol;
mod race;
mod remnants;
mod replay;
mod rules;
mod semaphore;
mod shadow;
mod stuck;
mod usage;
mod window;
mod writes;
mod written;

pub use chipless_sim::Verified;
pub use mends::advise;
pub use rules::ALL as RULES;

use chipless_model::{Evidence, Finding, Place, Program};
use findings::Findings;
use footprint::Accesses;
use order::End;
use replay::find_order;

/// Tasks of a program from which on a second thread pays.
pub const LARGE: usize = 4096;

/// Proves a program safe. The error holds every finding, errors first; warnings alone do not stop a program.
pub fn verify<'p, 'a>(program: &'p Program<'a>) -> Result<Verified<'p, 'a>, Vec<Finding>> {
    let mut findings = Findings::default();
    if let Err(what) = program.well_formed() {
        return Err(vec![rules::MALFORMED.at(Place::file(), what)]);
    }
    // What a target proves of the bytes may follow from a race, which says more; other errors leave it open what the program does.
    let mut proven = 0;
    for finding in program.lint.iter().flat_map(|lint| lint.check(program)) {
        let before = findings.errors;
        let is_proof = finding.rule.evidence == Evidence::Proof;
        findings.add(finding.rule, (0, 0, 0), || finding);
        if is_proof {
            proven += findings.errors - before;
        }
    }
    layout::check(program, &mut findings);
    let find_order = || find_order(program);
    let collect_accesses = || Accesses::collect(program);
    let ((order, found), accesses) = if program.tasks.len() < LARGE {
        (find_order(), collect_accesses())
    } else {
        rayon::join(find_order, collect_accesses)
    };
    protocol::check(program, order.end == End::Stuck, &mut findings);
    let counts_agree = findings.errors == proven;
    bounds::buffers(program, &accesses, &mut findings);
    bounds::tensors(program, &accesses, &mut findings);
    let is_ordered = !found.has_errors();
    // Where counts do not add up, what the signals did in the end follows from that.
    if counts_agree || !is_ordered {
        findings.append(found);
    }
    stuck::check(program, &order, &mut findings);
    if is_ordered && counts_agree {
        memory::check(
            program,
            &accesses,
            &order,
            order.end == End::Done,
            &mut findings,
        );
    }
    let is_safe = !findings.has_errors() && order.end == End::Done;
    let findings = findings.finish();
    if is_safe {
        Ok(Verified::proven(program, findings))
    } else {
        Err(findings)
    }
}
