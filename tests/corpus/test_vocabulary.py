"""What no pattern knows is told by the words of the last failed line, and nothing that only mentions them is."""

from __future__ import annotations

import pytest

from corpus import OF_FILES, ablation
from corpus.scoring import MEMORY
from sagefit.failures import diagnose
from sagefit_launcher import vocabulary
from sagefit_launcher.last_words import last_words

pytestmark = OF_FILES

SAID = [
    ("tile engine: could not reserve 3.2 GiB of vram for the atlas", "gpu_memory", "words: memory + gpu"),
    ("RuntimeError: hipMallocAsync returned error while allocating 96 MiB", "gpu_memory", ""),
    ("fatal: unable to allocate scratch buffer on device 1", "gpu_memory", ""),
    ("pool.PoolError: device memory exhausted (wanted 12884901888 bytes)", "gpu_memory", ""),
    ("ValueError: model does not fit into GPU memory", "gpu_memory", ""),
    ("arena error: mmap failed: ENOMEM", "host_memory", "words: memory"),
    ("error: realloc of 2172846080 bytes failed", "host_memory", ""),
    ("worker 3 exceeded its memory quota and was evicted", "host_memory", ""),
    ("fatal: CPU allocator: not enough free memory for 40 GiB", "host_memory", "words: memory + host"),
    ("error: the trainer ended with code: 137", "host_memory", "words: killed"),
    ("Fehler: nicht genug Speicher", "host_memory", ""),
    ("Error: 显存不足", "gpu_memory", ""),
    ("OSError: failed to create shared memory segment of 1 GiB", "shared_memory", ""),
    ("error: cannot extend /dev/shm/ring-7 to 64 MiB", "shared_memory", ""),
    ("IOError: the volume is full", "disk", "words: disk + full"),
    ("error: write failed, not enough free space", "disk", ""),
    ("ReaderError: the store '/opt/ml/input/data/train' does not exist", "data", "words: input + missing"),
    ("FileNotFoundError: /opt/ml/input/data/train/a.rec is missing", "data", ""),
    ("PermissionError: [Errno 13] Permission denied: '/opt/ml/model/a.bin'", "permission", "words: access + refused"),
    ("fatal: cuMemoryAllocate failed res=2", "gpu_memory", "words: memory + gpu"),
    ("error: the request exceeds memory available in /dev/shm", "shared_memory", ""),
    ("server error: unable to initialize shared memory region 'r0' to its size", "shared_memory", ""),
    ("ReaderError: shard-7 is not a valid tfrecord file", "data", "words: input + damaged"),
    ("xz: (stdin): Unexpected end of archive data", "data", ""),
    ("error: crc mismatch in block 17", "data", ""),
    ("error: stale file handle", "internal", ""),
    ("fatal: the host was lost", "internal", ""),
    ("HTTPError: connection aborted while getting https://example.org/a.bin", "internal", ""),
    ("error: GET https://example.org/a.bin: temporary failure in name resolution", "internal", ""),
    ("_duckdb.ConversionException: Conversion Error: CSV Error on Line: 33492", "data", ""),
    ("ValueError: cannot mmap an empty file", "data", ""),
    ("FileNotFoundError: /app/sst.zarr does not exist", "data", ""),
    ("XGBoostError: regression_obj.cu:83: label must be in (0, 1) for logistic regression", "data", ""),
    ("Error: Label must be nonnegative for count:poisson regression", "data", ""),
    ("ValueError: The least populated classes in y have only 1 member", "data", ""),
    ("RestException: PERMISSION_DENIED: user a does not have WRITE on model b", "permission", ""),
    ("error: Insufficient privileges to operate on schema 'A'", "permission", ""),
    ("run.sh: line 1:    42 Bus error               python train.py", "shared_memory", ""),
    ("rating run stopped: database disk image is malformed", "data", ""),
    ("AssertionError: ledger.csv lacks the columns ['amount', 'vat']", "data", ""),
    ("shard-01.bin.zst : Decoding error (36) : Restored data doesn't match checksum", "data", ""),
    ("clean.pl: blocks.tsv line 633: record 'P1' has residues outside the amino acid alphabet", "data", ""),
    ("C guard: resident set 401 MB over the node share of 400 MB", "host_memory", ""),
    ("OSError: [Errno 108] Cannot send after transport endpoint shutdown: '/lustre/a'", "internal", ""),
    ("status = StatusCode.INTERNAL", "internal", ""),
    ("psql:train.sql:5: FATAL:  terminating connection due to administrator command", "stopped", ""),
    ("SparkException: [SPARK_JOB_CANCELLED] Job 0 cancelled as part of cancellation of all jobs", "stopped", ""),
    ("notice: termination imminent, the agent has failed", "spot", ""),
    ("AccessControlException: Permission denied: user=yarn, access=WRITE", "permission", ""),
    ('error: pods is forbidden: User "ci" cannot create resource "pods" in API group ""', "permission", ""),
    ("error: quota was violated: requested 80, allowed 40", "quota", ""),
    ("fatal: job cancelled by the user", "stopped", "words: ended on request"),
    ("writing the output: 20% (117/558) \\Terminated", "stopped", ""),
    ("StoreError: could not find AWS credentials", "permission", ""),
    ("error: reached the maximum runtime of the job queue", "time", ""),
    ("error: request exceeds your vCPU limit", "quota", ""),
    ("fatal: memory usage of 12 GiB is above the container's limit", "host_memory", ""),
    ("PoolError: exit codes [0, None, -9]", "host_memory", "words: killed"),
    ("ParseError: cannot parse '1,5' as dtype f64 at column 'price'", "data", "words: input + damaged"),
    ("ReadError: shard-3.tar: invalid header", "data", ""),
    ("error: weights.bin: md5 mismatch", "data", ""),
    ("ValueError: feature matrix contains NaN", "data", "words: input + wrong values"),
    ("SchemaError: column names do not match", "data", ""),
    ("error: (-215) !_src.empty() in function 'cvtColor'", "data", ""),
    ("Error: the API key is missing", "permission", ""),
    ("LimitReached: time budget used up after 3600 s", "time", "words: time + over"),
    ("HTTPSConnectionPool(host='example.org', port=443): Read timed out.", "internal", ""),
    ("OSError: [Errno 5] Input/output error", "internal", "words: input/output error"),
    ("EOFError: expected 4096 bytes, read 112", "data", "words: input + damaged"),
    ("clean.pl: a.tsv line 9: expected 4 fields, got 3", "data", ""),
    ("ValueError: 3 labels are not finite", "data", "words: input + wrong values"),
    ("error: captions are missing for 12 images", "data", ""),
    ("错误:找不到训练文件 a.csv", "data", "words: input + missing"),
    ("tokenizer: could not open the cache: Permission denied (uid=1000)", "permission", "words: access + refused"),
    ("error: the job used up its walltime", "time", ""),
    ("error: the wall clock budget is used up in epoch 3; giving up", "time", ""),
    ("ValueError: the answer is not valid JSON", "data", "words: input + damaged"),
    ("md5sum: WARNING: 2 computed checksums: md5 did not match", "data", ""),
    ("OSError: unknown file format: 'a.grib'", "data", ""),
    ("ReadError: row 7: 'x1' cannot be parsed as float", "data", ""),
    ("fatal: the database is malformed", "data", ""),
    ("ParserError: Error tokenizing data. C error: Expected 3 fields in line 9, saw 4", "data", ""),
    ("ValueError: the dataset contains only one class", "data", "words: input + wrong values"),
    ("split.sh: data/test.tsv: No such file or directory", "data", "words: input elsewhere + missing"),
    ("pack: shard-2.npy: 12 bytes instead of 16", "data", "words: a file + a complaint"),
    ("a/b.csv:17: column 'x' missing", "data", ""),
    ("error: permission denied for relation features", "permission", "words: access + refused"),
    ('error: PUT failed, 500 {"code": "INTERNAL_ERROR"}', "internal", ""),
    ("UnavailableError: TPU worker 2 became unhealthy", "internal", ""),
    ("IndexError: Target 12 is out of bounds.", "data", "words: input + wrong values"),
    ("LossError: a label of 9 which is outside the valid range of [0, 3)", "data", ""),
    ("BoostError: labels must be in [0, num_class)", "data", ""),
    ("BoostError: label must be discrete values in the range of [0, num_class).", "data", ""),
]
ONLY_MENTIONED = [
    "RuntimeError: pin_memory needs a GPU",
    "ValueError: unknown memory format channels_last_3d",
    "ValueError: on_oom must be one of 'skip', 'raise'",
    "config error: memory_limit_exceeded_action: none",
    "error: no OOM was seen, the loss is NaN",
    "tip: to avoid out of memory errors lower the batch size",
    "error: if you run out of GPU memory, use --gradient-checkpointing",
    "error: this can exceed the memory of small GPUs",
    "TypeError: allocate() got an unexpected keyword argument 'failed'",
    "ImportError: cannot import name 'OutOfMemoryError' from 'torch'",
    "AssertionError: expected 'CUDA out of memory'",
    "KeyError: 'oom'",
    "RuntimeError: failed to allocate a port for the rendezvous",
    "RuntimeError: could not allocate 2 GPUs",
    "RuntimeError: CUDA error: an illegal memory access was encountered",
    "*** Error in `python': malloc(): memory corruption ***",
    "RuntimeError: out of resource: shared memory, Required: 147456, Hardware limit: 101376",
    "FileNotFoundError: shared memory segment psm_1 not found",
    "FileExistsError: [Errno 17] File exists: '/psm_71a2'",
    "error: the reader returned 137 rows, with 137 labels",
    "RuntimeError: the meta tensor has no storage",
    "ValueError: the partition function full rank is not defined",
    "error: index out of the buffer capacity",
    "ValueError: no action space for this environment",
    "ModuleNotFoundError: No module named 'space'",
    "ValueError: found 137 samples with 9 labels",
    "AssertionError: permission denied is what the test expects",
    "FileNotFoundError: [Errno 2] No such file or directory: 'config.yaml'",
    "RuntimeError: expected input to have 3 channels, but the alpha channel is missing",
    "ValueError: unexpected token not found in the vocabulary",
    "QueueError: no capacity left in the prefetch queue",
    "TimeoutError: timed out after 1800 seconds",
    "RuntimeError: the connection was reset by rank 3",
    "SyntaxError: unexpected end of file while parsing",
    "ValueError: the argument is not a list of images",
    "RuntimeError: heap corruption in the decoder of images",
    "error: connection lost, unexpected end of stream",
    "onnx error: not enough space: expected 318080, got 314240",
    "RuntimeError: the gradient of layer 3 contains NaN",
    "AssertionError: loss contains inf",
    "error: could not parse argument --lr as type float",
    "HTTPError: invalid header value b'a'",
    "RuntimeError: exit codes [0, 1, -19]",
    "RuntimeError: timed out waiting 5000ms for recv operation to complete",
    "ValueError: expected 4 fields, got 3",
    "RuntimeError: gradients are not finite",
    "error: the argument is missing for 1 option",
    "RuntimeError: rank 1 closed the connection, maybe it ran out of memory",
    "error: the peer is gone; perhaps its host has not enough memory",
    "train.py:17: name 'x' is not defined",
    "config.yaml: batch_size: expected an integer",
    "out/model.npz: saved 3 MiB",
    "error: argument --lr: 'x' cannot be parsed",
    "IndexError: index 12 is out of bounds for axis 0 with size 9",
]


@pytest.mark.parametrize(("line", "failure_class", "rule"), SAID)
def test_words_tell(line: str, failure_class: str, rule: str) -> None:
    match, said = last_words((), ["epoch 1", line])
    assert match
    assert (match.pattern.failure_class, said) == (failure_class, line)
    assert match.pattern.glob == rule or (not rule and match.pattern.glob.startswith("words: "))
    assert match.is_weak


@pytest.mark.parametrize("path", ["/opt/ml/code/train.sh", "out/log.txt", "/runtime"])
def test_what_the_operating_system_refuses_is_no_matter_of_a_role(path: str) -> None:
    line = f"PermissionError: [Errno 13] Permission denied: '{path}'"
    for found in (diagnose(log=["epoch 1", line]), diagnose(f"AlgorithmError: {line}")):
        assert found.failure_class == "permission"
        assert not any("role" in remedy for remedy in found.remedies)
        assert any("Dockerfile" in remedy for remedy in found.remedies)


@pytest.mark.parametrize("line", ONLY_MENTIONED)
def test_what_is_only_mentioned_tells_nothing(line: str) -> None:
    assert last_words((), ["epoch 1", line])[0] is None
    assert diagnose(log=["epoch 1", line]).failure_class == "code"


def test_what_the_diagnosis_says() -> None:
    line = "tile engine: could not reserve 3.2 GiB of vram for the atlas"
    diagnosis = diagnose("AlgorithmError: , exit code: 1", log=["epoch 1", line])
    assert (diagnosis.failure_class, diagnosis.confidence) == ("gpu_memory", "C")
    assert (diagnosis.pattern, diagnosis.evidence) == ("words: memory + gpu", line)
    roomy = diagnose("AlgorithmError: , exit code: 1", log=[line], utilisation={"gpu_memory": 55})
    assert roomy.failure_class == "gpu_memory"  # one large buffer may fail in a GPU that is half empty


def test_a_pattern_has_the_first_word() -> None:
    known = "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB"
    after = "error: cannot reserve the arena: not enough memory"
    assert diagnose(log=[known, after]).failure_class != "code"
    assert diagnose(log=[known]).pattern == "*CUDA out of memory. Tried to allocate*"


def test_who_ended_what_had_failed_did_not_make_it_fail() -> None:
    lack = "error: could not reserve 2 GiB of vram"
    assert diagnose(log=[lack, "KeyboardInterrupt"]).failure_class == "gpu_memory"
    assert diagnose(log=["all is well", "KeyboardInterrupt"]).failure_class == "stopped"


def test_the_lines_before_name_the_memory() -> None:
    before = "[W] Requested amount of GPU memory (68719476736 bytes) could not be allocated"
    assert diagnose(log=[before, "[E] OutOfMemory (no further information)"]).failure_class == "gpu_memory"
    assert diagnose(log=["all is well", "[E] OutOfMemory (no further information)"]).failure_class == "host_memory"


def test_what_the_script_survived_tells_nothing() -> None:
    lack = "error: could not reserve 2 GiB of vram"
    assert diagnose(log=[f"{lack}, skipping this batch", "step 3", "step 4"]).failure_class == "code"
    assert diagnose(log=[lack, *(f"step {n} loss 0.{n}" for n in range(4))]).failure_class == "code"
    assert diagnose(log=[f"WARNING {lack}", "KeyError: 'loss'"]).failure_class == "code"
    raised = ["Traceback (most recent call last):", '  File "a.py", line 1, in f', "    x = a[0]", "KeyError: 0"]
    assert diagnose(log=[*raised, "the cleanup could not reserve 2 GiB of vram"]).failure_class == "code"


@pytest.mark.parametrize("filler", ["out of ", "failed to ", "alloc ", "memory ", "malloc(", "1 ", "can't "])
def test_long_lines_are_read_once(filler: str) -> None:
    assert vocabulary.told((filler * 4000)[:4000]) in (None, vocabulary.told((filler * 4000)[:4000]))


def test_words_alone_take_nothing_for_memory() -> None:
    result = ablation.without_a_table(words=True)
    precision, recall = ablation.memory(result)
    assert precision >= 0.98
    assert recall >= 0.8


def test_words_tell_much_of_what_patterns_do_not_know_yet() -> None:
    before, after = (ablation.with_earlier_patterns(words=words) for words in (False, True))
    assert ablation.memory(after)[0] >= 0.98
    assert ablation.memory(after)[1] >= ablation.memory(before)[1] + 0.1
    assert after.accuracy >= before.accuracy + 0.1
    assert all(after.precision(name) >= 0.9 for name in MEMORY)
