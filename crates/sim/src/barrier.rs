//! Barriers: producer and consumer counts with a FIFO of configurations.

use chipless_model::{Configuration, ConfigurationId, IndexVec};
use std::collections::VecDeque;

#[derive(Debug, Default)]
pub(crate) struct Barrier {
    active: Option<ConfigurationId>,
    producers: u32,
    consumers: u32,
    fifo: VecDeque<ConfigurationId>,
    depth: Option<u32>,
}

impl Barrier {
    pub(crate) fn new(
        preloaded: &[ConfigurationId],
        depth: Option<u32>,
        configurations: &IndexVec<ConfigurationId, Configuration>,
    ) -> Barrier {
        let mut barrier = Barrier {
            fifo: preloaded.iter().copied().collect(),
            depth,
            ..Barrier::default()
        };
        barrier.load(configurations);
        barrier
    }

    pub(crate) fn lit(&self) -> bool {
        self.active.is_some() && self.producers == 0
    }

    pub(crate) fn active(&self) -> Option<ConfigurationId> {
        self.active
    }

    /// Counts that are left: producers, consumers.
    pub(crate) fn counts(&self) -> (u32, u32) {
        (self.producers, self.consumers)
    }

    pub(crate) fn produce(&mut self) -> Result<(), &'static str> {
        match self.active {
            None => Err("is produced while it has no configuration"),
            Some(_) if self.producers == 0 => {
                Err("is produced more often than its configuration says")
            }
            Some(_) => {
                self.producers -= 1;
                Ok(())
            }
        }
    }

    pub(crate) fn consume(&mut self) -> Result<(), &'static str> {
        match self.active {
            None => Err("is consumed while it has no configuration"),
            Some(_) if self.consumers == 0 => {
                Err("is consumed more often than its configuration says")
            }
            Some(_) => {
                self.consumers -= 1;
                Ok(())
            }
        }
    }

    pub(crate) fn push(
        &mut self,
        configuration: ConfigurationId,
        configurations: &IndexVec<ConfigurationId, Configuration>,
    ) -> Result<(), &'static str> {
        self.fifo.push_back(configuration);
        if self.active.is_none() {
            self.load(configurations);
        }
        if self
            .depth
            .is_some_and(|depth| self.fifo.len() > depth as usize)
        {
            return Err("is given more configurations than its FIFO holds");
        }
        Ok(())
    }

    /// If the active configuration is used up, activates the next one and returns the one that retired.
    pub(crate) fn retire(
        &mut self,
        configurations: &IndexVec<ConfigurationId, Configuration>,
    ) -> Option<ConfigurationId> {
        let active = self.active?;
        // A configuration without consumers ends the program: it stays lit.
        if self.producers != 0 || self.consumers != 0 || configurations[active].consumers == 0 {
            return None;
        }
        self.load(configurations);
        Some(active)
    }

    fn load(&mut self, configurations: &IndexVec<ConfigurationId, Configuration>) {
        self.active = self.fifo.pop_front();
        if let Some(active) = self.active {
            self.producers = configurations[active].producers;
            self.consumers = configurations[active].consumers;
        }
    }
}
