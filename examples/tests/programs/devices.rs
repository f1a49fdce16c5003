//! Which devices there are, and what becomes of asking for one: right with a GPU and without, built for one or not.

use crate::program::Program;

/// Whether `devices` lists a card that can be used.
fn has_gpu() -> bool {
    let listed = Program::new("devices").succeed();
    listed.contains("cuda:0") && !listed.contains("cannot be used")
}

#[test]
fn devices_lists_the_processor_and_says_what_it_knows_of_gpus() {
    let listed = Program::new("devices").succeed();
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines[0].starts_with("device"), "{listed}");
    assert!(lines[2].starts_with("cpu ") && lines[2].contains(" threads, vector instructions: "), "{listed}");
    let gpus = [
        "built without CUDA",
        "no usable CUDA driver: libcuda",
        "the driver sees no card",
        "compute capability",
    ];
    assert!(lines[3].starts_with("cuda") && gpus.iter().any(|text| lines[3].contains(text)), "{listed}");
}

#[test]
fn a_gpu_that_is_asked_for_runs_or_is_a_typed_error() {
    let describe = || Program::new("describe").args("--device cuda --max-new-tokens 5");
    if has_gpu() {
        assert_eq!(describe().succeed(), "a red circle\n");
        return;
    }
    let outcome = describe().run();
    assert_eq!((outcome.status, outcome.stdout.as_str()), (Some(1), ""));
    let reasons = ["built without CUDA", "libcuda", "libcublas", "there is no CUDA device 0"];
    let named = reasons.iter().any(|reason| outcome.stderr.contains(reason));
    assert!(outcome.stderr.starts_with("error: cuda:0: ") && named, "{}", outcome.stderr);
    assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
}

#[test]
fn auto_runs_everywhere() {
    assert_eq!(Program::new("describe").args("--device auto").succeed(), "a red circle\n");
}
