//! Where bytes travel: the mesh of cores, its DRAM ports, and the bytes of a schedule over each link.
//!
//! Routes go along the row first, then along the column. A multicast is a tree: along the source's row from the leftmost to
//! the rightmost column of all ends, then in each destination's column from there; a link of the tree carries the bytes once.
//! Data of DRAM come in equal parts through all ports, which are the first and the last column of every row; where a file
//! names DRAM groups, through the ports of those. Coordinates are column and row. This is the cost model of SET, whose cost
//! files the totals reproduce.

use crate::schedule::{Destination, Peer, Schedule};
use smallvec::SmallVec;

/// A column and a row of the mesh.
pub type Position = (u32, u32);

/// The mesh of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mesh {
    /// Columns.
    pub columns: u32,
    /// Rows.
    pub rows: u32,
    /// Where DRAM is connected, and which groups come in there, bit by bit.
    ports: Vec<(Position, u32)>,
}

/// Columns and rows of a mesh, at most: what is beyond has no links.
const MOST: u32 = 256;

/// The four links that leave a core, in this order.
const DIRECTIONS: [&str; 4] = ["east", "west", "south", "north"];

impl Mesh {
    /// The mesh of a schedule.
    pub fn of(schedule: &Schedule) -> Mesh {
        let (columns, rows) = (
            schedule.mesh[0].clamp(1, MOST),
            schedule.mesh[1].clamp(1, MOST),
        );
        let mut ports: Vec<(Position, u32)> = schedule
            .dram_ports
            .iter()
            .map(|p| {
                (
                    (p.x.min(columns - 1), p.y.min(rows - 1)),
                    1u32.checked_shl(p.group).unwrap_or(0),
                )
            })
            .collect();
        if ports.is_empty() {
            ports = [0, columns - 1]
                .into_iter()
                .flat_map(|x| (0..rows).map(move |y| ((x, y), u32::MAX)))
                .collect();
        }
        Mesh {
            columns,
            rows,
            ports,
        }
    }

    /// How many links there are, border links that lead nowhere included.
    pub fn links(&self) -> usize {
        self.columns as usize * self.rows as usize * DIRECTIONS.len()
    }

    /// Where a link leads from and to; `None` for a border link.
    pub fn ends(&self, link: usize) -> Option<(Position, Position)> {
        let (core, direction) = (link / 4, link % 4);
        let (x, y) = (
            (core % self.columns as usize) as u32,
            (core / self.columns as usize) as u32,
        );
        let to = match direction {
            0 => (x + 1 < self.columns).then_some((x + 1, y)),
            1 => x.checked_sub(1).map(|x| (x, y)),
            2 => (y + 1 < self.rows).then_some((x, y + 1)),
            _ => y.checked_sub(1).map(|y| (x, y)),
        };
        (y < self.rows).then_some(())?;
        Some(((x, y), to?))
    }

    /// Name of a link: `1,0 east`.
    pub fn name(&self, link: usize) -> String {
        let core = link / 4;
        format!(
            "{},{} {}",
            core % self.columns as usize,
            core / self.columns as usize,
            DIRECTIONS[link % 4]
        )
    }

    fn link(&self, (x, y): Position, direction: usize) -> usize {
        (y as usize * self.columns as usize + x as usize) * 4 + direction
    }

    /// The links of a route, along the row and then along the column.
    fn route(&self, (x0, y0): Position, (x, y): Position) -> impl Iterator<Item = usize> + '_ {
        let row = (x0.min(x)..x0.max(x)).map(move |column| {
            if x > x0 {
                self.link((column, y0), 0)
            } else {
                self.link((column + 1, y0), 1)
            }
        });
        let column = (y0.min(y)..y0.max(y)).map(move |row| {
            if y > y0 {
                self.link((x, row), 2)
            } else {
                self.link((x, row + 1), 3)
            }
        });
        row.chain(column)
    }

    /// Parts of `bytes` by DRAM port, `groups` saying which of them.
    fn parts(&self, bytes: u64, groups: u32) -> impl Iterator<Item = (Position, u64)> + '_ {
        let all = groups == 0 || !self.ports.iter().any(|(_, group)| group & groups != 0);
        let chosen = move |group: u32| all || group & groups != 0;
        let count = self
            .ports
            .iter()
            .filter(|(_, group)| chosen(*group))
            .count() as u128;
        let share = move |i: u128| (u128::from(bytes) * i / count) as u64;
        let ports = self.ports.iter().filter(move |(_, group)| chosen(*group));
        ports
            .enumerate()
            .map(move |(i, (port, _))| (*port, share(i as u128 + 1) - share(i as u128)))
    }

    /// Calls `add` with each link and its bytes of a transfer between cores; a multicast where there are several.
    pub fn between(
        &self,
        from: Position,
        to: &[Position],
        bytes: u64,
        add: &mut dyn FnMut(usize, u64),
    ) {
        if let [to] = to {
            return self.route(from, *to).for_each(|link| add(link, bytes));
        }
        let mut links: SmallVec<[usize; 64]> =
            to.iter().flat_map(|to| self.route(from, *to)).collect();
        links.sort_unstable();
        links.dedup();
        links.into_iter().for_each(|link| add(link, bytes));
    }

    /// The same for a transfer from DRAM. A link may come several times, once for each port.
    pub fn load(&self, to: &[Position], bytes: u64, groups: u32, add: &mut dyn FnMut(usize, u64)) {
        for (port, part) in self.parts(bytes, groups) {
            self.between(port, to, part, add);
        }
    }

    /// Links on the longest way from a core to others.
    pub fn hops_between(&self, from: Position, to: &[Position]) -> u32 {
        let way = |to: &Position| from.0.abs_diff(to.0) + from.1.abs_diff(to.1);
        to.iter().map(way).max().unwrap_or(0)
    }

    /// Links on the longest way between the DRAM ports of these groups and cores.
    pub fn hops_of_dram(&self, cores: &[Position], groups: u32) -> u32 {
        let ports = self.parts(0, groups);
        let ways = ports.map(|(port, _)| self.hops_between(port, cores));
        ways.max().unwrap_or(0)
    }

    /// Calls `add` with each link and its bytes of a transfer to DRAM.
    pub fn store(&self, from: Position, bytes: u64, groups: u32, add: &mut dyn FnMut(usize, u64)) {
        for (port, part) in self.parts(bytes, groups) {
            self.between(from, &[port], part, add);
        }
    }
}

/// What a schedule moves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes read from DRAM; a multicast counts once.
    pub dram_read: u64,
    /// Bytes written to DRAM.
    pub dram_written: u64,
    /// Bytes from core to core; a multicast counts once.
    pub between_cores: u64,
    /// Bytes of each link, by [`Mesh::name`]'s number.
    pub links: Vec<u64>,
}

impl Traffic {
    /// What a schedule moves; sizes that no 64 bits hold count as the largest number.
    pub fn of(schedule: &Schedule, mesh: &Mesh) -> Traffic {
        let mut traffic = Traffic {
            links: vec![0; mesh.links()],
            ..Traffic::default()
        };
        let Traffic {
            dram_read,
            dram_written,
            between_cores,
            links,
        } = &mut traffic;
        let mut add = |link: usize, bytes: u64| {
            if let Some(sum) = links.get_mut(link) {
                *sum = sum.saturating_add(bytes);
            }
        };
        for out in &schedule.dram_out {
            *dram_read = dram_read.saturating_add(out.size);
            mesh.load(
                &cores(schedule, mesh, &out.destinations),
                out.size,
                out.groups,
                &mut add,
            );
        }
        for (core, workload) in schedule.workloads() {
            let from = position(schedule, mesh, core.id);
            for ofmap in &workload.ofmaps {
                let bytes = ofmap.size.unwrap_or(0);
                let groups = ofmap.destinations.iter().find_map(|d| {
                    if let Peer::Dram(groups) = d.peer {
                        Some(groups)
                    } else {
                        None
                    }
                });
                if let Some(groups) = groups {
                    *dram_written = dram_written.saturating_add(bytes);
                    mesh.store(from, bytes, groups, &mut add);
                }
                let to = cores(schedule, mesh, &ofmap.destinations);
                if to.iter().any(|to| *to != from) {
                    *between_cores = between_cores.saturating_add(bytes);
                    mesh.between(from, &to, bytes, &mut add);
                }
            }
        }
        traffic
    }

    /// Bytes from and to DRAM.
    pub fn dram(&self) -> u64 {
        self.dram_read.saturating_add(self.dram_written)
    }

    /// Bytes times the links that they cross.
    pub fn byte_hops(&self) -> u64 {
        self.links
            .iter()
            .fold(0, |sum, bytes| sum.saturating_add(*bytes))
    }

    /// Bytes of the busiest link.
    pub fn busiest(&self) -> u64 {
        self.links.iter().copied().max().unwrap_or(0)
    }
}

/// Where a core is; cores that are not in the mesh count as its last one.
pub(crate) fn position(schedule: &Schedule, mesh: &Mesh, core: u32) -> Position {
    let (x, y) = schedule.position(core);
    (x.min(mesh.columns - 1), y.min(mesh.rows - 1))
}

fn cores(schedule: &Schedule, mesh: &Mesh, destinations: &[Destination]) -> Vec<Position> {
    let core = |d: &Destination| {
        if let Peer::Core(core) = d.peer {
            Some(position(schedule, mesh, core))
        } else {
            None
        }
    };
    let mut to: Vec<Position> = destinations.iter().filter_map(core).collect();
    to.sort_unstable();
    to.dedup();
    to
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mesh(columns: u32, rows: u32) -> Mesh {
        let ports = [0, columns - 1]
            .into_iter()
            .flat_map(|x| (0..rows).map(move |y| ((x, y), u32::MAX)))
            .collect();
        Mesh {
            columns,
            rows,
            ports,
        }
    }

    fn carried(run: impl FnOnce(&mut dyn FnMut(usize, u64))) -> u64 {
        let mut sum = 0;
        run(&mut |_, bytes| sum += bytes);
        sum
    }

    #[test]
    fn unicast_goes_along_the_row_and_then_the_column() {
        let mesh = mesh(4, 3);
        let mut links = Vec::new();
        mesh.between((3, 2), &[(1, 0)], 10, &mut |link, bytes| {
            links.push((mesh.name(link), bytes));
        });
        let mut want = ["3,2 west", "2,2 west", "1,2 north", "1,1 north"]
            .map(|n| (n.to_owned(), 10))
            .to_vec();
        want.sort();
        links.sort();
        assert_eq!(links, want);
    }

    #[test]
    fn multicast_crosses_each_link_once() {
        let mesh = mesh(4, 4);
        // Along the row to column 3, up in columns 2 and 3: 2 + 2 + 1 links.
        assert_eq!(
            carried(|add| mesh.between((1, 1), &[(2, 3), (3, 2), (2, 2)], 100, add)),
            500
        );
        assert_eq!(carried(|add| mesh.between((1, 1), &[(1, 1)], 100, add)), 0);
    }

    #[test]
    fn dram_comes_through_all_ports_in_equal_parts() {
        let mesh = mesh(2, 2);
        let parts: Vec<u64> = mesh.parts(10, 0).map(|(_, part)| part).collect();
        assert_eq!(parts, [2, 3, 2, 3]);
        // To one corner: the other ports are 1, 1 and 2 links away.
        assert_eq!(
            carried(|add| mesh.load(&[(0, 0)], 400, 0, add)),
            100 + 100 + 200
        );
    }

    #[test]
    fn links_lead_where_their_names_say() {
        let mesh = mesh(2, 1);
        let named: Vec<(String, Option<(Position, Position)>)> = (0..mesh.links())
            .map(|l| (mesh.name(l), mesh.ends(l)))
            .collect();
        assert_eq!(named[0], ("0,0 east".to_owned(), Some(((0, 0), (1, 0)))));
        assert_eq!(named[5], ("1,0 west".to_owned(), Some(((1, 0), (0, 0)))));
        assert_eq!(named.iter().filter(|(_, ends)| ends.is_some()).count(), 2);
    }
}
