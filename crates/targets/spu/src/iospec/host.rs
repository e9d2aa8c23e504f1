//! Firmware without the chip: a C header of the model, a skeleton of an application, and a stand-in for the SPU library that
//! has Chipless drive the model.
//!
//! Names of a contract never become names of the C program: vectors and sequences are numbered, and names stand in comments
//! and string literals alone, in characters that no compiler of C11 reads as anything else.

use super::document::{Document, Member, Sequence, Vector};
use super::violation::Violation;
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::path::Path;

/// Elements of a vector that the application has room for.
const MOST_ELEMENTS: i64 = 1 << 26;

/// A file of the firmware: its name and its text.
pub type HostFile = (&'static str, String);

/// The files of the firmware for a contract, which stands in the file `spec`. `program` is the file of the program behind it and the
/// options that it takes, as arguments of a command line.
///
/// # Errors
/// A vector whose elements are too many, or too wide for a type of C.
pub fn host(
    document: &Document,
    spec: &Path,
    program: Option<(&Path, &[String])>,
) -> Result<Vec<HostFile>, Violation> {
    let model = Model::new(document)?;
    Ok(vec![
        ("Makefile", include_str!("../../host/Makefile").to_owned()),
        ("spu.h", include_str!("../../host/spu.h").to_owned()),
        (
            "spu_mock.c",
            include_str!("../../host/spu_mock.c").to_owned(),
        ),
        ("model.h", model.header()),
        ("model.c", model.tables(spec, program)),
        ("app.c", model.application()),
    ])
}

/// The simple sequences of a document and their vectors, by number.
struct Model<'d> {
    document: &'d Document,
    sequences: Vec<Numbered<'d>>,
}

/// A sequence with the positions of its inputs and outputs in the sections.
struct Numbered<'d> {
    sequence: &'d Sequence,
    inputs: Vec<usize>,
    outputs: Vec<usize>,
}

impl<'d> Model<'d> {
    fn new(document: &'d Document) -> Result<Model<'d>, Violation> {
        for vector in document.vectors() {
            if !(0..=MOST_ELEMENTS).contains(&vector.length) {
                return Err(Violation::value(format!(
                    "expected at most {MOST_ELEMENTS} elements of `{}` for a program in C, found {}",
                    vector.key, vector.length
                )));
            }
            if !(1..=64).contains(&vector.precision) {
                return Err(Violation::value(format!(
                    "expected elements of 1 to 64 bits of `{}` for a program in C, found {}",
                    vector.key, vector.precision
                )));
            }
        }
        let (inputs, outputs) = (document.input_index(), document.output_index());
        let of = |members: &[Member], index: &HashMap<&str, usize>| {
            members
                .iter()
                .filter_map(|m| index.get(&*m.key).copied())
                .collect()
        };
        let sequences = document
            .simple_sequences()
            .map(|sequence| Numbered {
                sequence,
                inputs: of(&sequence.inputs, &inputs),
                outputs: of(&sequence.outputs, &outputs),
            })
            .collect();
        Ok(Model {
            document,
            sequences,
        })
    }

    /// Vectors of the sections with their names in C.
    fn vectors(&self) -> impl Iterator<Item = (String, &'d Vector)> {
        let numbered = |side: &'static str| {
            move |(number, vector): (usize, &'d Vector)| (format!("{side}_{number}"), vector)
        };
        let inputs = self
            .document
            .inputs
            .iter()
            .enumerate()
            .map(numbered("input"));
        inputs.chain(
            self.document
                .outputs
                .iter()
                .enumerate()
                .map(numbered("output")),
        )
    }

    fn header(&self) -> String {
        let mut out = String::from(
            "/* The model as its IOSpec describes it. Made by chipless host. */
#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern \"C\" {
#endif

",
        );
        for (name, vector) in self.vectors() {
            let upper = name.to_uppercase();
            let _ = writeln!(
                out,
                "/* {} {} */",
                vector.side.name(),
                text_as_comment(&vector.varname)
            );
            let _ = writeln!(
                out,
                "#define MODEL_{upper}_NAME \"{}\"",
                literal(&vector.varname)
            );
            let _ = writeln!(out, "#define MODEL_{upper}_LENGTH {}", vector.length);
            let _ = writeln!(out, "#define MODEL_{upper}_BITS {}", vector.precision);
            if let Some(q) = vector
                .quantization
                .filter(|q| q.scale.is_finite() && q.zero_point.is_finite())
            {
                let _ = writeln!(
                    out,
                    "/* value = (element - zero point) * scale; element = floor(value / scale) + zero point, clipped to the type */"
                );
                let _ = writeln!(out, "#define MODEL_{upper}_SCALE {:e}", q.scale);
                let _ = writeln!(out, "#define MODEL_{upper}_ZERO_POINT {:e}", q.zero_point);
            }
            // What the bus is told, once the model is compiled.
            for (field, value) in [
                ("PADDED_LENGTH", vector.padded_length),
                ("WORDS", vector.words),
                ("CORE_ID", vector.core_id),
                ("PC", vector.pc),
                ("MAILBOX_ID", vector.mailbox_id),
            ] {
                if let Some(value) = value {
                    let _ = writeln!(out, "#define MODEL_{upper}_{field} {value}");
                }
            }
            let _ = writeln!(out, "typedef {} model_{name};\n", element(vector).0);
        }
        for (id, numbered) in self.sequences.iter().enumerate() {
            let _ = writeln!(
                out,
                "/* sequence {} */\n#define MODEL_SEQUENCE_{id} {id}u\n",
                text_as_comment(&numbered.sequence.name)
            );
        }
        out.push_str(
            "struct model_vector {
    const char *name;
    size_t length;
    size_t element_bytes;
};

struct model_sequence {
    const char *name;
    size_t input_count;
    const struct model_vector *inputs;
    size_t output_count;
    const struct model_vector *outputs;
};

/* Sequences by their ids. */
extern const struct model_sequence model_sequences[];
extern const size_t model_sequence_count;

/* The command that simulates the model; NULL ends it. Without a program behind the contract outputs are zeros. */
extern const char *const model_command[];
extern const bool model_has_program;

#ifdef __cplusplus
}
#endif

#endif
",
        );
        out
    }

    fn tables(&self, spec: &Path, program: Option<(&Path, &[String])>) -> String {
        let mut out = String::from(
            "/* The tables of model.h. Made by chipless host. */\n#include \"model.h\"\n\n",
        );
        let list = |out: &mut String, name: &str, side: &str, all: &[Vector], members: &[usize]| {
            let _ = writeln!(out, "static const struct model_vector {name}[] = {{");
            for member in members {
                let upper = format!("MODEL_{}_{member}", side.to_uppercase());
                let bytes = all.get(*member).map_or(1, |vector| element(vector).1);
                let _ = writeln!(out, "    {{{upper}_NAME, {upper}_LENGTH, {bytes}}},");
            }
            // A list in C has at least one element.
            out.push_str("    {NULL, 0, 0}\n};\n\n");
        };
        for (id, numbered) in self.sequences.iter().enumerate() {
            list(
                &mut out,
                &format!("inputs_{id}"),
                "input",
                &self.document.inputs,
                &numbered.inputs,
            );
            list(
                &mut out,
                &format!("outputs_{id}"),
                "output",
                &self.document.outputs,
                &numbered.outputs,
            );
        }
        out.push_str("const struct model_sequence model_sequences[] = {\n");
        for (id, numbered) in self.sequences.iter().enumerate() {
            let (name, inputs, outputs) = (
                literal(&numbered.sequence.name),
                numbered.inputs.len(),
                numbered.outputs.len(),
            );
            let _ = writeln!(
                out,
                "    {{\"{name}\", {inputs}, inputs_{id}, {outputs}, outputs_{id}}},"
            );
        }
        out.push_str("    {NULL, 0, NULL, 0, NULL}\n};\n");
        let _ = writeln!(
            out,
            "const size_t model_sequence_count = {};\n",
            self.sequences.len()
        );
        out.push_str("const char *const model_command[] = {\n");
        let mut argument = |text: &str| {
            let _ = writeln!(out, "    \"{}\",", literal(text));
        };
        argument("chipless");
        argument("drive");
        argument(&spec.to_string_lossy());
        argument("--lines");
        if let Some((program, options)) = program {
            argument("--program");
            argument(&program.to_string_lossy());
            for option in options {
                argument(option);
            }
        }
        out.push_str("    NULL\n};\n");
        let _ = writeln!(out, "const bool model_has_program = {};", program.is_some());
        out
    }

    fn application(&self) -> String {
        let mut out = String::from(
            "/* A skeleton of an application: app ROUNDS goes so many times through the sequences of the model. Inputs come from
 * standard input, outputs go to standard output: elements little-endian, vectors in the order of their sequences.
 * Made by chipless host; put your own sources and sinks in the place of take and give. */
#include \"model.h\"
#include \"spu.h\"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

",
        );
        for (name, vector) in self.vectors() {
            let referenced = self.sequences.iter().any(|s| {
                let (members, prefix) = if vector.side == super::Side::Input {
                    (&s.inputs, "input")
                } else {
                    (&s.outputs, "output")
                };
                members.iter().any(|m| name == format!("{prefix}_{m}"))
            });
            if referenced {
                let _ = writeln!(
                    out,
                    "static model_{name} {name}[{}]; /* {} */",
                    vector.length.max(1),
                    text_as_comment(&vector.varname)
                );
            }
        }
        out.push('\n');
        if self.sequences.iter().any(|s| !s.inputs.is_empty()) {
            out.push_str(TAKE);
        }
        if self.sequences.iter().any(|s| !s.outputs.is_empty()) {
            out.push_str(GIVE);
        }
        for (id, numbered) in self.sequences.iter().enumerate() {
            numbered.function(&mut out, id, self.document);
        }
        out.push_str(
            "int main(int argc, char **argv)
{
    unsigned long round, rounds = 1;
    char *end;

    if (argc > 1) {
        errno = 0;
        rounds = strtoul(argv[1], &end, 10);
        if (errno != 0 || argv[1][0] == '-' || end == argv[1] || *end != '\\0') {
            fprintf(stderr, \"usage: %s ROUNDS\\n\", argv[0]);
            return 2;
        }
    }
    for (round = 0; round < rounds; round++) {
",
        );
        self.round(&mut out);
        out.push_str(
            "    }
    if (fflush(stdout) != 0) {
        fprintf(stderr, \"app: cannot write the outputs: %s\\n\", strerror(errno));
        return 1;
    }
    return 0;
}
",
        );
        out
    }
}

impl Model<'_> {
    /// What happens in a round. Inputs are taken in the order of the contract. Where a latched input would come after a sequence that uses it,
    /// all are taken first, so that the latched ones are written before the others.
    fn round(&self, out: &mut String) {
        let is_latched = |id: &usize| self.sequences[*id].sequence.is_latched();
        let mut order: Vec<usize> = (0..self.sequences.len()).collect();
        order.sort_by_key(|id| !is_latched(id));
        let mut seen = HashSet::new();
        // An input of two sequences has room for one of its values at a time.
        let is_shared = |input: &usize| !seen.insert(*input);
        let has_shared = self.sequences.iter().flat_map(|s| &s.inputs).any(is_shared);
        let in_order = has_shared || order.is_sorted();
        let take = |id: &usize| {
            let takes = !self.sequences[*id].inputs.is_empty();
            takes.then(|| format!("take_{id}()"))
        };
        let mut step = |call: String| {
            let _ = writeln!(out, "        if ({call} != kSpuOk)\n            return 1;");
        };
        if in_order {
            order.sort_unstable();
        } else {
            (0..self.sequences.len())
                .filter_map(|id| take(&id))
                .for_each(&mut step);
        }
        for id in order {
            take(&id)
                .filter(|_| in_order)
                .into_iter()
                .for_each(&mut step);
            step(format!("sequence_{id}()"));
        }
    }
}

impl Numbered<'_> {
    /// A function that takes the inputs of a firing, where there are any, and one for the firing.
    fn function(&self, out: &mut String, id: usize, document: &Document) {
        let name = text_as_comment(&self.sequence.name);
        if !self.inputs.is_empty() {
            let _ = writeln!(
                out,
                "/* Inputs of {name} */\nstatic int take_{id}(void)\n{{"
            );
            for input in &self.inputs {
                let comment = document.inputs.get(*input);
                let comment = comment.map_or_else(String::new, |v| text_as_comment(&v.varname));
                let _ = writeln!(
                    out,
                    "    if (take(input_{input}, MODEL_INPUT_{input}_LENGTH, sizeof input_{input}[0]) != 0) /* {comment} */\n        return kSpuMockFailure;"
                );
            }
            out.push_str("    return kSpuOk;\n}\n\n");
        }
        let keeps = if self.sequence.is_latched() {
            ": inputs that keep their values. Where there are none for a round, leave out take and call"
        } else {
            ""
        };
        let _ = writeln!(
            out,
            "/* {name}{keeps} */\nstatic int sequence_{id}(void)\n{{"
        );
        let pointers = |side: &str, members: &[usize]| {
            members
                .iter()
                .map(|m| format!("{side}_{m}"))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let fires = !self.inputs.is_empty();
        if fires {
            let _ = writeln!(
                out,
                "    const void *const inputs[] = {{{}}};",
                pointers("input", &self.inputs)
            );
        }
        if !self.outputs.is_empty() {
            let _ = writeln!(
                out,
                "    void *const outputs[] = {{{}}};",
                pointers("output", &self.outputs)
            );
        }
        out.push_str("    int status = kSpuOk;\n\n");
        let call = |out: &mut String, call: &str, list: &str| {
            let _ = writeln!(
                out,
                "    status = {call}(MODEL_SEQUENCE_{id}, {list});\n    if (status != kSpuOk) {{\n        fprintf(stderr, \"app: {call} of sequence {id} returned %d\\n\", status);\n        return status;\n    }}"
            );
        };
        if fires {
            call(out, "SpuWriteData", "inputs");
        }
        if !self.outputs.is_empty() {
            call(out, "SpuReadData", "outputs");
        }
        for output in &self.outputs {
            let _ = writeln!(
                out,
                "    if (give(output_{output}, MODEL_OUTPUT_{output}_LENGTH, sizeof output_{output}[0]) != 0) /* {} */\n        return kSpuMockFailure;",
                document
                    .outputs
                    .get(*output)
                    .map_or_else(String::new, |v| text_as_comment(&v.varname))
            );
        }
        out.push_str("    return status;\n}\n\n");
    }
}

/// Reads the elements of a vector from standard input.
const TAKE: &str =
    "/* Takes the elements of a vector from standard input; 0 where all of them came. */
static int take(void *vector, size_t length, size_t bytes)
{
    unsigned char *to = vector;
    size_t i, b;

    for (i = 0; i < length; i++) {
        unsigned char word[8];
        uint64_t value = 0;
        size_t got = fread(word, 1, bytes, stdin);
        if (got != bytes) {
            fprintf(stderr, i + got ? \"app: the input ends within a vector\\n\"
                                    : \"app: the input has no further vector\\n\");
            return -1;
        }
        for (b = 0; b < bytes; b++)
            value |= (uint64_t)word[b] << (8 * b);
        switch (bytes) {
        case 1:
            to[i] = (unsigned char)value;
            break;
        case 2:
            ((uint16_t *)vector)[i] = (uint16_t)value;
            break;
        case 4:
            ((uint32_t *)vector)[i] = (uint32_t)value;
            break;
        default:
            ((uint64_t *)vector)[i] = value;
            break;
        }
    }
    return 0;
}

";

/// Writes the elements of a vector to standard output.
const GIVE: &str =
    "/* Gives the elements of a vector to standard output; 0 where all of them went. */
static int give(const void *vector, size_t length, size_t bytes)
{
    size_t i, b;

    for (i = 0; i < length; i++) {
        unsigned char word[8];
        uint64_t value;
        switch (bytes) {
        case 1:
            value = ((const uint8_t *)vector)[i];
            break;
        case 2:
            value = ((const uint16_t *)vector)[i];
            break;
        case 4:
            value = ((const uint32_t *)vector)[i];
            break;
        default:
            value = ((const uint64_t *)vector)[i];
            break;
        }
        for (b = 0; b < bytes; b++)
            word[b] = (unsigned char)(value >> (8 * b));
        if (fwrite(word, 1, bytes, stdout) != bytes) {
            fprintf(stderr, \"app: cannot write the outputs\\n\");
            return -1;
        }
    }
    return 0;
}

";

/// The type of an element in C, and its bytes.
fn element(vector: &Vector) -> (&'static str, usize) {
    match vector.precision {
        ..=8 => ("int8_t", 1),
        9..=16 => ("int16_t", 2),
        17..=32 => ("int32_t", 4),
        _ => ("int64_t", 8),
    }
}

/// Text as the inside of a string literal: plain characters, and bytes of UTF-8 in octal. Question marks could be trigraphs.
fn literal(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b' '..=b'~' if !matches!(byte, b'"' | b'\\' | b'?') => char::from(byte).to_string(),
            _ => format!("\\{byte:03o}"),
        })
        .collect()
}

/// Text that cannot end a comment, begin one, or mean anything in it: characters beyond ASCII by their numbers.
fn text_as_comment(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|c| match c {
            '\\' => "<backslash>".to_owned(),
            ' '..='~' => c.to_string(),
            _ => format!("<U+{:04X}>", c as u32),
        })
        .collect();
    plain
        .replace("*/", "* /")
        .replace("/*", "/ *")
        .replace("??", "? ?")
}
