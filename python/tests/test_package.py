"""The package as its users see it: real files in, exact results out."""

import doctest
import gc
import importlib
import io
import json
import pathlib
import pickle
import pkgutil
import subprocess
import sys
import threading

import numpy as np
import pytest

import chipless

FIXTURES = {
    "npu": ("fixtures/npu/resblock/program.blob", {}),
    "neuron": ("fixtures/neuron/matmul_five_engines/program.neff", {}),
    "gemini": ("fixtures/gemini/four_cores/schedule.json", {"network": "fixtures/gemini/four_cores/network.json"}),
    "dsa": ("fixtures/dsa/kernels/dot.dfg", {}),
    "spu": ("fixtures/spu/recurrent/plan.json", {}),
}
EVERY = pytest.mark.parametrize("target", FIXTURES)


def opened(target):
    path, more = FIXTURES[target]
    return chipless.open(path, **more)


def command(*arguments):
    done = subprocess.run([sys.executable, "-m", "chipless", *arguments], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


@EVERY
def test_equals_the_command_line(target, tmp_path):
    path, more = FIXTURES[target]
    options = [part for name, value in more.items() for part in ("--" + name, value)]
    code, out, err = command("run", path, "--json", "--seed", "3", "--output-dir", str(tmp_path), *options)
    assert code == 0, err
    summary = json.loads(out)
    run = opened(target).run(seed=3)
    for output in summary["outputs"]:
        expected = np.load(output["path"])
        found = run[output["name"]]
        assert found.tobytes() == expected.tobytes() and found.shape == expected.shape
    mine = run.summary()
    for key in ("tasks", "moved_bytes", "latency_ns", "target", "notes", "queues", "resources"):
        assert mine[key] == summary[key], key


@EVERY
def test_every_kind_of_source(target):
    path, more = FIXTURES[target]
    data = pathlib.Path(path).read_bytes()
    expected = opened(target).info()["counts"]
    for source in (pathlib.Path(path), data, bytearray(data), memoryview(data), io.BytesIO(data)):
        assert chipless.open(source, **more).info()["counts"] == expected


@EVERY
def test_tables_go_to_arrow(target, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    run = opened(target).run(timing_only=True)
    tasks = pyarrow.table(run.tasks)
    assert tasks.num_rows == run.summary()["tasks"] == len(run.tasks)
    run.save(tmp_path / "tasks.parquet")
    import pyarrow.parquet

    written = pyarrow.parquet.read_table(tmp_path / "tasks.parquet")
    assert written.to_pylist() == tasks.to_pylist()
    assert pyarrow.table(run.waits).column_names[:3] == ["task", "queue", "reason"]
    assert pyarrow.table(run.memory).column_names == ["memory", "time_ns", "live_bytes"]


@EVERY
def test_what_is_saved(target, tmp_path):
    run = opened(target).run(timing_only=True)
    for ending in ("pftrace", "json", "csv", "parquet", "html"):
        run.save(tmp_path / f"run.{ending}")
        assert (tmp_path / f"run.{ending}").stat().st_size > 100
    with pytest.raises(ValueError, match="pftrace"):
        run.save(tmp_path / "run.txt")
    with pytest.raises(OSError):
        run.save(tmp_path / "no" / "such" / "run.csv")


@EVERY
def test_notebooks_show_programs_and_runs(target):
    program = opened(target)
    for html in (program._repr_html_(), program.run(timing_only=True)._repr_html_()):
        assert "<svg" in html and "<rect" in html
        assert "http" not in html.replace("http://www.w3.org/2000/svg", "")


def test_state_is_kept_from_step_to_step():
    program = opened("spu")
    rng = np.random.default_rng(0)
    rows = {x.name: rng.integers(-100, 100, (4, *x.shape)).astype(x.dtype) for x in program.inputs}
    whole = program.run(rows)
    session = program.session()
    steps = [session.step({name: row[i] for name, row in rows.items()}) for i in range(4)]
    for name, array in whole.outputs.items():
        assert all((steps[i][name] == array[i]).all() for i in range(4))
    session.reset()
    again = session.step({name: row[0] for name, row in rows.items()})
    assert all((again[name] == steps[0][name]).all() for name in whole.outputs)


def test_types_that_numpy_lacks():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    program = chipless.open("fixtures/neuron/cast_float8/program.neff")
    run = program.run()
    types = {run[x.name].dtype for x in program.outputs} | {x.dtype for x in program.inputs}
    assert types & {np.dtype(ml_dtypes.float8_e3m4), np.dtype(ml_dtypes.float8_e4m3), np.dtype(ml_dtypes.float8_e5m2)}


def test_inputs_that_do_not_fit():
    program = opened("npu")
    x = program.inputs[0]
    with pytest.raises(ValueError, match=f"{x.name}.*nobody"):
        program.run({"nobody": np.zeros(1)})
    with pytest.raises(ValueError, match=f"'{x.name}'.*shape"):
        program.run({x.name: np.zeros((1, 2), x.dtype)})
    with pytest.raises(TypeError, match=f"'{x.name}'.*float16.*int64"):
        program.run({x.name: np.zeros(x.shape, "int64")})
    with pytest.raises(KeyError, match="nobody"):
        program.run()["nobody"]
    with pytest.raises(ValueError, match="timed"):
        program.run(order="backwards")
    with pytest.raises(chipless.MisuseError, match="dma.latency"):
        program.run(machine={"dma.latncy": 3})


def test_failures_have_kinds_and_findings():
    with pytest.raises(FileNotFoundError):
        chipless.open("no-such.blob")
    with pytest.raises(chipless.ReadError):
        chipless.open(b"garbage" * 100)
    with pytest.raises(chipless.MisuseError, match="expected one of"):
        chipless.open("fixtures/npu/add/program.blob", target="gpu")
    ring = chipless.open("fixtures/broken/ring.neff")
    with pytest.raises(chipless.RefusedError) as refused:
        ring.run()
    assert refused.value.kind == "refused" and refused.value.findings[0].code == "deadlock"
    assert refused.value.findings[0].location["item"] and refused.value.findings[0].related
    with pytest.raises(chipless.DeadlockError):
        ring.run(verify=False)
    with pytest.raises(chipless.LimitError, match="tasks"):
        chipless.open("fixtures/dsa/kernels/dot.dfg", limits={"tasks": 2}).run()
    again = pickle.loads(pickle.dumps(refused.value))
    assert type(again) is chipless.RefusedError and again.findings == refused.value.findings


def test_findings_can_be_left_out():
    ring = chipless.open("fixtures/broken/ring.neff")
    found = ring.check()
    assert [one.code for one in found.errors] == ["deadlock"] and found[0].rule_class == "fault"
    assert "deadlock" in str(found) and json.loads(found.to_sarif())["version"] == "2.1.0"
    allowed = ring.check(allow=["dead*"])
    assert len(allowed) == 0 and allowed.left_out == 1
    with pytest.raises(chipless.Error, match="deadlock"):
        ring.check(allow=["deadlok"])


def test_arrays_in_any_order_and_outputs_that_outlive_their_run():
    program = opened("npu")
    x, y = program.inputs[0], program.outputs[0].name
    array = np.random.default_rng(0).normal(size=x.shape).astype(x.dtype)
    run = program.run({x.name: array})
    kept, copy = run[y], run[y].copy()
    assert run[y].__array_interface__["data"] == kept.__array_interface__["data"]
    assert (program.run({x.name: np.asfortranarray(array)})[y] == copy).all()
    del run, program
    gc.collect()
    assert (kept == copy).all()


def test_threads_give_the_same_bytes():
    program = opened("npu")
    x = {i.name: np.ones(i.shape, i.dtype) for i in program.inputs}
    y = program.outputs[0].name
    expected, found = program.run(x)[y].tobytes(), []

    def work():
        found.extend(program.run(x, threads=1 + len(found) % 3)[y].tobytes() for _ in range(5))

    threads = [threading.Thread(target=work) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert found == [expected] * 40


def test_machines_have_names():
    program = chipless.open(FIXTURES["npu"][0])
    plain, other = (program.run(timing_only=True, machine=name).latency for name in ("npu4", "npu5"))
    assert plain == program.run(timing_only=True).latency != other
    with pytest.raises(chipless.Error, match='did you mean "npu5"'):
        program.run(timing_only=True, machine="nup5")
    with pytest.raises(FileNotFoundError):
        program.run(timing_only=True, machine="none.toml")


def test_figures_of_the_machine(tmp_path):
    program = opened("npu")
    plain = program.run(timing_only=True).latency
    faster = program.run(timing_only=True, machine={"dma.latency": 510}).latency
    assert faster < plain
    assert chipless.open(FIXTURES["npu"][0], machine={"dma.latency": 510}).run(timing_only=True).latency == faster
    assert program.run(timing_only=True, machine={"dma.latency": "0.5x"}).latency < plain
    assert program.run(timing_only=True).latency == plain


def test_figures_have_units():
    program = opened("npu")
    latencies = [program.run(timing_only=True, machine={"dma.latency": n}).latency for n in (510, "510ns", "510 ns")]
    assert latencies[0] == latencies[1] == latencies[2]
    with pytest.raises(chipless.MisuseError, match="in ns"):
        program.run(timing_only=True, machine={"dma.latency": "510MiB"})


def test_differences():
    add, resblock = (chipless.open(f"fixtures/npu/{name}/program.blob") for name in ("add", "resblock"))
    values = chipless.diff(add, add, values=True).to_dict()["values"]
    assert chipless.diff(add, add).equal and values["first"] is None and [output["agrees"] for output in values["outputs"]] == [True]
    found = chipless.diff(add, resblock, time=True)
    assert not found.equal and found.to_dict()["interface"] and found.to_dict()["time"]
    _, printed, _ = command("diff", "fixtures/npu/add/program.blob", "fixtures/npu/resblock/program.blob", "--time")
    assert str(found) == printed
    with pytest.raises(chipless.MisuseError, match="target npu"):
        chipless.diff(add, opened("dsa"))


def test_orders_and_seeds():
    program = opened("npu")
    y = program.outputs[0].name
    assert (program.run(seed=1, order="random:7")[y] == program.run(seed=1)[y]).all()
    assert (program.run(seed=1)[y] != program.run(seed=2)[y]).any()


def test_the_command():
    code, out, _ = command("--version")
    assert code == 0 and out == f"chipless {chipless.__version__}\n"
    code, _, err = command("run", "no-such.blob")
    assert code == 2 and "no-such.blob" in err


def test_comparing_with_a_function():
    program = chipless.open("fixtures/npu/add/program.blob")
    inputs = {x.name: np.random.default_rng(0).normal(size=x.shape).astype(x.dtype) for x in program.inputs}
    name = program.outputs[0].name
    right = chipless.compare(program, lambda given: {name: given["x"] + given["y"]}, inputs)
    assert right.ok and right.rows[0]["output"] == name
    wrong = chipless.compare(program, lambda given: {name: given["x"] - given["y"]}, inputs)
    assert not wrong.ok and wrong.rows[0]["max_abs"] > 1 and "beyond" in str(wrong)
    with pytest.raises(ValueError, match="shape"):
        chipless.compare(program, lambda given: {name: np.zeros(3)}, inputs)


def test_comparing_with_an_onnx_model(tmp_path):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    program = chipless.open("fixtures/npu/add/program.blob")
    sides = [[onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, program.inputs[0].shape) for n in names] for names in (("a", "b"), ("c",))]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Add", ["a", "b"], ["c"])], "add", *sides)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(tmp_path / "add.onnx"))
    inputs = {x.name: np.random.default_rng(0).normal(size=x.shape).astype(x.dtype) for x in program.inputs}
    assert chipless.compare(program, tmp_path / "add.onnx", inputs).ok


def test_examples_in_the_documentation():
    tried = 0
    for module in pkgutil.iter_modules(chipless.__path__):
        if module.name in ("__main__", "ray"):
            continue
        found = importlib.import_module(f"chipless.{module.name}")
        failed, count = doctest.testmod(found, extraglobs={"chipless": chipless})
        assert failed == 0, module.name
        tried += count
    failed, count = doctest.testmod(chipless)
    assert failed == 0 and tried + count >= 15


def test_shards_make_the_same_file(tmp_path):
    plan = tmp_path / "plan.yaml"
    blob = pathlib.Path("fixtures/npu/add/program.blob").resolve()
    plan.write_text(f"version: 1\nprograms: [{blob}]\nmachine: {{dma.latency: {{from: 500, to: 1500, steps: 11}}}}\noptions: {{timing_only: true}}\n")
    chipless.sweep(plan, tmp_path / "whole.parquet")
    parts = [tmp_path / f"{i}.parquet" for i in (2, 1, 3)]
    for part in parts:
        chipless.sweep(plan, part, shard=(int(part.stem), 3), jobs=1)
    chipless.merge(parts, tmp_path / "merged.parquet")
    assert (tmp_path / "merged.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    with pytest.raises(chipless.MisuseError, match="missing 3/3"):
        chipless.merge(parts[:2], tmp_path / "x.parquet")
    with pytest.raises(ValueError, match="i from 1"):
        chipless.sweep(plan, tmp_path / "x.parquet", shard=(0, 3))
    code, _, err = command("sweep", str(plan), "-o", str(tmp_path / "command.parquet"))
    assert code == 0 and "11 runs" in err
    assert (tmp_path / "command.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()


def test_machines_are_tuned_in_shards_as_by_the_command(tmp_path):
    space = tmp_path / "space.yaml"
    mesh = pathlib.Path("fixtures/schedule/mesh2x2.json").resolve()
    space.write_text(f"version: 1\nbase: {mesh}\nmachine: {{dram.bytes_per_cycle: [2, 8]}}\nschedule: {{trees: 5}}\n")
    network = "fixtures/schedule/small.onnx"
    chipless.tune(network, space, tmp_path / "whole.parquet")
    parts = [tmp_path / f"{index}.parquet" for index in (1, 2)]
    for part in parts:
        chipless.tune([network], space, part, shard=(int(part.stem), 2), jobs=1)
    chipless.merge(parts, tmp_path / "merged.parquet")
    code, _, err = command("tune", network, "--space", str(space), "-o", str(tmp_path / "command.parquet"))
    assert code == 0, err
    whole = (tmp_path / "whole.parquet").read_bytes()
    assert whole == (tmp_path / "merged.parquet").read_bytes() == (tmp_path / "command.parquet").read_bytes()
    table = importlib.import_module("pyarrow.parquet").read_table(tmp_path / "whole.parquet").to_pydict()
    assert table["dram.bytes_per_cycle"] == [2, 8] and any(table["front"])
    with pytest.raises(ValueError, match="i from 1"):
        chipless.tune(network, space, tmp_path / "x.parquet", shard=(3, 2))
    with pytest.raises(FileNotFoundError):
        chipless.tune(network, tmp_path / "none.yaml", tmp_path / "x.parquet")
