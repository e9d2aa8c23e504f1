//! Every fixture: its text assembles to its file, and the file reads as what the text says.

use chipless_model::{Limits, Severity};
use chipless_neuron::pack::{pack, unpack};
use chipless_neuron::{Container, Neff, info, lint};
use chipless_neuron_assembler::assemble;
use std::path::{Path, PathBuf};

fn fixtures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures/neuron");
    let entries =
        std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut fixtures: Vec<PathBuf> = entries
        .map(|e| e.expect("readable").path())
        .filter(|p| p.join("program.asm").exists())
        .collect();
    fixtures.sort();
    assert!(fixtures.len() >= 12, "only {} fixtures", fixtures.len());
    fixtures
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn the_text_assembles_to_the_file() {
    let limits = Limits::default();
    for fixture in fixtures() {
        let text = String::from_utf8(read(&fixture.join("program.asm"))).expect("text");
        let made = assemble(&text)
            .unwrap_or_else(|e| panic!("{}: {e}", fixture.display()))
            .write(&limits)
            .expect("written");
        let file = read(&fixture.join("program.neff"));
        let (made, file) = (
            Container::open(&made, &limits).expect("readable"),
            Container::open(&file, &limits).expect("readable"),
        );
        // Compressed bytes may differ between versions of the compressor; what they hold may not.
        assert_eq!(
            made.tarball(),
            file.tarball(),
            "{}: assemble the fixture again",
            fixture.display()
        );
        assert_eq!(made.header.uuid, file.header.uuid);
        assert_eq!(made.header.feature_bits, file.header.feature_bits);
    }
}

#[test]
fn fixtures_are_clean_and_survive_packing() {
    let limits = Limits::default();
    for fixture in fixtures() {
        let file = read(&fixture.join("program.neff"));
        let container = Container::open(&file, &limits).expect("readable");
        let neff = Neff::read(&container, &limits).expect("readable");
        let functions = fixture.ends_with("instances_and_functions");
        for finding in lint(&neff, &limits) {
            // That fixture names functions that no stream declares, as there is no public form to declare one.
            let expected = finding.rule.severity == Severity::Note
                || functions && finding.rule.code == "neff-descriptor-function";
            assert!(expected, "{}: {finding}", fixture.display());
        }
        let (members, header) = unpack(&container).expect("unpacked");
        let again = pack(
            members.iter().map(|m| (m.path, m.bytes)),
            Some(&header),
            &limits,
        )
        .expect("packed");
        assert_eq!(again, file, "{}", fixture.display());
    }
}

/// Shapes that the files declare are those of the arrays beside them.
#[test]
fn arrays_belong_to_the_interface() {
    let limits = Limits::default();
    for fixture in fixtures() {
        let file = read(&fixture.join("program.neff"));
        let container = Container::open(&file, &limits).expect("readable");
        let info = info(&Neff::read(&container, &limits).expect("readable"));
        for (side, tensors) in [("input", &info.inputs), ("output", &info.outputs)] {
            for tensor in tensors {
                // Addresses are the executor's own, so nobody can expect them.
                if fixture.ends_with("pointer") && tensor.name == "addr" {
                    continue;
                }
                let array = read(&fixture.join(format!("{side}_{}.npy", tensor.name)));
                let header = String::from_utf8_lossy(&array[10..128]).into_owned();
                let shape: Vec<String> = tensor.shape.iter().map(u64::to_string).collect();
                let comma = if shape.len() == 1 { "," } else { "" };
                assert!(
                    header.contains(&format!("'shape': ({}{comma})", shape.join(", "))),
                    "{}: {header}",
                    fixture.display()
                );
            }
        }
    }
}
