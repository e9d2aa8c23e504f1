"""What is printed as JSON has the form that `chipless schema` tells."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOB = "fixtures/npu/resblock/program.blob"
NEFF = "fixtures/neuron/softmax/program.neff"
SCHEDULE = "fixtures/gemini/four_cores/schedule.json"
NETWORK = "fixtures/gemini/four_cores/network.json"
GRAPH = "fixtures/dsa/kernels/axpy.dfg"
FABRIC = "fixtures/dsa/adg/mesh3x3.json"
CONTRACT = "fixtures/spu/dense/iospec.yaml"
MODEL = "fixtures/spu/dense/model.pt"
MESH = "fixtures/dsa/adg/mesh2x2.json"
SCHEDULED = ["schedule", "fixtures/schedule/small.onnx", "--machine", "fixtures/schedule/mesh2x2.json", "--trees", "200"]

# What each target reads.
EXAMPLES = json.loads((ROOT / "fixtures/programs.json").read_text())
PROGRAMS = [example["file"] for example in EXAMPLES if example.get("runs")]

# Output and command line; TMP is a directory of the test.
COMMANDS: list[tuple[str, list[str]]] = [
    ("failure", ["run", "fixtures/broken/ring.neff"]),
    ("failure", ["run", BLOB, "--set", "no.such=1"]),
    ("failure", ["run", "no such file"]),
    ("failure", ["run"]),
    *(("info", ["info", example["file"], *more]) for example in EXAMPLES for more in ([], ["--raw"])),
    ("info-files", ["info", BLOB, GRAPH]),
    ("info-resources", ["info", FABRIC, "--resources"]),
    ("check", ["check", "fixtures/broken", BLOB]),
    ("check", ["check", "fixtures/spu/choice/iospec.yaml"]),
    ("check-statistics", ["check", "fixtures/broken", "--statistics"]),
    ("explain", ["explain"]),
    ("targets", ["targets"]),
    *(("machine", ["machine", target]) for target in sorted({example["target"] for example in EXAMPLES})),
    *(("run", ["run", file]) for file in PROGRAMS),
    ("run", ["run", SCHEDULE, "--network", NETWORK]),
    ("run", ["run", BLOB, "--rank", "--what-if", "dma.latency=2x"]),
    ("run", ["run", NEFF, "--find-nan"]),
    ("run-calibrate", ["run", MODEL, "--calibrate", "fixtures/spu/dense/steps.json"]),
    ("diff", ["diff", BLOB, "fixtures/npu/add/program.blob", "--time"]),
    ("diff", ["diff", GRAPH, "fixtures/dsa/kernels/add.dfg"]),
    *(("list", ["list", file]) for file in PROGRAMS),
    ("list", ["list", BLOB, "--registers"]),
    ("map", ["map", GRAPH, "--adg", FABRIC, "-o", "TMP/mapping.json"]),
    ("map", ["map", "fixtures/dsa/kernels/wide.dfg", "--adg", MESH]),
    ("map-check", ["map", GRAPH, "--adg", FABRIC, "--check", "TMP/mapping.json"]),
    ("adg-diff", ["adg", "diff", FABRIC, MESH]),
    ("explore", ["explore", "TMP/workloads.yaml", "--start", FABRIC, "--budget", "vu9p", "--moves", "3", "-o", "TMP/explored"]),
    ("drive", ["drive", CONTRACT, "--script", "TMP/script.json", "--program", MODEL]),
    ("device", ["device", "fixtures/device/two_networks.yaml", "--jobs", "TMP/jobs.jsonl"]),
    ("device-calibrate", ["device", "--calibrate", "TMP/silicon.json"]),
    ("yield", ["yield", BLOB, "--at", "1us"]),
    ("schedule", [*SCHEDULED, "-o", "TMP/spec.json"]),
    ("schedule", [*SCHEDULED, "--dialect", "set", "-o", "TMP/set.json"]),
]

# A library of a vendor's compiler would be needed.
UNTRIED = {"kernels"}


def chipless(*arguments: str) -> str:
    command = [sys.executable, "-m", "chipless", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT).stdout


def strict(output: str) -> Any:
    """A schema that also refuses keys that it does not know."""

    def close(schema: Any) -> None:
        if isinstance(schema, dict):
            if "properties" in schema:
                schema.setdefault("additionalProperties", False)
            for part in schema.values():
                close(part)
        elif isinstance(schema, list):
            for part in schema:
                close(part)

    schema = json.loads(chipless("schema", output))
    close(schema)
    return schema


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("outputs")
    workloads = f"workloads:\n  - {{name: axpy, weight: 1, variants: [{ROOT / GRAPH}]}}\n"
    (directory / "workloads.yaml").write_text(workloads)
    (directory / "script.json").write_text(json.dumps({"steps": [{"read": True}]}))
    networks = [
        {"name": name, "precision": "fp16", "program": os.path.relpath(ROOT / f"fixtures/npu/{name}/program.blob", directory), "latency_ms": 0.2, "source": "made up"}
        for name in ("resblock", "net_cnn_dpu", "bmm")
    ]
    (directory / "silicon.json").write_text(json.dumps({"networks": networks}))
    return directory


def test_every_output_has_the_form_of_its_schema(directory: Path) -> None:
    schemas = {line.split()[0]: strict(line.split()[0]) for line in chipless("schema").splitlines()}
    tried = set(UNTRIED)
    for output, arguments in COMMANDS:
        printed = chipless(*(part.replace("TMP", str(directory)) for part in arguments), "--json")
        jsonschema.validate(json.loads(printed), schemas[output])
        tried.add(output)
    for line in (directory / "jobs.jsonl").read_text().splitlines()[:20]:
        jsonschema.validate(json.loads(line), schemas["device-jobs"])
        tried.add("device-jobs")
    assert tried == set(schemas)


def test_a_schema_refuses_what_it_does_not_know() -> None:
    schema = strict("yield")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"schema_version": 1, "program": "a"}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**json.loads(chipless("yield", BLOB, "--json")), "other": 1}, schema)
