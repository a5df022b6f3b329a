"""Runs the kernel of this folder: pip install cupy-cuda12x safetensors numpy"""
import json, cupy, numpy
from safetensors.numpy import load_file

plan = json.load(open("plan.json"))
if any(a["dtype"] == "bf16" for a in plan["arguments"]):
    raise SystemExit("numpy has no bf16: use the program in C++, make run")
arrays = load_file("packed.safetensors")
kernel = cupy.RawModule(path="kernel.cubin").get_function(plan["kernel"]["name"])
shared = plan["launch"]["dynamic_shared"]
if shared:
    kernel.max_dynamic_shared_size_bytes = shared
dtype = {a["kind"]: a["dtype"].replace("f", "float") for a in plan["arguments"]}
shape = {a["kind"]: a["shape"] for a in plan["arguments"]}
x = cupy.ones(shape["input"], dtype["input"])
y = cupy.zeros(shape["output"], dtype["output"])
number = numpy.dtype(dtype["alpha"]).type
given = {"input": x, "output": y, "alpha": number(1), "beta": number(0)}
size = {"i32": numpy.int32, "u32": numpy.uint32, "u64": numpy.uint64}
kernel((plan["launch"]["grid"],), (plan["launch"]["block"],), tuple(
    cupy.asarray(arrays[a["name"]]) if a["kind"] in ("matrix", "workspace")
    else size[a["dtype"]](a["value"]) if a["kind"] == "size" else given[a["kind"]]
    for a in plan["arguments"]), shared_mem=shared)
print(y)
