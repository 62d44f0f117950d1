"""A lack of memory that the script survives, and a mistake of its own that it does not."""

from common import steps  # type: ignore[import-not-found]

batch = {"input_ids": [1, 2], "attention_mask": [1, 1]}
for step in steps(50):
    if step == 3:
        print("RuntimeError: CUDA out of memory. Tried to allocate 3.00 GiB")
        print("retrying with half of the batch")
    if step == 7:
        print(batch["labels"])
