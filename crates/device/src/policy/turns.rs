//! Turns of those that compete on one level: processes of a band, contexts of a process.

/// Where one of them stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It waits for its turn since the instant of this number.
    Waits(u64),
    /// Its turn runs since then.
    Runs(u64),
    /// Its turn, which began at the first instant, ended at the second; its job may end.
    Ended(u64, u64),
}

#[derive(Clone, Debug)]
pub(super) struct Turns<K> {
    entries: Vec<(K, State)>,
    numbers: u64,
}

impl<K> Default for Turns<K> {
    fn default() -> Self {
        Turns {
            entries: Vec::new(),
            numbers: 0,
        }
    }
}

/// How those of one level stand at an instant.
pub(super) struct Level<'l, K> {
    /// Those with waiting jobs, in the order in which these came.
    pub(super) waiting: &'l [K],
    /// Those that hold a place.
    pub(super) holding: &'l [K],
    /// How long a turn lasts.
    pub(super) quantum: &'l dyn Fn(K) -> u64,
    /// Whether the first waits where the second has its turn, and may end it.
    pub(super) competes: &'l dyn Fn(K, K) -> bool,
}

impl<K: Copy + PartialEq> Turns<K> {
    pub(super) fn state(&self, key: K) -> State {
        let entry = self.entries.iter().find(|(known, _)| *known == key);
        entry.map_or(State::Waits(u64::MAX), |(_, state)| *state)
    }

    /// Begins and ends turns. `wake` is told when a running turn will end.
    pub(super) fn update(&mut self, now: u64, level: &Level<'_, K>, wake: &mut dyn FnMut(u64)) {
        let waits = |key: &K| level.waiting.contains(key);
        let holds = |key: &K| level.holding.contains(key);
        self.entries.retain(|(key, _)| waits(key) || holds(key));
        for key in level.waiting {
            if !self.entries.iter().any(|(known, _)| known == key) {
                self.numbers += 1;
                self.entries.push((*key, State::Waits(self.numbers)));
            }
        }
        for index in 0..self.entries.len() {
            let (key, state) = self.entries[index];
            let is_wanted = || {
                level
                    .waiting
                    .iter()
                    .any(|other| (level.competes)(*other, key))
            };
            let next = match state {
                State::Waits(_) => continue,
                State::Runs(began) => {
                    let end = began.saturating_add((level.quantum)(key));
                    if !is_wanted() {
                        continue;
                    }
                    if now < end {
                        wake(end);
                        continue;
                    }
                    State::Ended(began, now)
                }
                // Those that waited have their places elsewhere.
                State::Ended(began, _) if holds(&key) && !is_wanted() => State::Runs(began),
                ended @ State::Ended(..) => ended,
            };
            self.entries[index].1 = next;
        }
        // Whose turn has ended and whose job has left the device is the last of those that wait.
        for index in 0..self.entries.len() {
            let (key, state) = self.entries[index];
            if matches!(state, State::Ended(..)) && !holds(&key) {
                self.numbers += 1;
                self.entries[index].1 = State::Waits(self.numbers);
            }
        }
    }

    /// A job of one of them starts on the device.
    pub(super) fn start(&mut self, now: u64, key: K) {
        match self.entries.iter_mut().find(|(known, _)| *known == key) {
            Some((_, state @ State::Waits(_))) => *state = State::Runs(now),
            Some(_) => {}
            None => self.entries.push((key, State::Runs(now))),
        }
    }
}

impl State {
    /// Running turns first, then those that have waited longest.
    pub(super) const fn order(self) -> (u8, u64) {
        match self {
            State::Runs(began) => (0, began),
            State::Waits(number) => (1, number),
            State::Ended(..) => (2, 0),
        }
    }
}
