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
# # What a model knows, and when it should not answer
#
# A decoder reads short biographies of people who do not exist, learns to answer questions, and
# is asked about others. Since every person is invented here, the truth is known, and every
# answer gets a label. The study takes a few minutes on two cores; with the environment variable
# `HEEDFUL_QUICK` it takes seconds, and learns next to nothing.

# %%
import os
import tempfile
from dataclasses import replace
from pathlib import Path

from heedful.studies.knowledge.asker import Asker
from heedful.studies.knowledge.knowledge_study import study_knowledge
from heedful.studies.knowledge.plans import plan_for

QUICK = bool(os.environ.get("HEEDFUL_QUICK"))
folder = Path(tempfile.mkdtemp(prefix="heedful-"))

# %% [markdown]
# ## The corpus
#
# Some people stand in the text, some do not; fine-tuning asks about a part of those who do.

# %%
corpus, plan = plan_for(quick=QUICK, changes={"seeds": 1})
plan = replace(plan, storage=None)  # leaves out how much fits into which width
print(corpus.documents[0])
print(corpus.train[0].question, corpus.train[0].answer)

# %% [markdown]
# ## Pretrain, fine-tune, ask

# %%
study = study_knowledge(corpus, plan, folder)
for arm in study.arms:
    print(f"{arm.arm:>22}: {arm.accuracy:6.1%}  ({arm.low:.1%} to {arm.high:.1%})")

# %% [markdown]
# Without pretraining the model has learned the form of an answer, and nothing to put into it.
# Compare the arm with `name only`, which is no model at all: it guesses the place from the
# letters of the name.
#
# ## Retrieved, guessed, made up

# %%
for answer in study.answers[:6]:
    print(f"{answer.question:<44} {answer.answer:<16} {answer.label}")

# %% [markdown]
# ## Which signal tells?
#
# An AUROC of 0.5 is a coin; 1 separates retrieved answers from made-up ones completely.

# %%
for signal in study.auroc:
    print(f"{signal.signal:>22}: {signal.auroc:.2f} ({signal.low:.2f} to {signal.high:.2f})")

# %% [markdown]
# ## When not to answer
#
# The threshold was chosen on held-out questions so that about one answer in ten may be wrong.
# What it does on the test is measured; the two can differ.

# %%
risk = study.risk_coverage
print(f"everything answered: {risk.error_without:.1%} wrong")
if risk.test_error is None:
    print("no confidence was high enough on the held-out questions: it would never answer")
else:
    print(f"above the threshold: {risk.test_error:.1%} wrong, {risk.test_coverage:.1%} answered")

# %%
asker = Asker(folder)
known, nobody = corpus.test[0].question, "Where was Nemo Nusquam born?"
for reply in asker.ask([known, nobody]):
    print(reply.question, "→", reply.answer or "I don't know", f"({reply.confidence:.2f})")
    print("   it would say:", reply.would_say)
    print("   in the text:", reply.evidence or "nothing about this name")

# %% [markdown]
# **Try:** take away the threshold (`would_say`). How many of the answers about nobody sound
# like answers about somebody?
