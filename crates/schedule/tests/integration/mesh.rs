//! Meshes that need no file.

use chipless_schedule::machine::Machine;
use chipless_schedule::mesh::{FIELDS, file, values};
use serde_json::Value;

fn keys(value: &Value, path: &str, found: &mut Vec<String>) {
    match value.as_object() {
        Some(object) => object.iter().for_each(|(name, value)| {
            let path = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}.{name}")
            };
            keys(value, &path, found);
        }),
        None => found.push(path.to_owned()),
    }
}

#[test]
fn every_key_of_a_mesh_is_explained() {
    let text = file("mesh4x4").unwrap();
    let mut found = Vec::new();
    keys(&serde_json::from_str(&text).unwrap(), "", &mut found);
    let mut explained: Vec<&str> = FIELDS.iter().map(|field| field.key).collect();
    found.sort_unstable();
    explained.sort_unstable();
    assert_eq!(found, explained);
    assert_eq!(values(&text).len(), FIELDS.len());
}

#[test]
fn a_mesh_is_as_its_name_says() {
    let (mesh, unknown) = Machine::read(&file("mesh6x2").unwrap()).unwrap();
    assert_eq!((mesh.mesh, mesh.stride), ([6, 2], 3));
    assert!((mesh.dram.0 - 12.0).abs() < 1e-9 && unknown.is_empty());
    for none in [
        "mesh",
        "mesh4",
        "mesh0x4",
        "mesh4x0",
        "mesh100x100",
        "mesh4x-4",
        "torus4x4",
        "mesh4x4.json",
    ] {
        assert_eq!(file(none), None, "{none}");
    }
}
