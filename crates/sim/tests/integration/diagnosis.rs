//! Where the first number is that is none.

use chipless_model::{ElementType, Loop, Pattern};
use chipless_sim::nonfinite_element;

#[test]
fn nan_and_infinity_are_found_in_order() {
    let numbers = [1.0, f32::MAX, f32::NAN, f32::NEG_INFINITY, -0.0];
    let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    let backwards = Pattern::new(
        16,
        4,
        [Loop {
            count: 5,
            stride: -4,
        }],
    );
    assert_eq!(
        nonfinite_element(&bytes, &backwards, ElementType::Float32),
        Some(12)
    );
    let forwards = Pattern::contiguous(0, 20);
    assert_eq!(
        nonfinite_element(&bytes, &forwards, ElementType::Float32),
        Some(8)
    );
    assert_eq!(
        nonfinite_element(&bytes, &Pattern::contiguous(0, 8), ElementType::Float32),
        None
    );
    assert_eq!(
        nonfinite_element(&bytes, &forwards, ElementType::Int32),
        None
    );
    for (element, largest, infinity) in [
        (ElementType::Float8E4M3, 0x77, 0x78),
        (ElementType::Float8E4M3Fn, 0x7e, 0x7f),
        (ElementType::Float8E5M2, 0xfb, 0xfc),
    ] {
        let one = Pattern::contiguous(0, 1);
        assert_eq!(
            nonfinite_element(&[largest], &one, element),
            None,
            "{element}"
        );
        assert_eq!(
            nonfinite_element(&[infinity], &one, element),
            Some(0),
            "{element}"
        );
    }
}
