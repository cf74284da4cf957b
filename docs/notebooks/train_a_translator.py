# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Train a translator and look at its attention
#
# A small decoder learns French to English from the phrasebook that comes with the package.
# Nothing is downloaded. A training of `STEPS` steps takes a few minutes on two cores; set the
# environment variable `HEEDFUL_STEPS` for more or less.

# %%
import os
import tempfile
from pathlib import Path

from heedful.data.synthetic.phrasebook import phrasebook
from heedful.studies.text_training import prepare
from heedful.studies.translation import Translator, align
from heedful.training import Hooks, held_out_loss, train

STEPS = int(os.environ.get("HEEDFUL_STEPS", "400"))
PAIRS = 20_000 if STEPS >= 100 else 500
folder = Path(tempfile.mkdtemp(prefix="heedful-")) / "run"

# %% [markdown]
# ## Data
#
# Sentences come from a grammar. Test sentences share no sentence with training, on either side.

# %%
book = phrasebook(PAIRS)
for pair in book.test[:3]:
    print(pair.french, "→", pair.english)

# %% [markdown]
# ## Training
#
# One table describes everything: what is read, how it is cut into tokens, the decoder, the
# optimiser. The same table in a TOML file is what `heed train` takes.

# %%
settings = {
    "steps": STEPS,
    "evaluate_every": STEPS,
    "save_every": STEPS,
    "tensorboard": False,
    "compute": {"compile": False},
    "data": {"source": "phrasebook", "size": PAIRS, "tokenizer": "bpe", "vocabulary": 1_000,
             "width": 128, "rows": 8},
    "model": {"preset": "tiny", "width": 96, "layers": 2},
    "optimiser": {"kind": "muon", "learning_rate": 0.003, "matrix_learning_rate": 0.01},
    "schedule": {"warmup": STEPS // 20},
}  # fmt: skip
made = prepare(settings)
hooks = Hooks(evaluate=held_out_loss(made.held_out))
result = train(made.config, made.batches, folder, data=made.hashes, hooks=hooks)
assert result.finished
print(f"{result.step} steps; the run is in {folder}")

# %% [markdown]
# ## Translate
#
# Beam search keeps several translations alive; each comes with its log-probability.

# %%
translator = Translator.open(folder)
sentences = [pair.french for pair in book.test[:3]]
translations = list(translator.translate(sentences, beam=4, nbest=2))
for pair, translation in zip(book.test, translations, strict=False):
    print(pair.french, "→", translation.text, f"(expected: {pair.english})")
    for hypothesis in translation.hypotheses:
        print(f"    {hypothesis.log_probability:8.2f}  {hypothesis.text}")

# %% [markdown]
# ## Where it looked
#
# The decoder reads *source, mark, translation* as one sequence. From each output word its heads
# look back at the source; the heads that tell most are averaged.

# %%
for translation in translations:
    if not translation.text:
        continue
    seen = align(translator, translation)
    for word, link, share in zip(seen.target_words, seen.links, seen.weights, strict=True):
        print(f"{word:>12} ← {seen.source_words[link]} ({share[link]:.0%})")
    names = ", ".join(f"{head.layer}.{head.head}" for head in seen.heads)
    print("heads:", names)
    break

# %% [markdown]
# **Try:** train for 50 steps and for 800. When do the links become a dictionary? `heed study
# translation` compares such trainings with intervals, and `heed study heads` names every head
# of the run.
