//! Schedules of every dialect through the public door.

mod faults;
mod files;
mod fixture;
mod generate;
mod hostile;
mod packed;
mod proof;
mod scheduled;
mod scheduler;
mod tilings;
