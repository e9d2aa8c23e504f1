use super::*;
use crate::tables::{DraftFunction, DraftFunctions};

/// Squares: an octave of two segments from 1 on, a line below and a constant above; the same for both signs, or turned.
fn set(symmetric: Option<bool>) -> DraftFunctions {
    let square = |x: f32| [x * x, 2.0 * x, 1.0, 0.0, x];
    DraftFunctions {
        name: "curves".to_owned(),
        segments: vec![
            [0.0, 1.0, 0.0, 0.0, 0.0],
            square(1.25),
            square(1.75),
            [9.0, 0.0, 0.0, 0.0, 0.0],
        ],
        control: vec![(1, 1)],
        functions: vec![DraftFunction {
            name: "curve".to_owned(),
            id: 5,
            octaves: (0, 0),
            control: [0, 0],
            small: [0, 0],
            large: [3, 3],
            zero: -1.0,
            nan: 7.0,
            infinity: [8.0, -8.0],
            symmetric,
        }],
    }
}

fn read(set: &DraftFunctions) -> Result<Function, String> {
    let files = DraftFunctions::files(std::slice::from_ref(set));
    let file = |suffix: &str| {
        &files
            .iter()
            .find(|(name, _)| name.ends_with(suffix))
            .expect("file")
            .1[..]
    };
    let metadata: Metadata = serde_json::from_slice(file("curves.json")).expect("metadata");
    let records = Records::new(file("_bkt.bin"), file("_ctrl.bin"), metadata.ctl_entry_cnt)?;
    records.function(&metadata.profile_meta_data[0])
}

#[test]
fn numbers_find_their_segment() {
    let f = read(&set(None)).expect("sound");
    for (x, y) in [
        (0.5, 0.5),
        (1.0, 1.0),
        (1.5, 2.25),
        (1.999, 3.996_001),
        (2.0, 9.0),
        (1e30, 9.0),
        (1e-42, 1e-42),
    ] {
        assert!((f.at(x) - y).abs() <= 1e-6 * y, "{x}: {}", f.at(x));
    }
    // A square's cubic is exact on the other side too.
    assert_eq!((f.at(-0.5), f.at(-2.0)), (-0.5, 9.0));
    assert_eq!((f.at(0.0), f.at(-0.0), f.at(f32::NAN)), (-1.0, -1.0, 7.0));
    assert_eq!((f.at(f32::INFINITY), f.at(f32::NEG_INFINITY)), (8.0, -8.0));
}

#[test]
fn one_sign_folds_onto_the_other() {
    let (even, odd) = (
        read(&set(Some(false))).expect("sound"),
        read(&set(Some(true))).expect("sound"),
    );
    assert_eq!((even.at(-1.5), even.at(1.5)), (2.25, 2.25));
    assert_eq!((odd.at(-1.5), odd.at(1.5)), (-2.25, 2.25));
    assert!(!even.agrees_with(&odd) && even.agrees_with(&even.clone()));
}

#[test]
fn what_leads_nowhere_is_no_function() {
    let fault = |change: &dyn Fn(&mut DraftFunctions)| {
        let mut set = set(None);
        change(&mut set);
        read(&set).expect_err("a fault")
    };
    assert!(fault(&|set| set.control[0] = (3, 1)).contains("segment 4 of 4"));
    assert!(fault(&|set| set.functions[0].large = [9, 9]).contains("segment 9 of 4"));
    assert!(fault(&|set| set.functions[0].control = [1, 0]).contains("control word 1 of 1"));
    assert!(fault(&|set| set.functions[0].octaves = (0, 1)).contains("control word 1 of 1"));
    assert!(fault(&|set| set.control[0] = (0, 24)).contains("shift and size"));
}
