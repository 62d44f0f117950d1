"""What to change about each class of failure, the cheapest first."""

from __future__ import annotations

import re

REMEDIES: dict[str, tuple[str, ...]] = {
    "gpu_memory": (
        "halve hyperparameters.per_device_train_batch_size and double gradient_accumulation_steps",
        "set hyperparameters.gradient_checkpointing: true, or what the script calls it",
        "give memory.model: `sagefit size JOB` then shows what fits, and attempts: auto makes the attempts for this",
        "add an attempt with those hyperparameters, or a type with more memory per GPU, and name it in next.gpu_memory",
    ),
    "host_memory": (
        "lower hyperparameters.dataloader_num_workers and dataloader_prefetch_factor, or stream the data",
        "give memory.model: `sagefit size JOB` then shows what fits, and attempts: auto makes the attempts for this",
        "add an attempt with those hyperparameters, or a type with more memory, and name it in next.host_memory",
    ),
    "shared_memory": (
        "lower hyperparameters.dataloader_num_workers, or what the script calls it: /dev/shm cannot grow",
        "share tensors through files: torch.multiprocessing.set_sharing_strategy('file_system')",
    ),
    "disk": (
        "raise resources.volume_size_gb; on types with NVMe storage it has no effect, choose a larger type",
        "read with inputs.<channel>.mode: FastFile, or keep fewer checkpoints",
    ),
    "capacity": (
        "add an attempt with another instance type and name it in next.capacity; attempts: auto makes one",
        "raise resources.max_pending to wait longer for GPU instances",
    ),
    "quota": (
        "ask Service Quotas for '<type> for training job usage' (or '<type> for spot training job usage')",
        "set resources.instance_type to a type the account may use",
    ),
    "spot": (
        "add an attempt with spot: false and name it in next.spot, as attempts: auto does; checkpoints carry over",
        "raise resources.max_wait",
    ),
    "time": (
        "raise resources.max_runtime; the next attempt resumes from the checkpoint",
        "set resources.instance_type to a faster one",
    ),
    "stopped": ("somebody stopped it: start it again with `sagefit start JOB`",),
    "data": ("check inputs.<channel>: the prefix exists, lies in this region, ends with / for FastFile, may be read",),
    "permission": (
        "grant the execution role the action named in the evidence; inputs in other buckets are listed at the platform",
    ),
    "internal": ("a fault of the service: start it again; if it repeats, check that the image starts at all",),
    "code": ("read the evidence and the last lines of the log: another instance would fail alike",),
}

_THROTTLED = (
    "start fewer runs at the same time: an account creates one training job a second, and this run asked for minutes",
    "ask Service Quotas for a higher rate of CreateTrainingJob requests, then start it again",
)
OF_GROWTH = (
    "find what the script keeps from step to step: losses or outputs in a list without .item() or .detach(), a cache"
    " without a bound, loader workers that copy a growing list",
    "start it again with --resume RUN: it begins at its last checkpoint with its memory empty",
)
"""What to do about host memory that grew from checkpoint to checkpoint, before a larger host is paid for."""
_REFUSED_BY_SYSTEM = (
    "write below /opt/ml (SM_MODEL_DIR, SM_OUTPUT_DATA_DIR, checkpoints) or /tmp: the image's user may not elsewhere",
    "let the image give its user the path named in the evidence (chown in its Dockerfile), or name another USER",
)
_READ_ELSEWHERE = (
    "read inputs where they are: inputs.<channel> is in /opt/ml/input/data/<channel> (SM_CHANNEL_<CHANNEL>), what was"
    " saved before in /opt/ml/checkpoints; a hyperparameter can tell the script",
    "give what the evidence names as inputs.<channel>, or let the script make it first",
)
_WRONG_VALUES = (
    "look for what the evidence names in the inputs: values that are missing (NaN) or too large, a column, a file that"
    " is empty; mend or leave out what has it before the job, or let the script do so",
    "let the script check what it reads before the first step: such a job ends early and can say which file it is",
)
_GATED = (
    "accept the licence of the model on its page, and let the script fetch a token of the Hugging Face Hub from Secrets"
    " Manager (HF_TOKEN); the execution role has no part in it",
    "or put the model into an input, and give the script its folder: inputs.model",
)
_NO_ROOM_FOR_THE_CACHE = (
    "raise the share of the GPU that vLLM takes (gpu_memory_utilization, vllm_gpu_memory_utilization), or lower"
    " max_model_len: what it may take is less than the model",
    "set resources.instance_type to a type with more memory per GPU",
)
_TREES_ON_A_GPU = (
    "lower max_bin or max_depth, or give the rows in parts (xgboost.QuantileDMatrix, external memory)",
    "set resources.instance_type to a type with more memory per GPU, or train on the CPU (device: cpu)",
)
_ONE_ARRAY = (
    "make the array that the evidence names in parts, in a smaller dtype, or in a file (numpy.memmap)",
    "set resources.instance_type to a type with more memory, or add such an attempt and name it in next.host_memory",
)
_OLDER_GPU = (
    "set resources.instance_type to a type with newer GPUs: g5, g6, g6e, p4d and later are Ampere and later",
    "or let the script do without: attn_implementation: sdpa in place of FlashAttention, fp16 in place of bf16; an"
    " image has kernels for the GPUs that its release of CUDA and torch knows",
)
_WAITED_FOR_A_RANK = (
    "find the rank that did not come to the operation that the evidence names: whose log stops first, and where; the"
    " ranks must take the same number of steps",
    "raise the limit if a rank only took longer, as while it prepares data for all: hyperparameters.ddp_timeout of the"
    " Trainer, timeout of init_process_group",
)
_NO_ROUTE = (
    "look whether the job reaches the host that the evidence names: with resources.network_isolation, or in subnets"
    " without a route to the internet, it never does; put what the script loads into an input then",
    "if the job has a network, it was a fault on the way: start it again",
)
_OWN_LIMIT = (
    "raise the limit that the script or its tool sets: the evidence has what it was waited for, and for how long",
    "set resources.instance_type to a faster one, if what ran did not hang",
)
REMEDIES_OF_PATTERN: dict[str, tuple[str, ...]] = {
    "*timeoutexpired*timed out after*": _OWN_LIMIT,
    "*celltimeouterror*": _OWN_LIMIT,
    "*gettimeouterror*": _OWN_LIMIT,
    "* timed out after * seconds and was terminated*": _OWN_LIMIT,
    "*Throttling*": _THROTTLED,
    "*Rate exceeded*": _THROTTLED,
    "*sagefit: code: a leak: host memory grew by *": OF_GROWTH,
    "*ccess*gated repo*": _GATED,
    "*No available memory for the cache blocks*": _NO_ROOM_FOR_THE_CACHE,
    "*cudaErrorMemoryAllocation*": _TREES_ON_A_GPU,
    "*Unable to allocate * for an array*": _ONE_ARRAY,
    "*Unable to allocate array with shape*": _ONE_ARRAY,
    "*PermissionError: *Permission denied*": _REFUSED_BY_SYSTEM,
    "*ermission denied*": _REFUSED_BY_SYSTEM,
    "words: input elsewhere + missing": _READ_ELSEWHERE,
    "words: input + wrong values": _WRONG_VALUES,
}
"""Patterns that need other remedies than their class: throttling, for example, is no fault of the service."""
REMEDIES_OF_EVIDENCE: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = (
    (
        re.compile(
            r"only supports? (?:Ampere|Hopper) GPUs|no kernel image is available for execution|"
            r"setup doesn't support bf16/gpu|bf16.*(?:Ampere|not supported on (?:your|this))"
        ),
        _OLDER_GPU,
    ),
    (
        re.compile(
            r"name resolution|Name or service not known|NameResolutionError|Failed to resolve|Could not resolve"
        ),
        _NO_ROUTE,
    ),
    (re.compile(r"GatedRepoError|gated repo"), _GATED),
    (re.compile(r"Watchdog caught collective operation timeout"), _WAITED_FOR_A_RANK),
)
"""Words of the evidence that need other remedies than the class and the pattern, for the main script of a job."""

OF_A_STEP: dict[str, tuple[str, ...]] = {
    "gpu_memory": (
        "set {step}.resources.instance_type to a type with more memory per GPU",
        "let the step take less at once: it has no hyperparameters, but {step}.code.arguments and {step}.environment",
    ),
    "host_memory": (
        "set {step}.resources.instance_type to a type with more memory",
        "read the data in pieces, or give each instance a share: {step}.inputs.<name>.distribution: ShardedByS3Key",
    ),
    "shared_memory": ("share less between the step's processes: /dev/shm cannot grow",),
    "disk": (
        "raise {step}.resources.volume_size_gb; on types with NVMe storage it has no effect, choose a larger type",
        "give each instance a share of the data: {step}.inputs.<name>.distribution: ShardedByS3Key",
    ),
    "capacity": ("set {step}.resources.instance_type to another type: a step has no attempts",),
    "quota": (
        "ask Service Quotas for '<type> for processing job usage'",
        "set {step}.resources.instance_type to a type the account may use",
    ),
    "time": (
        "raise {step}.resources.max_runtime",
        "set {step}.resources.instance_type to a faster one, or raise {step}.resources.instance_count",
    ),
    "data": ("check {step}.inputs.<name>: the prefix exists, lies in this region, may be read",),
}
"""What to change about a processing step; of the other classes it is what `REMEDIES` says."""
