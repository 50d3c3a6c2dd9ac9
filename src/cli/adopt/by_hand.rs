//! What an entry by hand needs, as far as names in the reference's file show it.
//!
//! It does not know whether the reference takes it.

use t2t_python::parameters::{Defined, Parameter, defined};

/// How arguments that hold places are named, and how ops.yaml has them drawn.
const DRAWN: [(&[&str], &str); 5] = [
    (&["cu_seqlens", "indptr", "offsets"], "{shape: [B+1], dtype: int32, init: {offsets: M}}"),
    (&["slot_mapping", "slots"], "{shape: [M], dtype: int64, init: {unique: [0, P]}}"),
    (&["block_tables", "block_table"], "{shape: [B, P], dtype: int32, init: {unique: [0, B*P]}}"),
    (&["segment_ids", "batch_ids"], "{shape: [M], dtype: int64, init: {sorted: {of: {randint: [0, B]}}}}"),
    (&["ids", "indices", "index", "idx"], "{shape: [M], dtype: int64, init: {randint: [0, V]}}"),
];

/// Returns what the reference `name` in the file `file`, which holds `text`, needs in ops.yaml; empty where its definition shows nothing.
pub(super) fn needs(file: &str, text: &str, name: &str) -> Vec<String> {
    let mut needed = Vec::new();
    let is_class = defined(text, name) == Some(Defined::Class);
    if is_class {
        let wanted: Vec<String> = parameters(text, &format!("{name}.__init__"))
            .into_iter()
            .skip(1)
            .filter(|one| one.default.is_none())
            .map(|one| format!("{}: …", one.name))
            .collect();
        if !wanted.is_empty() {
            needed.push(format!("`reference: {{file: {file}, name: {name}, init: {{{}}}}}`", wanted.join(", ")));
        }
    }
    let called = if is_class { format!("{name}.forward") } else { name.to_owned() };
    needed.extend(parameters(text, &called).iter().filter_map(|one| {
        let own = one.name.to_lowercase();
        let fits = |word: &&str| format!("_{own}_").contains(&format!("_{word}_"));
        let (_, drawn) = DRAWN.iter().find(|(words, _)| words.iter().any(fits))?;
        Some(format!("`{}: {drawn}`", one.name))
    }));
    needed
}

fn parameters(text: &str, name: &str) -> Vec<Parameter> {
    match defined(text, name) {
        Some(Defined::Function(all)) => all,
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::needs;

    #[test]
    fn constructors_and_names_of_places_show_what_is_needed() {
        let text = "class Norm:\n    def __init__(self, hidden, eps=1e-6): ...\n    def forward(self, x): ...\n\
            def varlen(q, cu_seqlens_q, block_tables=None): ...\n\
            def gathered(x, topk_ids, Offsets, segment_ids, slot_mapping, width): ...\n";
        assert_eq!(needs("ref.py", text, "Norm"), ["`reference: {file: ref.py, name: Norm, init: {hidden: …}}`"]);
        let varlen = [
            "`cu_seqlens_q: {shape: [B+1], dtype: int32, init: {offsets: M}}`",
            "`block_tables: {shape: [B, P], dtype: int32, init: {unique: [0, B*P]}}`",
        ];
        assert_eq!(needs("ref.py", text, "varlen"), varlen);
        let gathered = [
            "`topk_ids: {shape: [M], dtype: int64, init: {randint: [0, V]}}`",
            "`Offsets: {shape: [B+1], dtype: int32, init: {offsets: M}}`",
            "`segment_ids: {shape: [M], dtype: int64, init: {sorted: {of: {randint: [0, B]}}}}`",
            "`slot_mapping: {shape: [M], dtype: int64, init: {unique: [0, P]}}`",
        ];
        assert_eq!(needs("ref.py", text, "gathered"), gathered);
        assert!(needs("ref.py", text, "gone").is_empty());
    }
}
