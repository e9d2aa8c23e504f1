//! AWS NEFF programs for Trainium and Inferentia.
