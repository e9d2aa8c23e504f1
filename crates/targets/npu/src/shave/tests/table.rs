use super::*;

#[test]
fn builtin_table_names_every_operation() {
    let rows: toml::Table = include_str!("../kernels.toml")
        .parse()
        .expect("the table is TOML");
    let rows = rows["kernels"].as_array().expect("an array");
    assert_eq!(rows.len(), 96);
    let mut named: Vec<&str> = rows
        .iter()
        .map(|row| row["operation"].as_str().expect("a name"))
        .collect();
    named.sort_unstable();
    named.dedup();
    let operations: Vec<&str> = Operation::ALL
        .iter()
        .map(|operation| operation.name())
        .collect();
    assert_eq!(named, operations);
    let mut table = KernelTable::builtin();
    table
        .extend_from_toml(include_str!("../kernels.toml"))
        .expect("the table of Chipless is of its own form");
}

#[test]
fn names_are_parsed_back() {
    for operation in Operation::ALL {
        assert_eq!(operation.name().parse(), Ok(*operation));
    }
}

/// SHA-1 of "abc" is a9993e364706816aba3e25717850c26c9cd0d89d (FIPS 180-2).
#[test]
fn identifies_by_hash_and_size() {
    let mut table = KernelTable::builtin();
    let unknown = table.identify(b"abc");
    assert_eq!(
        (
            unknown.hash.to_string().as_str(),
            unknown.size,
            unknown.operation
        ),
        ("a9993e36", 3, None)
    );

    table
        .insert_entry("A9993E364706816aba3e25717850c26c9cd0d89d = tanh")
        .expect("an entry");
    assert_eq!(
        table.identify(b"abc").operation,
        Some((Operation::Tanh, Evidence::User))
    );

    table
        .extend_from_toml(
            "kernels = [{ sha1 = 'a9993e36', size = 4, operation = 'sin', evidence = 'source' }]",
        )
        .expect("a table");
    assert_eq!(table.identify(b"abc").operation, None, "another size");
    table
        .extend_from_toml(
            "[[kernels]]\nsha1 = 'a9993e36'\nsize = 3\noperation = 'sin'\nevidence = 'source'",
        )
        .expect("a table");
    assert_eq!(
        table.identify(b"abc").operation,
        Some((Operation::Sin, Evidence::Source))
    );
}

#[test]
fn refuses_what_it_does_not_understand() {
    let mut table = KernelTable::builtin();
    let error = table
        .insert("7668bb1c", "sigmod")
        .expect_err("no such operation")
        .to_string();
    assert_eq!(
        error,
        "kernel 7668bb1c: no SHAVE operation is named `sigmod`; did you mean `sigmoid`?"
    );
    let error = table
        .insert_entry("7668bb1c=Hard_Swish")
        .expect_err("not the name")
        .to_string();
    assert!(error.contains("did you mean `hard-swish`"), "{error}");
    assert_eq!(
        table
            .insert("12345678", "xyzzy")
            .expect_err("nothing is close")
            .to_string(),
        "kernel 12345678: no SHAVE operation is named `xyzzy`"
    );
    for hash in ["7668bb1", "7668bb1g", "", &"0".repeat(41), "äääääääääää"] {
        assert!(
            matches!(table.insert(hash, "sin"), Err(TableError::Hash(_))),
            "{hash}"
        );
    }
    assert!(matches!(
        table.insert_entry("7668bb1c"),
        Err(TableError::Entry(_))
    ));
    let error = table
        .extend_from_toml("kernels = [{ sha1 = '7668bb1c', operation = 'sin', syze = 3 }]")
        .expect_err("a typing error");
    assert!(
        error.to_string().contains("unknown field `syze`"),
        "{error}"
    );
    assert_eq!(table.identify(b"abc").operation, None);
}
