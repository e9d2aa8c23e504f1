//! The server as a client sees it, and fixes as files see them.

mod any_text;
mod client;
mod dfg;
mod fixes;
mod others;
mod protocol;
