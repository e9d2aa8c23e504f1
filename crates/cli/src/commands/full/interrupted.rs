//! Work that the user may end early, with what was found until then.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

/// Whether the user or the system has asked the process to end (SIGINT, SIGTERM); from the first call on that does not end it by itself. Asked
/// a second time, it ends at once.
pub(super) fn interrupted() -> &'static AtomicBool {
    static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    INTERRUPTED.get_or_init(|| {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // Where it cannot be watched, a signal ends the process as always.
            let _ = flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&flag));
            let _ = flag::register(signal, Arc::clone(&flag));
        }
        flag
    })
}
