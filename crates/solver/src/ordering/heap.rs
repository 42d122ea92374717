//! Variables by activity: the one that took part in most of the latest conflicts first.

use super::literal::Variable;

const NOWHERE: u32 = u32::MAX;
/// Activities are brought down when one gets larger than this.
const LARGEST: f64 = 1e100;
/// Less than what one conflict brings.
const PREFERRED: f64 = 0.5;
/// How fast old conflicts are forgotten.
const DECAY: f64 = 0.95;

/// How active every variable is.
#[derive(Debug)]
pub(super) struct Activities {
    of: Vec<f64>,
    increment: f64,
}

impl Default for Activities {
    fn default() -> Self {
        Self { of: Vec::new(), increment: 1.0 }
    }
}

impl Activities {
    pub(super) fn add(&mut self, activity: f64) {
        self.of.push(activity);
    }

    pub(super) fn get(&self, variable: Variable) -> f64 {
        self.of[variable.index()]
    }

    /// The variable comes before others that took part in no conflict, and among such ones before
    /// those with a smaller share, which is of 1.
    pub(super) fn prefer(&mut self, variable: Variable, share: f64) {
        let activity = &mut self.of[variable.index()];
        *activity = activity.max(PREFERRED * share);
    }

    /// The variable gets this activity, whatever it had. Heaps that have it are to be made anew.
    pub(super) fn set(&mut self, variable: Variable, activity: f64) {
        self.of[variable.index()] = activity;
    }

    /// The variable took part in a conflict.
    pub(super) fn bump(&mut self, variable: Variable) {
        let activity = &mut self.of[variable.index()];
        *activity += self.increment;
        if *activity > LARGEST {
            self.of.iter_mut().for_each(|activity| *activity /= LARGEST);
            self.increment /= LARGEST;
        }
    }

    /// The conflict is over.
    pub(super) fn decay(&mut self) {
        self.increment /= DECAY;
    }
}

/// A heap of variables, the most active first; of equals the one with the smaller number.
#[derive(Debug, Default)]
pub(super) struct Heap {
    items: Vec<Variable>,
    places: Vec<u32>,
}

impl Heap {
    fn place(&self, variable: Variable) -> Option<usize> {
        let place = *self.places.get(variable.index())?;
        (place != NOWHERE).then_some(place as usize)
    }

    fn earlier(activities: &Activities, a: Variable, b: Variable) -> bool {
        let (x, y) = (activities.get(a), activities.get(b));
        x > y || (x == y && a < b)
    }

    pub(super) fn insert(&mut self, activities: &Activities, variable: Variable) {
        if self.place(variable).is_some() {
            return;
        }
        if self.places.len() <= variable.index() {
            self.places.resize(variable.index() + 1, NOWHERE);
        }
        self.places[variable.index()] = self.items.len() as u32;
        self.items.push(variable);
        self.up(activities, self.items.len() - 1);
    }

    /// Without variables.
    pub(super) fn clear(&mut self) {
        self.items.clear();
        self.places.clear();
    }

    /// To be called when the variable has become more active.
    pub(super) fn raise(&mut self, activities: &Activities, variable: Variable) {
        if let Some(place) = self.place(variable) {
            self.up(activities, place);
        }
    }

    pub(super) fn pop(&mut self, activities: &Activities) -> Option<Variable> {
        let first = *self.items.first()?;
        let last = self.items.pop()?;
        self.places[first.index()] = NOWHERE;
        if last != first {
            self.items[0] = last;
            self.places[last.index()] = 0;
            self.down(activities, 0);
        }
        Some(first)
    }

    fn up(&mut self, activities: &Activities, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if !Self::earlier(activities, self.items[place], self.items[parent]) {
                break;
            }
            self.swap(place, parent);
            place = parent;
        }
    }

    fn down(&mut self, activities: &Activities, mut place: usize) {
        loop {
            let mut best = place;
            for child in [2 * place + 1, 2 * place + 2] {
                if child < self.items.len()
                    && Self::earlier(activities, self.items[child], self.items[best])
                {
                    best = child;
                }
            }
            if best == place {
                return;
            }
            self.swap(place, best);
            place = best;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.items.swap(a, b);
        self.places[self.items[a].index()] = a as u32;
        self.places[self.items[b].index()] = b as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::{Activities, Heap, Variable};

    #[test]
    fn the_most_active_variable_comes_first() {
        let mut activities = Activities::default();
        let mut heap = Heap::default();
        for index in 0..6 {
            activities.add(0.0);
            heap.insert(&activities, Variable(index));
        }
        for index in [4, 2, 4] {
            activities.bump(Variable(index));
            heap.raise(&activities, Variable(index));
        }
        let order: Vec<u32> =
            std::iter::from_fn(|| heap.pop(&activities)).map(|variable| variable.0).collect();
        assert_eq!(order, [4, 2, 0, 1, 3, 5]);
    }
}
