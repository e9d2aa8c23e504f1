"""A sweep on a real local cluster of two nodes, one of which is killed."""

import pathlib
import threading
import time

import pytest

import chipless

ray = pytest.importorskip("ray")


def test_a_killed_node_changes_nothing(tmp_path):
    import chipless.ray
    from ray.cluster_utils import Cluster

    plan = tmp_path / "plan.yaml"
    blob = pathlib.Path("fixtures/npu/resblock/program.blob").resolve()
    plan.write_text(f"version: 1\nprograms: [{blob}]\nmachine: {{dma.latency: {{from: 500, to: 1500, steps: 2000}}}}\noptions: {{timing_only: true}}\n")
    chipless.sweep(plan, tmp_path / "one.parquet")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    second = cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False)
    try:

        def kill():
            time.sleep(3)
            cluster.remove_node(second, allow_graceful=False)

        killer = threading.Thread(target=kill)
        killer.start()
        chipless.ray.sweep(plan, tmp_path / "ray.parquet", shards=40)
        killer.join()
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert (tmp_path / "ray.parquet").read_bytes() == (tmp_path / "one.parquet").read_bytes()


def test_machines_are_tuned_on_a_cluster_as_here(tmp_path):
    import chipless.ray

    space = tmp_path / "space.yaml"
    mesh = pathlib.Path("fixtures/schedule/mesh2x2.json").resolve()
    space.write_text(f"version: 1\nbase: {mesh}\nmachine: {{dram.bytes_per_cycle: [2, 8]}}\nschedule: {{trees: 5}}\n")
    network = str(pathlib.Path("fixtures/schedule/small.onnx").resolve())
    chipless.tune(network, space, tmp_path / "one.parquet")
    chipless.ray.tune(network, space, tmp_path / "ray.parquet", shards=2)
    assert (tmp_path / "ray.parquet").read_bytes() == (tmp_path / "one.parquet").read_bytes()
