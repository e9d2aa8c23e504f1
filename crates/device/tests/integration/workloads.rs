//! Mistakes in workload files have a code and a place.

use chipless_device::read;

const GOOD: &str = "machine: npu4
duration: 1s
contexts:
  a: {process: 1, band: normal}
streams:
  - name: one
    context: a
    program: {synthetic: {tiles: 2, tasks: [{compute: 1ms}]}}
    arrivals: {every: 10ms}
";

#[test]
fn mistakes_have_codes_and_places() {
    assert!(read(GOOD, |_| Err(String::new())).is_ok());
    for (from, to, code, line) in [
        ("duration: 1s", "duration: 17", "workload-type", 2),
        ("duration: 1s", "duratoin: 1s", "workload-field", 2),
        ("duration: 1s\n", "", "workload-missing", 1),
        ("band: normal", "band: urgent", "workload-band", 4),
        ("context: a", "context: b", "workload-context", 7),
        ("context: a", "contxt: a", "workload-field", 7),
        ("every: 10ms", "every: 0ms", "workload-arrivals", 9),
        ("every: 10ms", "every: 10MiB", "workload-type", 9),
        (
            "{every: 10ms}",
            "{every: 10ms, in_flight: 2}",
            "workload-arrivals",
            9,
        ),
        ("{every: 10ms}", "[every, 10ms]", "workload-type", 9),
        (
            "{compute: 1ms}",
            "{compute: 1ms, transfer: 1kB}",
            "workload-synthetic",
            8,
        ),
        (
            "{compute: 1ms}",
            "{compute: 1ms, after: [0]}",
            "workload-synthetic",
            8,
        ),
        (
            "{compute: 1ms}",
            "{transfer: 1kB, path: [dram]}",
            "workload-synthetic",
            8,
        ),
        ("{compute: 1ms}", "{transfer: 1kB}", "workload-missing", 8),
        ("{compute: 1ms}", "{enqueue: 1us}", "workload-missing", 8),
        (
            "{compute: 1ms}",
            "{enqueue: 1us, fifo: media}",
            "workload-synthetic",
            8,
        ),
        (
            "{compute: 1ms}",
            "{enqueue: 1us, fifo: dpu, writer: gpu}",
            "workload-synthetic",
            8,
        ),
        (
            "{compute: 1ms}",
            "{compute: 1ms, shared: true}",
            "workload-synthetic",
            8,
        ),
        (
            "{compute: 1ms}",
            "{compute: 1ms, layer: a, repeat: 2000000}",
            "workload-synthetic",
            8,
        ),
        (
            "tasks: [{compute: 1ms}]}}",
            "tasks: [{compute: 1ms]}}",
            "workload-syntax",
            8,
        ),
        ("    context: a\n", "\tcontext: a\n", "workload-syntax", 6),
    ] {
        let finding = read(&GOOD.replace(from, to), |_| Err(String::new())).expect_err(to);
        let found = (
            finding.rule.code,
            finding.place.position.map(|(line, _)| line),
        );
        assert_eq!(found, (code, Some(line)), "{to}: {finding}");
    }
}

#[test]
fn times_are_read_from_files() {
    let text = GOOD.replace("{every: 10ms}", "{at: clicks.csv}");
    let clicks = |path: &str| match path {
        "clicks.csv" => Ok("# seconds\n0.5\n1.25ms # early\n\n2s\n".to_owned()),
        _ => Err("is not there".to_owned()),
    };
    let workload = read(&text, clicks).unwrap();
    let chipless_device::ArrivalKind::At(times) = &workload.streams[0].arrivals.kind else {
        panic!("recorded times are expected")
    };
    assert_eq!(times, &[1_250_000_000, 500_000_000_000, 2_000_000_000_000]);
    let broken = read(&text, |_| Ok("soon\n".to_owned())).unwrap_err();
    assert_eq!(broken.rule.code, "workload-arrivals");
}
