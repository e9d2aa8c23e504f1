//! Rules about texts that people write and no target reads: `chipless-lsp` finds what they say.

chipless_model::rules! {
    PLAN Fault Error Format "plan-invalid" "a sweep plan that cannot be read"
        "A plan is one YAML mapping: `version: 1`, `programs`, and what varies: `machine` and `options`. `sample` and `columns` may be missing. Reading stops at the first mistake."
        "Write the line as docs/sweeps.md describes it."
        "docs/sweeps.md, the plan";
    MACHINE_SYNTAX Fault Error Format "machine-syntax" "a machine file that is no TOML"
        "A machine file is TOML: sections in brackets, and `key = value` on lines of their own."
        "Mend the text at the place that the finding names; `chipless machine TARGET --template` prints a file to start from."
        "TOML 1.0";
    MACHINE_KEY Fault Error Format "machine-key" "a machine parameter that the machine does not have"
        "Each target knows the parameters of its machines. One that nobody reads would be without effect, so the target refuses the file."
        "Spell the parameter as `chipless machine TARGET` lists it."
        "the machine files of the targets";
    MACHINE_VALUE Fault Error Format "machine-value" "a machine parameter with a value of another type"
        "Parameters are numbers in the unit that `chipless machine TARGET` prints, or names in quotes."
        "Write a value of the type that the finding names."
        "the machine files of the targets";
    ASSEMBLER Fault Error Format "asm-syntax" "a line of assembler that cannot be read"
        "Each line is one statement or one slot of an instruction stream. Reading stops at the first mistake."
        "Write the line as docs/neuron-files.md describes it."
        "docs/neuron-files.md, the assembler";
}
