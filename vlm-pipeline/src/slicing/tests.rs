use proptest::prelude::*;

use super::*;

fn plan(width: u32, height: u32) -> Plan {
    Plan::new(width, height, &PreprocessorConfig::default()).unwrap()
}

fn plan_4x(width: u32, height: u32) -> Plan {
    let config = PreprocessorConfig { downsample_mode: DownsampleMode::X4, ..Default::default() };
    Plan::new(width, height, &config).unwrap()
}

fn rows_cols(plan: &Plan) -> Option<(u32, u32)> {
    plan.grid.map(|grid| (grid.rows, grid.cols))
}

#[test]
fn a1_grid_is_not_transposed() {
    let wide = plan(1084, 820);
    assert_eq!(rows_cols(&wide), Some((2, 3)));
    assert_eq!(wide.overview, Size { width: 504, height: 392 });
    assert_eq!((wide.pads(), wide.total_pads()), (vec![63; 7], 441));

    let tall = plan(820, 1084);
    assert_eq!(rows_cols(&tall), Some((3, 2)));
    assert_eq!((tall.pads(), tall.total_pads()), (vec![63, 72, 72, 72, 72, 72, 72], 495));
}

#[test]
fn a2_slices_are_not_lost_at_row_breaks() {
    let plan = plan(448, 896);
    assert_eq!(rows_cols(&plan), Some((2, 1)));
    assert_eq!(plan.overview, Size { width: 336, height: 616 });
    assert_eq!((plan.pads(), plan.total_pads()), (vec![66, 64, 64], 194));
}

#[test]
fn a4_small_images_are_enlarged() {
    for side in [1, 224, 448] {
        let plan = plan(side, side);
        assert_eq!((plan.overview, plan.grid), (Size { width: 448, height: 448 }, None));
        assert_eq!(plan.pads(), [64]);
    }
}

#[test]
fn a8_plans_keep_order_and_do_not_merge_sizes() {
    let pads: Vec<usize> =
        [(448, 448), (448, 448), (600, 400)].map(|(w, h)| plan(w, h).total_pads()).to_vec();
    assert_eq!(pads, [64, 64, 196]);
}

#[test]
fn x3_the_mode_changes_prompt_and_tower_alike() {
    assert_eq!((plan(448, 448).total_pads(), plan_4x(448, 448).total_pads()), (64, 256));
    let plan = plan_4x(1084, 820);
    assert_eq!((plan.pads(), plan.total_pads()), (vec![252, 255, 255, 255, 255, 255, 255], 1782));
}

#[test]
fn a_tie_takes_more_rows() {
    // 1 x 2 and 2 x 1 are equally far from a square
    assert_eq!(rows_cols(&plan(500, 500)), Some((2, 1)));
}

#[test]
fn slicing_can_be_turned_off_or_limited() {
    for config in [
        PreprocessorConfig { slice_mode: false, ..Default::default() },
        PreprocessorConfig { max_slice_nums: 1, ..Default::default() },
        PreprocessorConfig { max_slice_nums: 0, ..Default::default() },
    ] {
        let plan = Plan::new(3000, 2000, &config).unwrap();
        assert_eq!((plan.grid, plan.overview), (None, Size { width: 560, height: 392 }));
    }
}

#[test]
fn what_cannot_be_planned_is_an_error() {
    let config = PreprocessorConfig::default();
    for (width, height) in [(0, 1), (1, 0), (0, 0)] {
        assert!(matches!(Plan::new(width, height, &config), Err(Error::EmptyPlan { .. })));
    }
    for config in [
        PreprocessorConfig { patch_size: 0, ..Default::default() },
        PreprocessorConfig { scale_resolution: 0, ..Default::default() },
        PreprocessorConfig { scale_resolution: u32::MAX, ..Default::default() },
        PreprocessorConfig { max_slice_nums: u32::MAX, ..Default::default() },
    ] {
        assert!(matches!(Plan::new(9, 9, &config), Err(Error::PreprocessorValue { .. })));
    }
    assert!(matches!("8x".parse::<DownsampleMode>(), Err(Error::UnknownDownsampleMode { .. })));
}

#[test]
fn modes_are_read_as_they_are_written() {
    for mode in [DownsampleMode::X16, DownsampleMode::X4] {
        assert_eq!(mode.to_string().parse::<DownsampleMode>().unwrap(), mode);
    }
}

/// Lengths of every magnitude.
fn length() -> impl Strategy<Value = u32> {
    (0.0..1.0f64).prop_map(|part| 65_535f64.powf(part) as u32)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_plan_is_sound(
        width in length(),
        height in length(),
        max_slice_nums in 0..40u32,
        small in any::<bool>(),
    ) {
        let downsample_mode = if small { DownsampleMode::X4 } else { DownsampleMode::X16 };
        let config = PreprocessorConfig { max_slice_nums, downsample_mode, ..Default::default() };
        let plan = Plan::new(width, height, &config).unwrap();
        let divisor = 14 * downsample_mode.patches_a_side();
        for part in plan.parts() {
            prop_assert!(part.width >= divisor && part.width % divisor == 0);
            prop_assert!(part.height >= divisor && part.height % divisor == 0);
        }
        let slices = plan.grid.map_or(0, |grid| grid.rows * grid.cols);
        prop_assert!(slices <= max_slice_nums && slices != 1);
        prop_assert_eq!(plan.parts().len(), slices as usize + 1);
        prop_assert_eq!(plan.target_sizes().len(), plan.pads().len());
        prop_assert_eq!(plan.total_pads(), plan.pads().iter().sum::<usize>());
        for ((rows, cols), pads) in plan.target_sizes().into_iter().zip(plan.pads()) {
            prop_assert_eq!(pads * downsample_mode.patches_a_token(), rows * cols);
        }
        if u64::from(width) * u64::from(height) <= 448 * 448 {
            prop_assert!(plan.grid.is_none());
        }
        if let Some(grid) = plan.grid {
            prop_assert_eq!(grid.refined().width / grid.cols, grid.slice.width);
            prop_assert_eq!(grid.refined().height / grid.rows, grid.slice.height);
        }
    }
}
