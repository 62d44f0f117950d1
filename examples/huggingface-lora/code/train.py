"""Fine-tunes a small language model with Hugging Face's Trainer: all of it, or LoRA adapters alone.

The model is made here, from a configuration and random weights, and its tokens are bytes, so that nothing is
downloaded: read `base_model` as the line where `from_pretrained` stands in your own job.
"""

import argparse
import json
import os
from pathlib import Path

import torch
import transformers
from peft import LoraConfig, get_peft_model
from torch.utils.data import Dataset
from transformers import ByT5Tokenizer, LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

TOKENIZER = ByT5Tokenizer()  # a token for each byte, and needs no file


class Windows(Dataset):
    """The first ``most`` windows of a text, all of one length; the model itself shifts labels by one."""

    def __init__(self, path, length, most=None):
        ids = TOKENIZER(path.read_text(encoding="utf-8"), add_special_tokens=False)["input_ids"]
        self.rows = torch.tensor(ids).unfold(0, length, length)[:most]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return {"input_ids": self.rows[index], "labels": self.rows[index]}


def base_model(options):
    """A Llama of random weights. A real job loads one: `AutoModelForCausalLM.from_pretrained(name)`."""
    config = LlamaConfig(
        vocab_size=len(TOKENIZER),
        hidden_size=options.hidden_size,
        num_hidden_layers=options.layers,
        num_attention_heads=8,
        num_key_value_heads=8,
        intermediate_size=1408,
        max_position_embeddings=options.max_seq_length,
        use_cache=False,
    )
    return LlamaForCausalLM(config)


def adapted(model, options):
    """``model`` with its weights frozen and two small matrices beside each linear layer, which alone are trained."""
    config = LoraConfig(
        r=options.lora_r, lora_alpha=2 * options.lora_r, target_modules="all-linear", task_type="CAUSAL_LM"
    )
    return get_peft_model(model, config)


def main():
    data = Path(__file__).parents[2] / "data" / "handbook"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", choices=["full", "lora"], default="lora")
    parser.add_argument("--lora_r", type=int, default=16, help="rank of the adapters")
    parser.add_argument("--per_device_train_batch_size", type=int, default=4)
    parser.add_argument("--max_seq_length", type=int, default=64, help="bytes of a window")
    parser.add_argument("--max_steps", type=int, default=8)
    parser.add_argument("--save_steps", type=int, default=4, help="steps between two checkpoints; 0 for none")
    parser.add_argument("--learning_rate", type=float, default=None)
    parser.add_argument("--layers", type=int, default=10)
    parser.add_argument("--hidden_size", type=int, default=512)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--train", type=Path, default=Path(os.environ.get("SM_CHANNEL_TRAIN", data)))
    parser.add_argument("--model-dir", type=Path, default=Path(os.environ.get("SM_MODEL_DIR", "model")))
    parser.add_argument("--checkpoint-dir", default=os.environ.get("SM_CHECKPOINT_DIR", "checkpoints"))
    options = parser.parse_args()
    transformers.set_seed(options.seed)
    model = base_model(options)
    if options.method == "lora":
        model = adapted(model, options)
    trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    print(f"trained_parameters={trained} of {sum(parameter.numel() for parameter in model.parameters())}")
    arguments = TrainingArguments(
        output_dir=options.checkpoint_dir,
        per_device_train_batch_size=options.per_device_train_batch_size,
        per_device_eval_batch_size=options.per_device_train_batch_size,
        max_steps=options.max_steps,
        # Adapters begin at nothing and take larger steps than the weights themselves.
        learning_rate=options.learning_rate or (3e-3 if options.method == "lora" else 1e-3),
        lr_scheduler_type="constant",
        logging_steps=1,
        save_strategy="steps" if options.save_steps else "no",
        save_steps=options.save_steps or options.max_steps,
        save_total_limit=1,
        dataloader_pin_memory=torch.cuda.is_available(),
        report_to="none",
        disable_tqdm=True,
        seed=options.seed,
    )
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=Windows(options.train / "train.txt", options.max_seq_length),
        eval_dataset=Windows(options.train / "test.txt", options.max_seq_length, most=24),
    )
    Path(options.checkpoint_dir).mkdir(parents=True, exist_ok=True)
    trainer.train(resume_from_checkpoint=get_last_checkpoint(options.checkpoint_dir))  # None: from the start
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    loss = trainer.evaluate()["eval_loss"]
    print(f"bits_per_byte={loss / torch.log(torch.tensor(2.0)).item():.4f}")
    trainer.save_model(str(options.model_dir))  # of LoRA the adapters only
    (options.model_dir / "results.json").write_text(json.dumps({"losses": losses, "trained": trained}, indent=2) + "\n")


if __name__ == "__main__":
    main()
