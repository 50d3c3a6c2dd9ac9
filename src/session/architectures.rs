//! What CUDA C++ is compiled for: the architectures that `TORCH_CUDA_ARCH_LIST` names, else those of the targets.
//!
//! It does not know which of them nvcc has.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use t2t_host::device;
use t2t_spec::Spec;

use super::NoSession;

/// The families that torch has names for (`torch.utils.cpp_extension`), a name before any that it begins with.
const FAMILIES: [(&str, &str); 14] = [
    ("Kepler+Tesla", "3.7"),
    ("Kepler", "3.5+PTX"),
    ("Maxwell+Tegra", "5.3"),
    ("Maxwell", "5.0;5.2+PTX"),
    ("Pascal", "6.0;6.1+PTX"),
    ("Volta+Tegra", "7.2"),
    ("Volta", "7.0+PTX"),
    ("Turing", "7.5+PTX"),
    ("Ampere+Tegra", "8.7"),
    ("Ampere", "8.0;8.6+PTX"),
    ("Ada", "8.9+PTX"),
    ("Hopper", "9.0+PTX"),
    ("Blackwell+Tegra", "11.0"),
    ("Blackwell", "10.0;10.3;12.0;12.1+PTX"),
];

/// The major version from which devices have instructions that no later ones have.
const OWN: u64 = 9;

/// Returns the architectures of a workspace, none where no variant is in CUDA C++: a list that is meant for other programs is not looked at then.
pub(super) fn architectures(
    spec: &Spec,
    listed: Option<&str>,
    targets: &BTreeMap<String, Value>,
) -> Result<Vec<String>, NoSession> {
    let has_cuda = spec.ops.iter().flat_map(|op| &op.variants).any(|variant| variant.cuda.is_some());
    if has_cuda { named(listed, targets) } else { Ok(Vec::new()) }
}

/// Returns the architectures as nvcc names them, those of devices first: those that `listed` (`$TORCH_CUDA_ARCH_LIST`) names, else those of `targets`, rows of the
/// device table. Fails where the list names none.
fn named(listed: Option<&str>, targets: &BTreeMap<String, Value>) -> Result<Vec<String>, NoSession> {
    let Some(listed) = listed.filter(|listed| !listed.trim().is_empty()) else {
        let of = |row: &Value| {
            let own = if row["capability"][0].as_u64().unwrap_or(0) >= OWN { "a" } else { "" };
            device::architecture(row) + own
        };
        return Ok(targets.values().map(of).collect::<BTreeSet<String>>().into_iter().collect());
    };
    let mut spelled = listed.replace(' ', ";");
    for (family, numbers) in FAMILIES {
        spelled = spelled.replace(family, numbers);
    }
    let (mut devices, mut ptx) = (BTreeSet::new(), BTreeSet::new());
    for one in spelled.split(';').filter(|one| !one.is_empty()) {
        let number = one.strip_suffix("+PTX").unwrap_or(one);
        let name = name(number).ok_or_else(|| unknown(one))?;
        ptx.extend((number != one).then(|| format!("compute_{name}")));
        devices.insert(format!("sm_{name}"));
    }
    Ok(devices.into_iter().chain(ptx).collect())
}

/// Returns `90a` of `9.0a`; None of what is no architecture.
fn name(number: &str) -> Option<String> {
    let (major, rest) = number.split_once('.')?;
    let minor = rest.strip_suffix(['a', 'f']).unwrap_or(rest);
    let is_number =
        |text: &str, most: usize| (1..=most).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    (is_number(major, 2) && is_number(minor, 1)).then(|| format!("{major}{rest}"))
}

fn unknown(one: &str) -> NoSession {
    NoSession::Use {
        message: format!("`TORCH_CUDA_ARCH_LIST` names `{one}`, which is no architecture"),
        hint: "write it as torch takes it, as in `8.0;9.0a`, `8.6+PTX` or `Hopper`; or unset it, and ops.yaml's `targets` count".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(listed: &str) -> Vec<String> {
        named(Some(listed), &BTreeMap::new()).unwrap()
    }

    #[test]
    fn a_list_is_read_as_torch_reads_it() {
        assert_eq!(of("8.0;9.0a"), ["sm_80", "sm_90a"]);
        assert_eq!(of("8.6+PTX 7.5"), ["sm_75", "sm_86", "compute_86"]);
        assert_eq!(of("Hopper;Ampere"), ["sm_80", "sm_86", "sm_90", "compute_86", "compute_90"]);
        assert_eq!(of("12.0f"), ["sm_120f"]);
        assert_eq!(of("Blackwell+Tegra"), ["sm_110"]);
    }

    #[test]
    fn what_is_no_architecture_is_named() {
        for listed in ["sm_90", "9", "9.0b", "9.00", "x.y", "8.0;+PTX", "8.0,9.0", "a.0"] {
            let Err(NoSession::Use { message, .. }) = named(Some(listed), &BTreeMap::new()) else { panic!("{listed}") };
            assert!(message.contains("is no architecture"), "{message}");
        }
    }

    #[test]
    fn without_a_list_the_targets_count_each_architecture_once() {
        let row = |major: u64, minor: u64| json!({"capability": [major, minor]});
        let rows = [("h200", row(9, 0)), ("h100", row(9, 0)), ("l4", row(8, 9)), ("b200", row(10, 0))];
        let targets = rows.map(|(id, row)| (id.to_owned(), row)).into();
        for listed in [None, Some(""), Some(" ")] {
            assert_eq!(named(listed, &targets).unwrap(), ["sm_100a", "sm_89", "sm_90a"]);
        }
    }
}
