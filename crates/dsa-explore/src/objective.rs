//! The objective of DSAGEN and `OverGen`: how fast all kernels are together, on as many cores as the budget has room for.

use crate::asic;
use crate::resources::{self, FIELDS, Usage};
use chipless_dsa::adg::{Adg, System};
use chipless_dsa::graph::Graph;
use chipless_dsa_mapper::performance::Demand;

/// A way to write a kernel: a graph with a file's name.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The name of its file, as the workloads give it.
    pub name: String,
    /// Its graph.
    pub graph: Graph,
}

/// A kernel: the best of its variants counts.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// How much it counts.
    pub weight: f64,
    /// Its variants, at least one.
    pub variants: Vec<Variant>,
}

/// What a design may take.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Budget {
    /// Bounds on figures of the FPGA, by their place among [`FIELDS`].
    pub fields: Vec<(usize, f64)>,
    /// mm² of silicon.
    pub area: Option<f64>,
    /// mW.
    pub power: Option<f64>,
}

/// A Xilinx VU9P.
const VU9P: [f64; 9] = [
    1_182_240.0,
    1_123_206.0,
    59_034.0,
    592_813.0,
    2_364_480.0,
    2_160.0,
    4_322.0,
    960.0,
    6_840.0,
];

impl Budget {
    /// `vu9p`, or `FIELD=NUMBER` and the like, separated by commas. Of a VU9P everything but the total of LUTs counts, as the scheduler has it.
    ///
    /// # Errors
    /// What is no budget.
    pub fn parse(text: &str) -> Result<Budget, String> {
        let mut budget = Budget::default();
        for entry in text.split(',').map(str::trim) {
            if entry == "vu9p" {
                budget
                    .fields
                    .extend(VU9P.iter().copied().enumerate().skip(1));
                continue;
            }
            let parsed = entry.split_once('=').and_then(|(name, number)| {
                let number = number.parse::<f64>().ok()?;
                (number.is_finite() && number > 0.0).then_some((name, number))
            });
            let Some((name, number)) = parsed else {
                return Err(format!("expected vu9p or FIELD=NUMBER, found \"{entry}\""));
            };
            let field = if name == "lut" { "total_lut" } else { name };
            match (field, FIELDS.iter().position(|known| *known == field)) {
                ("mm2", _) => budget.area = Some(number),
                ("mw", _) => budget.power = Some(number),
                (_, Some(index)) => budget.fields.push((index, number)),
                _ => {
                    let known = FIELDS.join(", ");
                    return Err(format!(
                        "expected one of {known}, lut, mm2, mw, found \"{name}\""
                    ));
                }
            }
        }
        Ok(budget)
    }

    /// The largest share of the budget that a design takes; above 1 it is exceeded.
    fn share(&self, usage: &Usage, silicon: asic::Silicon, cores: f64) -> f64 {
        let fields = self
            .fields
            .iter()
            .map(|(field, most)| usage.0[*field] / most);
        let area = self.area.map(|most| silicon.area * cores / most);
        let power = self.power.map(|most| silicon.power * cores / most);
        fields.chain(area).chain(power).fold(0.0, f64::max)
    }
}

/// What a kernel reaches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelScore {
    /// Which of its variants counts.
    pub variant: usize,
    /// Operations a cycle.
    pub performance: f64,
}

/// What a design reaches.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// The weighted geometric mean of the kernels' performance.
    pub objective: f64,
    /// The largest share of the budget that one core takes.
    pub share: f64,
    /// The system that is best for it.
    pub system: System,
    /// What all of it takes.
    pub usage: Usage,
    /// mm² of all fabrics.
    pub area: f64,
    /// mW of all fabrics.
    pub power: f64,
    /// Each kernel.
    pub kernels: Vec<KernelScore>,
}

impl Score {
    /// Whether it is better: a higher objective, or the same with less.
    pub fn is_better(&self, other: &Score) -> bool {
        let same = (self.objective - other.objective).abs() <= 1e-9 * other.objective.abs();
        if same {
            self.share < other.share * (1.0 - 1e-9)
        } else {
            self.objective > other.objective
        }
    }
}

/// What a kernel reaches that no variant maps.
const UNMAPPED: f64 = 1e-3;
/// Cores that a system may have.
const MOST_CORES: u32 = 256;
/// Widths of the bus, bytes.
const BUSES: [u32; 4] = [8, 16, 32, 64];

/// Scores a fabric; `demands`: for each kernel what each of its variants asks for, `None` where it is not mapped. `system`: the only one that is
/// looked at, where it is given. `None` where the budget has no room for one core.
pub(crate) fn score(
    adg: &Adg,
    kernels: &[Kernel],
    demands: &[Vec<Option<Demand>>],
    budget: &Budget,
    system: Option<System>,
) -> Option<Score> {
    let one = resources::core(adg);
    let silicon = asic::silicon(adg);
    let total = |system: System| {
        let mut usage = one.times(f64::from(system.cores));
        usage.add(&resources::bus(system), 1.0);
        usage
    };
    let fits = |system: System| {
        let share = budget.share(&total(system), silicon, f64::from(system.cores));
        share <= 1.0
    };
    let mut best: Option<(f64, System, Vec<KernelScore>)> = None;
    let mut consider = |system: System| {
        let (objective, scores) = objective(kernels, demands, system);
        // Of equal ones that with more cores.
        let better = best
            .as_ref()
            .is_none_or(|(known, old, _)| (objective, system.cores) > (*known, old.cores));
        if better {
            best = Some((objective, system, scores));
        }
    };
    if let Some(system) = system {
        if !fits(system) {
            return None;
        }
        consider(system);
    } else {
        for bus_width in BUSES {
            for cores in 1..=MOST_CORES {
                let system = System {
                    cores,
                    banks: cores.next_power_of_two(),
                    bus_width,
                };
                if !fits(system) {
                    break;
                }
                consider(system);
            }
        }
    }
    let (objective, system, scores) = best?;
    let cores = f64::from(system.cores);
    Some(Score {
        objective,
        share: budget.share(&one, silicon, 1.0),
        usage: total(system),
        area: silicon.area * cores,
        power: silicon.power * cores,
        system,
        kernels: scores,
    })
}

fn objective(
    kernels: &[Kernel],
    demands: &[Vec<Option<Demand>>],
    system: System,
) -> (f64, Vec<KernelScore>) {
    let (mut logarithm, mut weights) = (0.0, 0.0);
    let mut scores = Vec::with_capacity(kernels.len());
    for (kernel, demands) in kernels.iter().zip(demands) {
        let mut score = KernelScore {
            variant: 0,
            performance: UNMAPPED,
        };
        for (variant, demand) in demands.iter().enumerate() {
            let performance = demand.as_ref().map_or(0.0, |demand| demand.best_on(system));
            if performance > score.performance {
                score = KernelScore {
                    variant,
                    performance,
                };
            }
        }
        logarithm += kernel.weight * score.performance.ln();
        weights += kernel.weight;
        scores.push(score);
    }
    ((logarithm / weights).exp(), scores)
}
