//! What ops.yaml declares, with nothing left to default: for scripts, which need not read YAML then.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use t2t_plan::graph::Wanted;
use t2t_plan::graph::expand::profile;

use crate::session::Session;

/// Returns the ops of the wanted actions as JSON: each as the harness gets it on the lane of this machine, with its variants, protocol and baselines. A variant is `generated` where no person wrote its file.
pub(crate) fn ops(session: &Session, wanted: &Wanted) -> String {
    let profile = profile(&session.inventory.device.class);
    let picked = session.graph.indices().filter(|index| wanted.wanted[index.number()]);
    let named: BTreeSet<&str> = picked.map(|index| session.graph.action(index).target().op.as_str()).collect();
    let rows = session.spec.ops.iter().filter(|op| named.contains(op.name.as_str())).map(|op| {
        let declaration = op.declaration(profile);
        let variants = op.variants.iter().map(|variant| {
            let mut row = json!(variant);
            row["generated"] = session.inventory.generated.contains(&variant.file).into();
            row
        });
        json!({
            "protocol": declaration.protocol,
            "baselines": declaration.baselines,
            "op": declaration,
            "variants": variants.collect::<Vec<_>>(),
        })
    });
    format!("{:#}\n", Value::Array(rows.collect()))
}
