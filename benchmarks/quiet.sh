#!/usr/bin/env bash
# The tables that need a quiet machine, one after the other, each with the machine's limits:
#
#     benchmarks/quiet.sh [--quick] [PEERS]
#
# PEERS is a folder with ctranslate2, litgpt and x-transformers; what is not there is brought into it
# (pip, no dependencies that would pull another torch), and what cannot be had is a line in the tables.
# About 12 minutes on two cores. --quick: two rounds of the smallest shapes, nothing stored but a log.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

quick=; [[ "${1:-}" == --quick ]] && { quick=yes; shift; }
peers="${1:-${TMPDIR:-/tmp}/heedful-peers}"
python="${PYTHON:-.venv/bin/python}"
export PYTHONPATH="$PWD/src${PYTHONPATH:+:$PYTHONPATH}"
unset OMP_NUM_THREADS  # both cores, as a user has them

for package in ctranslate2 litgpt x_transformers; do
    [[ -d "$peers/$package" ]] && continue
    echo "bringing $package into $peers ..."
    more=; [[ $package == x_transformers ]] && more="einx einops loguru frozendict torch-einops-utils"
    [[ $package == litgpt ]] && more="lightning lightning-utilities pytorch-lightning jsonargparse"
    # shellcheck disable=SC2086  # several words are meant
    "$python" -m pip --disable-pip-version-check install --quiet --no-deps --target "$peers" \
        "${package//_/-}" $more || echo "$package: could not be brought; the tables say so"
done

load="$(cut -d' ' -f1 /proc/loadavg 2>/dev/null || echo unknown)"
echo "load before: $load"

part() {  # name, command ...: run it, say how long it took, go on if it fails
    local name="$1" began=$SECONDS; shift
    echo; echo "== $name"
    "$@" || echo "$name: failed"
    echo "== $name: $((SECONDS - began)) s"
}

if [[ $quick ]]; then
    part decoding "$python" benchmarks/bench_decode.py --quick --batches 1 --ctranslate2 "$peers"
    part rounding "$python" benchmarks/bench_rounding.py --quick
    exit
fi
part decoding "$python" benchmarks/bench_decode.py --rounds 5 --ctranslate2 "$peers"
part training "$python" benchmarks/bench_training.py --rounds 5 --peers "$peers"
stories="${STORIES:-}"
part rounding env OMP_NUM_THREADS=1 "$python" benchmarks/bench_rounding.py ${stories:+--stories "$stories"}
part growth env OMP_NUM_THREADS=1 "$python" benchmarks/bench_growth.py
