//! A map shared by threads that hands out clones, never guards: no lock can be held across an await.

use std::{collections::hash_map::RandomState, hash::Hash};

use dashmap::DashMap;

#[derive(Debug)]
pub(crate) struct SharedMap<K: Eq + Hash, V>(DashMap<K, V, RandomState>);

impl<K: Eq + Hash, V> Default for SharedMap<K, V> {
    fn default() -> Self {
        Self(DashMap::with_hasher(RandomState::new()))
    }
}

impl<K: Eq + Hash + Clone, V: Clone> SharedMap<K, V> {
    pub(crate) fn get(&self, key: &K) -> Option<V> {
        self.0.view(key, |_, value| value.clone())
    }

    pub(crate) fn get_or_insert_with(&self, key: &K, make: impl FnOnce() -> V) -> V {
        match self.get(key) {
            Some(value) => value,
            None => self.0.entry(key.clone()).or_insert_with(make).value().clone(),
        }
    }

    pub(crate) fn remove(&self, key: &K) -> Option<V> {
        self.0.remove(key).map(|(_, value)| value)
    }

    pub(crate) fn remove_if(&self, key: &K, judge: impl FnOnce(&V) -> bool) -> Option<V> {
        self.0.remove_if(key, |_, value| judge(value)).map(|(_, value)| value)
    }

    pub(crate) fn values(&self) -> Vec<V> {
        self.0.iter().map(|entry| entry.value().clone()).collect()
    }
}
