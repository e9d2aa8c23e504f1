//! The table of operations.

use chipless_spu::fqir::OPERATIONS;

#[test]
fn the_registry_has_58_operations_of_which_53_can_be_executed() {
    assert!(OPERATIONS.is_sorted() && OPERATIONS.len() == 58);
    assert_eq!(
        OPERATIONS.iter().filter(|(_, executed)| *executed).count(),
        53
    );
}
