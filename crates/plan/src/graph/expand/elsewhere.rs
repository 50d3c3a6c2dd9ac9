//! Which kernel a result of a device that this machine lacks would be of: what a bench there depends on, but for the machine and the harness.
//!
//! It does not know what is published.

use std::collections::BTreeMap;

use t2t_model::action::Phase;
use t2t_model::digest::Digest;
use t2t_model::manifest::{Fact, Manifest};
use t2t_spec::{Op, Spec, Variant};

use super::{Expansion, Inventory};

/// What the facts' names begin with that say which kernel is measured, and how. Others are of the machine, of the toolchain, or of what judged it.
const OF_A_KERNEL: [&str; 4] = ["declaration.", "source.", "sources", "variant."];

/// What of a manifest says which kernel is measured, and how.
#[must_use]
pub fn of_a_kernel(manifest: &Manifest) -> BTreeMap<&str, &Fact> {
    let is_told = |name: &str| OF_A_KERNEL.iter().any(|prefix| name.starts_with(prefix));
    manifest.facts.iter().map(|(name, fact)| (name.as_str(), fact)).filter(|(name, _)| is_told(name)).collect()
}

/// Returns the facts by which a bench of `variant` on the device elsewhere would be known; None where nothing is published of one. Of a kernel that a generator writes
/// they do not say which.
#[must_use]
pub fn measured_elsewhere(spec: &Spec, inventory: &Inventory, op: &Op, variant: &Variant) -> Option<Manifest> {
    let elsewhere = inventory.elsewhere.as_ref()?;
    let action = Expansion::on(&elsewhere.device, op, spec, inventory).of_variant(variant, Phase::Bench, 1);
    Some(Manifest { facts: action.facts })
}

impl Expansion<'_> {
    /// Returns the facts of a selection that shows what is published of a device elsewhere: what that is, and for which kernels it would stand.
    pub(super) fn shown_elsewhere(&self) -> BTreeMap<String, Fact> {
        let Some(elsewhere) = &self.inventory.elsewhere else { return BTreeMap::new() };
        let Some(published) = elsewhere.ops.get(&self.op.name) else { return BTreeMap::new() };
        let there = Expansion::on(&elsewhere.device, self.op, self.spec, self.inventory);
        let kernels = self.op.variants.iter().map(|variant| {
            let manifest = Manifest { facts: there.of_variant(variant, Phase::Bench, 1).facts };
            let told: BTreeMap<String, Fact> =
                of_a_kernel(&manifest).into_iter().map(|(name, fact)| (name.to_owned(), fact.clone())).collect();
            let digest: Digest = Manifest { facts: told }.key();
            (format!("kernel.{}", variant.name), Fact::Digest(digest))
        });
        kernels.chain([("published".to_owned(), Fact::Digest(*published))]).collect()
    }
}
