//! Random worlds and random edits of them, the same for the same seed.
//!
//! It does not know what is built of them.

use std::collections::BTreeSet;

use t2t_model::action::Need;

use crate::world::{ARTIFACTS, Edge, File, Files, Find, Recipe, Step, Temper, World, is_python};

/// Numbers that look random (Steele, Lea and Flood's `SplitMix64`).
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number below `sides`.
    pub fn below(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        let sides = u64::try_from(sides).expect("a usize fits");
        usize::try_from(mixed % sides).expect("it is below a usize")
    }

    /// Returns true once in so many times.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// Returns one of `things`.
    pub fn pick<'a, T>(&mut self, things: &'a [T]) -> &'a T {
        &things[self.below(things.len())]
    }

    fn several<T: Clone>(&mut self, count: usize, things: &[T]) -> Vec<T> {
        (0..count).map(|_| self.pick(things).clone()).collect()
    }

    fn shuffle<T>(&mut self, things: &mut [T]) {
        for last in (1..things.len()).rev() {
            things.swap(last, self.below(last + 1));
        }
    }
}

/// Returns a world of 1 to 40 actions over 3 to 10 files, some of which are not there yet.
pub fn world(dice: &mut Dice) -> World {
    let names = names(3 + dice.below(8));
    let mut files = Files::new();
    for name in &names {
        if !dice.once_in(5) {
            files.insert(name.clone(), file(dice, name));
        }
    }
    let mut steps = Vec::new();
    for _ in 0..=dice.below(40) {
        let step = step(dice, &steps, &names);
        steps.push(step);
    }
    let order = (0..steps.len()).collect();
    World { files, steps, order }
}

/// Returns the first names of files: two in three are Python.
pub fn names(count: usize) -> Vec<String> {
    let ending = |number: usize| if number % 3 == 2 { "json" } else { "py" };
    (0..count).map(|number| format!("kernels/f{number}.{}", ending(number))).collect()
}

fn file(dice: &mut Dice, name: &str) -> File {
    File { meaning: dice.below(4), comment: if is_python(name) { dice.below(3) } else { 0 } }
}

fn step(dice: &mut Dice, earlier: &[Step], names: &[String]) -> Step {
    let twins: Vec<&Step> = earlier.iter().filter(|step| step.recipe.temper != Temper::Slow).collect();
    if !twins.is_empty() && dice.once_in(8) {
        return (*dice.pick(&twins)).clone();
    }
    let sources: BTreeSet<String> = (0..dice.below(3)).map(|_| dice.pick(names).clone()).collect();
    Step {
        recipe: recipe(dice, earlier.len(), names),
        param: dice.below(3),
        sources: sources.into_iter().collect(),
        edges: edges(dice, earlier.len()),
        deadline: deadline(dice),
    }
}

fn recipe(dice: &mut Dice, number: usize, names: &[String]) -> Recipe {
    let tempers = [Temper::Steady, Temper::Steady, Temper::Fussy, Temper::Citing, Temper::Slow];
    let finds = (0..dice.below(3)).map(|_| find(dice, names)).collect();
    Recipe {
        number: number + 1000 * dice.below(1000),
        artifacts: 1 + dice.below(3),
        temper: *dice.pick(&tempers),
        finds,
    }
}

fn find(dice: &mut Dice, names: &[String]) -> Find {
    let mut name = || dice.pick(names).clone();
    let (first, second, third) = (name(), name(), name());
    match dice.below(3) {
        0 => Find::Always(first),
        1 => Find::Switch { on: first, even: second, odd: third },
        _ => Find::First(dice.several(3, names)),
    }
}

fn edges(dice: &mut Dice, earlier: usize) -> Vec<Edge> {
    if earlier == 0 {
        return Vec::new();
    }
    (0..dice.below(4)).map(|_| edge(dice, earlier)).collect()
}

/// Returns an edge to an earlier action, mostly to a late one, so that graphs are deep as well as wide.
fn edge(dice: &mut Dice, earlier: usize) -> Edge {
    let on = if dice.once_in(3) { dice.below(earlier) } else { earlier - 1 - dice.below(earlier.min(4)) };
    let needs = [Need::Pass, Need::Pass, Need::Pass, Need::Settle, Need::Settle, Need::Reject];
    let reads: [&'static [&'static str]; 5] = [&[], &["a"], &["b"], &["a", "b"], &ARTIFACTS];
    let need = if dice.once_in(2) { Need::Settle } else { *dice.pick(&needs) };
    Edge { on, need, reads: reads[dice.below(reads.len())] }
}

fn deadline(dice: &mut Dice) -> usize {
    20 * dice.below(6)
}

/// Changes one thing of `world`. `past` holds what files and actions were before, for edits that are undone.
pub fn edit(dice: &mut Dice, world: &mut World, past: &[World]) {
    match dice.below(10) {
        0..=2 => write(dice, world),
        3 => comment(dice, world),
        4 => delete(dice, world),
        5 => dice.shuffle(&mut world.order),
        6 | 7 => *world = dice.pick(past).clone(),
        8 => set_param(dice, world),
        _ => set_deadline(dice, world),
    }
}

/// Writes a file, which may not have been there.
fn write(dice: &mut Dice, world: &mut World) {
    let name = dice.pick(&names(10)).clone();
    let written = file(dice, &name);
    world.files.insert(name, written);
}

fn comment(dice: &mut Dice, world: &mut World) {
    for (name, file) in &mut world.files {
        if is_python(name) && dice.once_in(2) {
            file.comment = dice.below(3);
        }
    }
}

fn delete(dice: &mut Dice, world: &mut World) {
    let name = dice.pick(&names(10)).clone();
    world.files.remove(&name);
}

fn set_param(dice: &mut Dice, world: &mut World) {
    let number = dice.below(world.steps.len());
    world.steps[number].param = dice.below(3);
}

fn set_deadline(dice: &mut Dice, world: &mut World) {
    let one_in = 1 + dice.below(3);
    for step in &mut world.steps {
        if dice.once_in(one_in) {
            step.deadline = deadline(dice);
        }
    }
}
