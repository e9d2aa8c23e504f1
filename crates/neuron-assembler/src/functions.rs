//! Sets of functions of the scalar engine as text.
//!
//! ```text
//! functions curves
//! segment 0 1 0 0 0                      ; d0 d1 d2 d3 and the centre
//! control first=0 size=2                 ; an octave of four segments from the first on
//! function exp id=7 octaves=-6:3 control=0,10 small=80,80 large=81,82 zero=1 nan=nan infinity=inf,0
//! ```

use crate::{AssembleError, Line};
use chipless_neuron::{DraftFunction, DraftFunctions};

/// The rest of a line of a set: a segment, a control word, or a function.
pub(crate) fn line(
    word: &str,
    line: &mut Line<'_>,
    set: &mut DraftFunctions,
) -> Result<(), AssembleError> {
    match word {
        "segment" => {
            let mut numbers = [0.0; 5];
            for number in &mut numbers {
                *number = line.parse("a coefficient, or the centre")?;
            }
            set.segments.push(numbers);
        }
        "control" => {
            line.expect("first=")?;
            let first = line.integer("a segment")?;
            line.expect("size=")?;
            set.control.push((first, line.integer("a power of two")?));
        }
        _ => set.functions.push(function(line)?),
    }
    Ok(())
}

fn function(line: &mut Line<'_>) -> Result<DraftFunction, AssembleError> {
    let mut function = DraftFunction {
        name: line.word("the function's name")?.to_owned(),
        ..DraftFunction::default()
    };
    while !line.at_end() {
        let key = line.word("an option")?;
        match key {
            "odd" => function.symmetric = Some(true),
            "even" => function.symmetric = Some(false),
            _ => line.expect("=")?,
        }
        match key {
            "odd" | "even" => {}
            "id" => function.id = line.integer("a number")?,
            "octaves" => {
                let first = line.integer("an exponent")?;
                line.expect(":")?;
                function.octaves = (first, line.integer("an exponent")?);
            }
            "control" => function.control = pair(line, |l| l.integer("a control word"))?,
            "small" => function.small = pair(line, |l| l.integer("a segment"))?,
            "large" => function.large = pair(line, |l| l.integer("a segment"))?,
            "zero" => function.zero = line.parse("a number")?,
            "nan" => function.nan = line.parse("a number")?,
            "infinity" => function.infinity = pair(line, |l| l.parse("a number"))?,
            other => return Err(line.refuse(format!("`{other}` is no option of a function"))),
        }
    }
    Ok(function)
}

/// One value for both signs, or one for each.
fn pair<T: Copy>(
    line: &mut Line<'_>,
    mut item: impl FnMut(&mut Line<'_>) -> Result<T, AssembleError>,
) -> Result<[T; 2], AssembleError> {
    let positive = item(line)?;
    let negative = if line.eat(",") { item(line)? } else { positive };
    Ok([positive, negative])
}
