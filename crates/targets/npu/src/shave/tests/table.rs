use super::super::table::builtin;
use super::*;

/// Lines of the table that comes with Chipless.
fn rows() -> impl Iterator<Item = Vec<&'static str>> {
    let lines = include_str!("../kernels.csv").lines().skip(1);
    lines.map(|line| line.split(',').collect())
}

#[test]
fn the_builtin_table_is_sorted_and_well_formed() {
    let mut last = "";
    for row in rows() {
        let [hash, size, name, first, until] = row[..] else {
            panic!("{row:?}");
        };
        assert!(last < hash, "{last} {hash}");
        last = hash;
        assert!(
            hash.len() == 8 && u32::from_str_radix(hash, 16).is_ok(),
            "{hash}"
        );
        assert!(size.parse::<u64>().is_ok_and(|size| size > 0), "{size}");
        assert!(
            !name.is_empty() && first <= until && first.starts_with("2026."),
            "{row:?}"
        );
    }
    assert_eq!(rows().count(), 3780);
}

/// The search looks at lines in place: every line is found, from the first to the last, and none for another size.
#[test]
fn every_line_of_the_builtin_table_is_found() {
    for row in rows() {
        let hash = CodeHash(u32::from_str_radix(row[0], 16).expect("hexadecimal"));
        let size = row[1].parse().expect("a number");
        assert_eq!(builtin(hash, size), Some(row[2]));
        assert_eq!(builtin(hash, size + 1), None);
    }
    for absent in [0, u32::MAX, 0x8000_0000] {
        assert_eq!(builtin(CodeHash(absent), 976), None);
    }
}

#[test]
fn every_operation_has_kernels() {
    for operation in Operation::ALL {
        let has = rows().any(|row| operation_of(row[2]) == Some(*operation));
        assert!(has, "{operation}");
    }
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
    assert_eq!(table.identify(b"abc").operation, Some(Operation::Tanh));

    table
        .extend_from_toml("kernels = [{ sha1 = 'a9993e36', size = 4, operation = 'sin' }]")
        .expect("a table");
    assert_eq!(table.identify(b"abc").operation, None, "another size");
    table
        .extend_from_toml("[[kernels]]\nsha1 = 'a9993e36'\nsize = 3\noperation = 'sin'")
        .expect("a table");
    assert_eq!(table.identify(b"abc").operation, Some(Operation::Sin));
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

#[test]
fn a_row_has_a_name_or_an_operation() {
    let mut table = KernelTable::builtin();
    table
        .extend_from_toml("kernels = [{ sha1 = 'a9993e36', name = 'unheard_of' }]")
        .expect("a table");
    let identity = table.identify(b"abc");
    assert_eq!(identity.name.as_deref(), Some("unheard_of"));
    assert_eq!(identity.operation, None);
    table
        .extend_from_toml("kernels = [{ sha1 = 'a9993e36', name = 'softmax' }]")
        .expect("a table");
    assert_eq!(table.identify(b"abc").operation, Some(Operation::Softmax));
    let error = table.extend_from_toml("kernels = [{ sha1 = 'a9993e36' }]");
    assert_eq!(
        error.expect_err("nothing is said").to_string(),
        "kernel a9993e36: expected a name or an operation"
    );
}

/// An ELF file of 32 bits with a section `.text` at 0x1d000000 and one symbol.
fn elf(code: &[u8], entry: u32, symbol: &str, value: u32, binding: u8) -> Vec<u8> {
    let names = b"\0.text\0.symtab\0.strtab\0";
    let strings = [b"\0", symbol.as_bytes(), b"\0"].concat();
    let mut symbols = vec![0; 16];
    symbols.extend([1u32, value, 0].iter().flat_map(|word| word.to_le_bytes()));
    symbols.extend([binding << 4 | 2, 0, 1, 0]);
    let mut file = vec![0; 52];
    let mut place = |bytes: &[u8]| {
        let at = file.len() as u32;
        file.extend(bytes);
        [at, bytes.len() as u32]
    };
    let [code, symbols, names, strings] = [code, &symbols, names, &strings].map(&mut place);
    let headers = file.len() as u32;
    let header = |name: u32, kind: u32, [at, size]: [u32; 2], link: u32| {
        [name, kind, 0, 0, at, size, link, 0, 0, 0]
    };
    let sections = [
        header(0, 0, [0, 0], 0),
        header(1, 1, code, 0),
        header(7, 2, symbols, 3),
        header(15, 3, strings, 0),
        header(0, 3, names, 0),
    ];
    file.extend(
        sections
            .iter()
            .flatten()
            .flat_map(|word| word.to_le_bytes()),
    );
    file[..7].copy_from_slice(b"\x7fELF\x01\x01\x01");
    file[24..28].copy_from_slice(&entry.to_le_bytes());
    file[32..36].copy_from_slice(&headers.to_le_bytes());
    for (at, value) in [(46, 40u16), (48, 5), (50, 4)] {
        file[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }
    file
}

#[test]
fn kernels_are_found_anywhere_in_a_library() {
    let tanh = elf(b"abc", 0x1d00_0000, "activation_tanh", 0x1d00_0000, 1);
    let odd = elf(b"other code", 0x1d00_0010, "unheard_of", 0x1d00_0010, 1);
    let local = elf(b"local symbol", 0x1d00_0000, "softmax", 0x1d00_0000, 0);
    let elsewhere = elf(
        b"no symbol at the entry",
        0x1d00_0000,
        "softmax",
        0x1d00_0040,
        1,
    );
    let library = [
        &b"\x7fELF\x02\x01\x01 another kind of file"[..],
        &tanh,
        &local,
        &[0x7f],
        &odd,
        &tanh[..tanh.len() - 1],
        &elsewhere,
        &tanh,
    ]
    .concat();
    let kernels = import(&library);
    let found: Vec<_> = kernels
        .iter()
        .map(|kernel| (&*kernel.sha1, kernel.size, &*kernel.name, kernel.operation))
        .collect();
    assert_eq!(
        found,
        [
            (
                "a9993e364706816aba3e25717850c26c9cd0d89d",
                3,
                "activation_tanh",
                Some(Operation::Tanh)
            ),
            (&*kernels[1].sha1, 10, "unheard_of", None),
        ]
    );
    let mut table = KernelTable::builtin();
    table
        .extend_from_toml(&table_text(&kernels))
        .expect("the table is of the form that is read");
    assert_eq!(table.identify(b"abc").operation, Some(Operation::Tanh));
    assert_eq!(
        table.identify(b"other code").name.as_deref(),
        Some("unheard_of")
    );
}

#[test]
fn damaged_kernels_are_passed_over() {
    let whole = elf(b"abc", 0x1d00_0000, "activation_tanh", 0x1d00_0000, 1);
    for length in 0..whole.len() {
        assert_eq!(import(&whole[..length]), [], "{length}");
    }
    for at in 0..whole.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut damaged = whole.clone();
            damaged[at] = value;
            // Whatever it is, it ends, and what is found is inside.
            assert!(
                import(&damaged)
                    .iter()
                    .all(|kernel| kernel.size <= whole.len() as u64)
            );
        }
    }
}
