"""Fine-tunes BERT to name what ended a training job, from the message that it left.

The data is Sagefit's own table of failure patterns, whose rows carry real messages. What matters for memory is set by
hyperparameters under the names of Hugging Face's `TrainingArguments`: the planner reads them, and its remedies change
them. Checkpoints count steps of the optimizer, so an attempt with another micro-batch goes on where the last one ended.
"""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    HfArgumentParser,
    Trainer,
    TrainingArguments,
)
from transformers.trainer_utils import get_last_checkpoint

TEST_SHARE = 5  # every fifth message is kept for the test


@dataclass
class Options:
    """What is not one of the trainer's own arguments."""

    model_name: str = field(default="bert-large-uncased")
    max_length: int = field(default=512)
    train: str = field(default=os.environ.get("SM_CHANNEL_TRAIN", "modules/training-job"))
    model_dir: str = field(default=os.environ.get("SM_MODEL_DIR", "model"))


def messages(folder):
    """Messages and what they mean, in the order of the table."""
    rows = json.loads((Path(folder) / "failures.json").read_text(encoding="utf-8"))["patterns"]
    return [(text, row["class"]) for row in rows for text in row["examples"]]


def use_batch_of(arguments, path):
    """Makes the checkpoint's batch that of this attempt.

    The trainer of transformers 4 goes on with the checkpoint's, whatever its arguments say, so a smaller micro-batch
    would not help after a checkpoint (huggingface/transformers#43708, fixed in 5).
    """
    state = json.loads(path.read_text(encoding="utf-8"))
    state["train_batch_size"] = arguments.train_batch_size
    path.write_text(json.dumps(state, indent=2), encoding="utf-8")


def main():
    """Trains, tests, and saves the model."""
    parser = HfArgumentParser((Options, TrainingArguments))
    parser.set_defaults(
        output_dir=os.environ.get("SM_CHECKPOINT_DIR", "checkpoints"), save_strategy="epoch", save_total_limit=1
    )
    options, arguments = parser.parse_args_into_dataclasses()
    arguments.report_to = []
    pairs = messages(options.train)
    classes = sorted({kind for _, kind in pairs})
    tokenizer = AutoTokenizer.from_pretrained(options.model_name)
    model = AutoModelForSequenceClassification.from_pretrained(
        options.model_name, num_labels=len(classes), id2label=dict(enumerate(classes))
    )

    def encoded(part):
        # Padded to the full length: memory is that of the longest batch from the first step on.
        tokens = tokenizer(
            [text for text, _ in part], truncation=True, padding="max_length", max_length=options.max_length
        )
        return [
            {name: values[row] for name, values in tokens.items()} | {"labels": classes.index(kind)}
            for row, (_, kind) in enumerate(part)
        ]

    test = pairs[::TEST_SHARE]
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=encoded([pair for pair in pairs if pair not in test]),
        eval_dataset=encoded(test),
        compute_metrics=lambda answer: {"accuracy": float((answer.predictions.argmax(-1) == answer.label_ids).mean())},
    )
    last = get_last_checkpoint(arguments.output_dir) if Path(arguments.output_dir).is_dir() else None
    if last:
        use_batch_of(arguments, Path(last) / "trainer_state.json")
    trainer.train(resume_from_checkpoint=last)
    print(f"accuracy={trainer.evaluate()['eval_accuracy']:.4f}")
    trainer.save_model(options.model_dir)
    tokenizer.save_pretrained(options.model_dir)


if __name__ == "__main__":
    main()
