use super::*;

/// What Nsight Compute 2025.3 wrote of one launch of a product on an H200, cut to some of its columns.
const H200: &str = include_str!("h200.csv");

#[test]
fn the_counters_of_a_launch_are_read() {
    let found = counted(H200, 1).unwrap();
    let [one] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((one.kernel.as_str(), one.launches), ("mm", 1.0));
    assert!((one.ms - 0.03104).abs() < 1e-9);
    assert_eq!((one.read, one.written), (Some(16_792_320.0), Some(1_228_288.0)));
    assert_eq!((one.memory, one.l2_hits, one.issue), (Some(12.07), Some(82.71), Some(17.11)));
    assert_eq!((one.tensor, one.warps), (Some(67.32), Some(11.97)));
    // The warp that issues waits for nothing, and what no warp waits for is not told.
    assert!(!one.waits.contains_key("selected") && !one.waits.contains_key("membar"), "{:?}", one.waits);
    let all: f64 = one.waits.values().sum();
    assert!(all > 80.0 && all < 100.0, "{all}");
}

#[test]
fn on_hopper_the_instruction_that_loads_constants_through_the_tensor_pipe_is_no_product() {
    let (hopper, ampere) = (metrics([9, 0]), metrics([8, 0]));
    assert!(!hopper.contains(&TENSOR) && ampere.contains(&TENSOR) && ampere.len() + 1 == hopper.len());
    let told =
        format!("\"ID\",\"Kernel Name\",\"{TIME}\",\"{PRODUCTS}\",\"{DOUBLES}\"\n\"0\",\"a\",\"10\",\"60\",\"2\"\n");
    assert_eq!(counted(&told, 1).unwrap()[0].tensor, Some(62.0));
}

#[test]
fn the_table_says_what_warps_wait_for_most() {
    let told = text(&counted(H200, 1).unwrap(), "2025.3.1.0", None);
    assert!(told.starts_with("counters, by Nsight Compute 2025.3.1.0\n"), "{told}");
    let row = told.lines().find(|line| line.contains("16.8")).unwrap();
    for cell in ["mm", "0.03104", "16.8", "1.23", "12.1 %", "82.7 %", "17.1 %", "67.3 %"] {
        assert!(row.contains(cell), "{cell} in {row}");
    }
    let waits = told.lines().last().unwrap();
    assert_eq!(waits, "warps of mm wait for other warps at a barrier 23.7 %, dispatch 17.3 %, loads 16.2 %");
}

#[test]
fn launches_of_a_kernel_are_put_together_by_call_and_weigh_what_they_take() {
    let launches = concat!(
        "\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\",\"dram__bytes_read.sum\",\"lts__t_sector_hit_rate.pct\"\n",
        "\"\",\"\",\"ns\",\"byte\",\"%\"\n",
        "\"0\",\"a\",\"1,000\",\"10\",\"50\"\n\"1\",\"b\",\"9,000\",\"1\",\"n/a\"\n",
        "\"2\",\"a\",\"3,000\",\"30\",\"90\"\n\"3\",\"b\",\"9,000\",\"1\",\"10\"\n",
    );
    let found = counted(launches, 2).unwrap();
    let [b, a] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((a.kernel.as_str(), a.launches, a.read, a.l2_hits), ("a", 1.0, Some(20.0), Some(80.0)));
    // What is missing of one launch is not known of the kernel, and what no launch tells is not known at all.
    assert_eq!((b.kernel.as_str(), b.launches, b.l2_hits, b.tensor), ("b", 1.0, None, None));
    assert!((b.ms - 0.009).abs() < 1e-12 && b.waits.is_empty());
    let told = text(&found, "1", None);
    assert!(told.contains('-') && !told.contains("wait for"), "{told}");
}

#[test]
fn what_is_no_table_is_an_error() {
    assert_eq!(counted("==ERROR== nothing", 1).unwrap_err(), "Nsight Compute told of no kernel");
    let without = "\"ID\",\"Kernel Name\"\n\"0\",\"a\"\n";
    assert!(counted(without, 1).unwrap_err().contains("gpu__time_duration.sum"));
    let wrong = "\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\"\n\"0\",\"a\",\"long\"\n";
    assert!(counted(wrong, 1).unwrap_err().contains("is `long`"));
    let uneven = "\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\"\n\"0\",\"a\"\n";
    assert!(counted(uneven, 1).is_err());
}
