//! Places of the packed file are lines of the text.

use chipless_model::Place;
use chipless_neuron::Engine;
use chipless_neuron::stream::SLOT_BYTES;
use chipless_neuron_assembler::assemble_with_lines;

/// The line that says what stands at a place.
fn line(text: &str, found: Option<(u32, u32)>) -> Option<&str> {
    let (line, _) = found?;
    text.lines().nth(line as usize - 1).map(str::trim_start)
}

#[test]
fn instructions_transfers_and_declarations_of_every_fixture_are_found() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/neuron");
    let (mut instructions, mut transfers, mut variables) = (0, 0, 0);
    for entry in std::fs::read_dir(folder).expect("fixtures") {
        let path = entry.expect("an entry").path().join("program.asm");
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        let (draft, lines) = assemble_with_lines(&text).expect("a program");
        for subgraph in &draft.subgraphs {
            let at = |file: &str, item: String| {
                Place::file()
                    .in_part(format!("{}/{file}", subgraph.name))
                    .at(item)
            };
            for (engine, work) in Engine::ALL.iter().zip(&subgraph.engines) {
                for (index, slot) in work.slots.iter().enumerate() {
                    let place = Place::bytes((index * SLOT_BYTES) as u64, SLOT_BYTES as u64)
                        .in_part(format!("{}/{}.bin", subgraph.name, engine.file_name()));
                    let name = slot.to_string();
                    let name = name.split(' ').next().expect("a name");
                    let found = line(&text, lines.of(&place)).expect("a line");
                    assert!(found.starts_with(name), "{}: {found}", path.display());
                    instructions += 1;
                }
                for (index, entry) in work.dma.iter().enumerate() {
                    let file = format!("{}.json", engine.file_name());
                    let place = at(&file, format!("/dma/{index}/queue"));
                    let found = line(&text, lines.of(&place)).expect("a line");
                    assert!(found.starts_with("dma "), "{}: {found}", path.display());
                    for (at_entry, transfer) in entry.descriptors.iter().enumerate() {
                        let place = at(&file, format!("/dma/{index}/desc/{at_entry}/to"));
                        let found = line(&text, lines.of(&place)).expect("a line");
                        let operation = transfer.operation.name();
                        assert!(found.starts_with(operation), "{}: {found}", path.display());
                        transfers += 1;
                    }
                }
            }
            for name in subgraph.variables.keys() {
                let found = lines.of(&at("def.json", format!("/var/{name}/type")));
                let found = line(&text, found).expect("a line");
                assert!(
                    found.split_whitespace().nth(1) == Some(name),
                    "{}: {found}",
                    path.display()
                );
                variables += 1;
            }
        }
    }
    assert!(
        instructions > 150 && transfers > 20 && variables > 100,
        "{instructions} {transfers} {variables}"
    );
}

#[test]
fn members_that_are_given_as_text_have_their_own_lines() {
    let text = "member neff.json text\n|{\n|  \"nodes\": 1\n|}\nstream sg00/PE.bin\nNOP\n|00\n";
    let (_, lines) = assemble_with_lines(text).expect("members");
    let place = Place::line(2, 12).in_part("neff.json");
    assert_eq!(lines.of(&place), Some((3, 13)));
    let place = |offset| Place::bytes(offset, 1).in_part("sg00/PE.bin");
    assert_eq!(lines.of(&place(10)), Some((6, 1)));
    assert_eq!(lines.of(&place(64)), Some((7, 1)));
    assert_eq!(lines.of(&Place::file()), None);
    assert_eq!(lines.of(&Place::file().in_part("info.json")), None);
}
