//! What bounds made-up calls, where the answer follows from the numbers.

use serde_json::json;
use t2t_protocol::{Analysis, Calibration, Profile, ProfileLimits, ProfiledLaunch};

use super::*;

const H200: ProfileLimits =
    ProfileLimits { capability: [9, 0], multiprocessors: 132, threads: 2048, registers: 65536, shared: 233_472 };

fn launch(kernel: &str, us: f64, programs: u64) -> ProfiledLaunch {
    let (grid, block) = (Some([programs, 1, 1]), Some([128, 1, 1]));
    ProfiledLaunch { kernel: kernel.to_owned(), us, grid, block, registers: Some(32), shared: Some(0) }
}

fn profile(host_us: f64, calls: Vec<Vec<ProfiledLaunch>>) -> Profile {
    let binding = [("M".to_owned(), 4096)].into();
    let named = |text: &str| text.to_owned();
    Profile {
        size: named("large"),
        binding,
        dtype: named("float32"),
        host_us,
        limits: H200,
        calls,
        ..Profile::default()
    }
}

/// Of an op of 4 GB, and `flops`, on a device that copies 4 TB/s and multiplies 400 TFLOP/s: 1 ms for the bytes.
fn found(profile: &Profile, flops: f64) -> Profiled {
    let analysis: Analysis = serde_json::from_value(
        json!({"dtype": "float32", "sizes": {"large": {"dims": {"M": 4096}, "bytes": 4_000_000_000_u64, "flops": flops}}}),
    )
    .unwrap();
    let product = json!({"side": 8192, "mean": 1.0, "median": 1.0, "p20": 1.0, "p80": 1.0, "tflop_per_s": 400.0});
    let calibration: Calibration =
        serde_json::from_value(json!({"copy_gb_per_s": 4000.0, "products": {"float32": product}})).unwrap();
    let beside =
        Beside { analysis: Some(&analysis), calibration: Some(&calibration), resources: None, precision: "ieee" };
    profiled(profile, &beside).unwrap()
}

#[test]
fn each_rule_has_a_call_that_it_and_no_earlier_one_holds_for() {
    let bound =
        |host_us, us, programs, flops| found(&profile(host_us, vec![vec![launch("k", us, programs)]]), flops).bound;
    assert_eq!(bound(3000.0, 1250.0, 10, 1e9), Bound::Host);
    assert_eq!(bound(20.0, 1250.0, 131, 1e9), Bound::FewPrograms);
    assert_eq!(bound(20.0, 1250.0, 132, 1e9), Bound::Memory);
    assert_eq!(bound(20.0, 1700.0, 132, 1e9), Bound::Latency);
    // 1.2e12 operations take 3 ms at the rate of a product: more than the bytes.
    assert_eq!(bound(20.0, 4000.0, 132, 1.2e12), Bound::Compute);
    assert_eq!(bound(20.0, 6000.0, 132, 1.2e12), Bound::Latency);
}

#[test]
fn what_was_not_counted_bounds_nothing_and_what_was_not_recorded_has_no_figures() {
    let one = profile(1.0, vec![vec![launch("k", 100.0, 1000)]]);
    let unknown = profiled(&one, &Beside::default()).unwrap();
    assert_eq!((unknown.bound, unknown.gb_per_s, unknown.of_copy), (Bound::Unknown, None, None));
    assert!(profiled(&profile(1.0, Vec::new()), &Beside::default()).is_none());
}

#[test]
fn rates_and_shares_are_those_of_medians_over_the_calls() {
    let call =
        |first, second| vec![launch("short", second, 200), launch("long", first, 200), launch("short", second, 200)];
    // The second call was disturbed.
    let found = found(&profile(1.0, vec![call(1000.0, 500.0), call(9000.0, 4500.0), call(1000.0, 500.0)]), 1e9);
    assert!((found.device_ms - 2.0).abs() < 1e-9);
    assert!((found.gb_per_s.unwrap() - 2000.0).abs() < 1e-6 && (found.of_copy.unwrap() - 0.5).abs() < 1e-9);
    let told: Vec<(&str, f64, f64)> =
        found.kernels.iter().map(|one| (one.kernel.as_str(), one.launches, one.share)).collect();
    assert_eq!(told, [("long", 1.0, 0.5), ("short", 2.0, 0.5)]);
}

#[test]
fn occupancy_is_that_of_cudas_calculator() {
    let of = |threads, registers, shared| {
        let launch = ProfiledLaunch {
            block: Some([threads, 1, 1]),
            registers: Some(registers),
            shared: Some(shared),
            ..launch("k", 1.0, 1)
        };
        occupancy(&launch, &H200).unwrap()
    };
    let is = |found: f64, warps: f64| assert!((found - warps / 64.0).abs() < 1e-12, "{found}");
    // By warps; by programs, of which 32 fit; by registers; by shared memory.
    is(of(256, 32, 0), 64.0);
    is(of(32, 16, 0), 32.0);
    is(of(128, 255, 0), 8.0);
    is(of(256, 64, 100_000), 16.0);
    is(of(256, 64, 232_448), 8.0);
}

#[test]
fn the_text_has_a_row_a_kernel_the_rates_and_the_sentence() {
    let one = profile(20.0, vec![vec![launch("k", 1250.0, 4096)]]);
    let text = text("op/variant", &one, &found(&one, 1e9), None);
    for part in [
        "op/variant at large in float32",
        "expected: 4.00 GB, 1.00 GFLOP\n",
        "reached: 3200 GB/s, 80 % of a copy; 0.800 TFLOP/s, ",
        "Memory bounds it: the op's bytes move at 80 % of the rate of a copy.\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(quantity(768.0, "B"), "768 B");
}
