//! From a container to a document: the names are followed, never guessed.

use crate::constant::Constant;
use crate::container::{Container, Member};
use crate::def::{Definition, VariableType};
use crate::engine::EngineFile;
use crate::graph::{Architecture, Engine, Graph, Interface, Kelf, MAX_SUBGRAPHS};
use crate::json::{Error, Name, Source};
use crate::rules::container as rules;
use crate::stream::{Bodies, Stream};
use chipless_model::{Finding, Limits, Place, Rule, clip};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

/// A NEFF as a document, borrowed from its [`Container`].
#[derive(Clone, Debug)]
pub struct Neff<'a> {
    /// The file.
    pub container: &'a Container<'a>,
    /// `neff.json`.
    pub graph: Graph<'a>,
    /// `neff.json` as text.
    pub graph_source: Source<'a>,
    /// Inputs and outputs.
    pub interface: Interface<'a>,
    /// The hardware that the kelf files name.
    pub architecture: Architecture,
    /// The kelf files with their text, in the order of the graph's program nodes.
    pub kelfs: Vec<(Source<'a>, Kelf<'a>)>,
    /// Subgraphs in the order of the kelf files; each runs on a core of its own.
    pub subgraphs: Vec<Subgraph<'a>>,
    /// Names of members that are not there, and members that cannot be what they are named for.
    pub dangling: Vec<Finding>,
}

/// A subgraph: what runs on one core.
#[derive(Clone, Debug)]
pub struct Subgraph<'a> {
    /// Its name: `sg00`; behind the position of its kelf file (`kelf1.sg00`) where an earlier one has a subgraph of that name.
    pub name: Name<'a>,
    /// Position of its kelf file in [`Neff::kelfs`].
    pub kelf: usize,
    /// `def.json` as text.
    pub source: Source<'a>,
    /// `def.json`.
    pub definition: Definition<'a>,
    /// Its five engines, in the order of [`Engine::ALL`].
    pub engines: Vec<EngineRoom<'a>>,
    /// Data of the variables of type `file`, by position in [`Definition::variables`].
    pub constants: Vec<Option<Constant<'a>>>,
    /// Debug members of the DMA queues.
    pub dma_debug: Vec<Member<'a>>,
}

/// Everything about one engine of a subgraph.
#[derive(Clone, Debug)]
pub struct EngineRoom<'a> {
    /// Which engine.
    pub engine: Engine,
    /// The engine JSON as text; `None` where the subgraph names none or it is missing.
    pub source: Option<Source<'a>>,
    /// The engine JSON; empty where there is none.
    pub file: EngineFile<'a>,
    /// Instructions, 64 bytes each.
    pub instructions: Option<Member<'a>>,
    /// Debug members of the compiler's back end.
    pub debug: Vec<Member<'a>>,
    /// Debug members of the assembler, slot for slot.
    pub assembler_debug: Vec<Member<'a>>,
    /// Tables that the engine loads.
    pub tables: Vec<Table<'a>>,
    /// Its slots by their bodies, once somebody asks.
    bodies: OnceLock<Bodies>,
}

impl EngineRoom<'_> {
    /// Its slots by what they do.
    pub(crate) fn bodies(&self) -> &Bodies {
        let slots = || Stream::new(self.instructions.map_or(&[][..], |m| m.bytes)).slots;
        self.bodies.get_or_init(|| Bodies::of(slots()))
    }
}

/// A table of the Activation or DVE engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Table<'a> {
    /// Function set, or number of the DVE table.
    pub set: Name<'a>,
    /// Role in its set: `bkt_bin`, `opcode_table`.
    pub role: Name<'a>,
    /// The member.
    pub member: Member<'a>,
}

impl<'a> Neff<'a> {
    /// Follows the names from `neff.json` on.
    ///
    /// # Errors
    /// No `neff.json`, or a JSON member that cannot be read. A missing member is not an error here: it is listed in
    /// [`dangling`](Neff::dangling).
    pub fn read(container: &'a Container<'a>, limits: &Limits) -> Result<Neff<'a>, Error> {
        let Some(root) = container.member("neff.json") else {
            let message = format!(
                "the tarball has no `neff.json` among its {} members",
                container.members().len()
            );
            return Err(Box::new(
                rules::MISSING_MEMBER.at(Place::file().in_part("tarball").at("neff.json"), message),
            ));
        };
        let graph_source = Source::new(root.path, root.bytes, limits)?;
        let graph = Graph::read(&graph_source)?;
        let mut follow = Follow::new(container, limits);
        let mut kelfs: Vec<(Source<'a>, Kelf<'a>)> = Vec::new();
        let (mut subgraphs, mut names) = (Vec::new(), HashSet::new());
        for (index, node) in graph.programs() {
            let place =
                || graph_source.place(graph_source.text, "", &format!("/nodes/{index}/attrs/kelf"));
            let Some(name) = &node.attrs.kelf else {
                continue;
            };
            if kelfs.len() == MAX_SUBGRAPHS {
                return Err(Box::new(rules::LIMIT.at(
                    place(),
                    format!("more than {MAX_SUBGRAPHS} nodes with kelf files"),
                )));
            }
            let Some(member) = follow.member("", name, place) else {
                continue;
            };
            follow.once(member, place)?;
            let source = Source::new(member.path, member.bytes, limits)?;
            let kelf = Kelf::read(&source)?;
            for (position, part) in kelf.graphs.iter().enumerate() {
                let place =
                    || source.place(source.text, "", &format!("/graphs/{position}/definition"));
                if let Some(member) = follow.member("", &part.definition, place) {
                    follow.once(member, place)?;
                    // Kelf files may use the same names, each for its own.
                    let is_taken = !names.insert(part.name.clone())
                        && !kelf
                            .graphs
                            .iter()
                            .take(position)
                            .any(|g| g.name == part.name);
                    let name = if is_taken {
                        Name(format!("kelf{}.{}", kelfs.len(), part.name).into())
                    } else {
                        part.name.clone()
                    };
                    subgraphs.push(follow.subgraph(member, name, kelfs.len())?);
                }
            }
            kelfs.push((source, kelf));
        }
        let architecture = kelfs
            .iter()
            .find_map(|(_, kelf)| kelf.architecture())
            .unwrap_or(Architecture::Any);
        let interface = graph.interface();
        Ok(Neff {
            container,
            graph,
            graph_source,
            interface,
            architecture,
            kelfs,
            subgraphs,
            dangling: follow.dangling,
        })
    }
}

/// Looks members up and notes the names that lead nowhere.
struct Follow<'a, 'l> {
    container: &'a Container<'a>,
    limits: &'l Limits,
    dangling: Vec<Finding>,
    taken: HashSet<&'a str>,
    transfers: u64,
    declarations: u64,
    turned: usize,
}

impl<'a, 'l> Follow<'a, 'l> {
    fn new(container: &'a Container<'a>, limits: &'l Limits) -> Follow<'a, 'l> {
        let (transfers, declarations) = (limits.transfers, limits.declarations);
        Follow {
            container,
            limits,
            dangling: Vec::new(),
            taken: HashSet::new(),
            transfers,
            declarations,
            turned: 0,
        }
    }

    /// Takes a member that belongs to one place only: read from many, a small file would become a large program.
    fn once(&mut self, member: Member<'a>, place: impl FnOnce() -> Place) -> Result<(), Error> {
        if self.taken.insert(member.path) {
            return Ok(());
        }
        Err(Box::new(rules::TWICE.at(
            place(),
            format!("`{}` is named a second time", member.path),
        )))
    }

    fn note(
        &mut self,
        rule: &'static Rule,
        place: impl FnOnce() -> Place,
        message: impl FnOnce() -> String,
    ) {
        // One more than is shown: the linter then says that there are more.
        if self.dangling.len() as u64 <= self.limits.findings {
            self.dangling.push(rule.at(place(), message()));
        }
    }

    fn member(
        &mut self,
        folder: &str,
        name: &str,
        place: impl FnOnce() -> Place,
    ) -> Option<Member<'a>> {
        self.find(folder, name, &rules::MISSING_MEMBER, place)
    }

    fn find(
        &mut self,
        folder: &str,
        name: &str,
        rule: &'static Rule,
        place: impl FnOnce() -> Place,
    ) -> Option<Member<'a>> {
        let name = name.strip_prefix("./").unwrap_or(name);
        let member = self.container.member(&format!("{folder}{name}"));
        if member.is_none() {
            self.note(rule, place, || {
                format!(
                    "names `{folder}{}`, which the tarball does not have",
                    clip(name, 300)
                )
            });
        }
        member
    }

    fn debug(
        &mut self,
        folder: &str,
        names: &[Name<'a>],
        source: &Source<'a>,
        key: &str,
    ) -> Vec<Member<'a>> {
        let found = names.iter().enumerate().filter_map(|(index, name)| {
            self.find(folder, name, &rules::MISSING_DEBUG, || {
                source.place(source.text, "", &format!("/{key}/{index}"))
            })
        });
        found.collect()
    }

    fn subgraph(
        &mut self,
        member: Member<'a>,
        name: Name<'a>,
        kelf: usize,
    ) -> Result<Subgraph<'a>, Error> {
        let source = Source::new(member.path, member.bytes, self.limits)?;
        let definition = Definition::read(&source, self.declarations)?;
        let declared = (definition.variables.len() + definition.queues.len()) as u64;
        self.declarations = self.declarations.saturating_sub(declared);
        let folder = member
            .path
            .rfind('/')
            .map_or("", |slash| &member.path[..=slash]);
        let mut engines = Vec::with_capacity(Engine::ALL.len());
        for engine in Engine::ALL {
            engines.push(self.engine(*engine, folder, &source, &definition)?);
        }
        let mut constants = Vec::with_capacity(definition.variables.len());
        for (name, variable) in &definition.variables {
            let file = variable
                .file_name
                .as_ref()
                .filter(|_| variable.kind == Some(VariableType::File));
            let mut pointer = "/var".to_owned();
            crate::json::push_key(&mut pointer, name);
            let place = || source.place(variable.text, &pointer, "/file_name");
            let member = file.and_then(|file| self.member(folder, file, place));
            let constant = match member.map(Constant::read) {
                Some(Err(why)) => {
                    self.note(why.rule, place, || why.message.clone());
                    None
                }
                read => read.and_then(Result::ok),
            };
            if let Some(Cow::Owned(bytes)) = constant.as_ref().map(|c| &c.bytes) {
                // Arrays that had to be turned are copies, and a file may name one array many times.
                self.turned += bytes.len();
                if self.turned > self.container.tarball().len() {
                    return Err(Box::new(rules::TWICE.at(
                        place(),
                        "constants in column-major order are named again and again",
                    )));
                }
            }
            constants.push(constant);
        }
        let dma_debug = self.debug(folder, &definition.dma_debug, &source, "dma_dbg");
        Ok(Subgraph {
            name,
            kelf,
            source,
            definition,
            engines,
            constants,
            dma_debug,
        })
    }

    fn engine(
        &mut self,
        engine: Engine,
        folder: &'a str,
        source: &Source<'a>,
        definition: &Definition<'a>,
    ) -> Result<EngineRoom<'a>, Error> {
        let mut room = EngineRoom::empty(engine);
        let Some(names) = definition.engine(engine) else {
            return Ok(room);
        };
        let key = engine.name();
        let at = |key: String| move || source.place(source.text, "", &format!("/{key}"));
        if let Some(member) = names
            .file
            .as_ref()
            .and_then(|name| self.member(folder, name, at(key.to_owned())))
        {
            let text = Source::new(member.path, member.bytes, self.limits)?;
            self.once(member, at(key.to_owned()))?;
            room.file = EngineFile::read(&text, self.transfers)?;
            self.transfers = self.transfers.saturating_sub(room.file.transfers());
            self.tables(&mut room, folder, &text)?;
            room.source = Some(text);
        }
        room.instructions = names
            .instructions
            .as_ref()
            .and_then(|name| self.member(folder, name, at(format!("{key}_instr"))));
        room.debug = self.debug(folder, &names.debug, source, &format!("{key}_dbg"));
        room.assembler_debug = self.debug(
            folder,
            &names.assembler_debug,
            source,
            &format!("{key}_asm_dbg"),
        );
        Ok(room)
    }

    /// Tables named by an engine file: the DVE's directly, the Activation engine's through the index of function sets.
    fn tables(
        &mut self,
        room: &mut EngineRoom<'a>,
        folder: &'a str,
        source: &Source<'a>,
    ) -> Result<(), Error> {
        for (index, table) in room.file.dve_tables.iter().enumerate() {
            for (role, file) in table {
                let place =
                    || source.place(source.text, "", &format!("/dve_tables/{index}/{role}"));
                if let Some(member) = self.member(folder, file, place) {
                    room.tables.push(Table {
                        set: Name(index.to_string().into()),
                        role: role.clone(),
                        member,
                    });
                }
            }
        }
        let Some(name) = &room.file.act_info else {
            return Ok(());
        };
        let Some(member) = self.member(folder, name, || source.place(source.text, "", "/act_info"))
        else {
            return Ok(());
        };
        let info_source = Source::new(member.path, member.bytes, self.limits)?;
        let info: ActivationInfo<'a> = info_source.parse()?;
        let sets: HashMap<&str, usize> = info
            .act_func_sets
            .iter()
            .enumerate()
            .map(|(position, set)| (&*set.name, position))
            .collect();
        for (index, wanted) in room.file.activation_function_sets.iter().enumerate() {
            let place = || {
                source.place(
                    source.text,
                    "",
                    &format!("/activation_function_sets/{index}"),
                )
            };
            let Some((position, set)) = sets
                .get(&**wanted)
                .and_then(|at| Some((*at, info.act_func_sets.get(*at)?)))
            else {
                self.note(&rules::FUNCTION_SET, place, || {
                    format!(
                        "`{}` has no function set `{}`",
                        member.path,
                        clip(wanted, 100)
                    )
                });
                continue;
            };
            for (role, file) in [
                ("bkt_bin", &set.bkt_bin),
                ("ctrl_bin", &set.ctrl_bin),
                ("profile_json", &set.profile_json),
            ] {
                let place = || {
                    info_source.place(
                        info_source.text,
                        "",
                        &format!("/act_func_sets/{position}/{role}"),
                    )
                };
                if let Some(member) = file
                    .as_ref()
                    .and_then(|file| self.member(folder, file, place))
                {
                    room.tables.push(Table {
                        set: wanted.clone(),
                        role: role.into(),
                        member,
                    });
                }
            }
        }
        Ok(())
    }
}

impl EngineRoom<'_> {
    fn empty<'a>(engine: Engine) -> EngineRoom<'a> {
        EngineRoom {
            engine,
            source: None,
            file: EngineFile::default(),
            instructions: None,
            debug: Vec::new(),
            assembler_debug: Vec::new(),
            tables: Vec::new(),
            bodies: OnceLock::new(),
        }
    }
}

/// The index of Activation's function sets.
#[derive(Deserialize)]
struct ActivationInfo<'a> {
    #[serde(borrow, default)]
    act_func_sets: Vec<FunctionSet<'a>>,
}

#[derive(Deserialize)]
struct FunctionSet<'a> {
    #[serde(borrow, default)]
    name: Name<'a>,
    #[serde(borrow)]
    bkt_bin: Option<Name<'a>>,
    #[serde(borrow)]
    ctrl_bin: Option<Name<'a>>,
    #[serde(borrow)]
    profile_json: Option<Name<'a>>,
}
