#!/usr/bin/env bash
# Trains the example runs and bundles them into examples/paper.zip. Use an idle machine: two of the studies measure speed.
#
#   GAN_DATA_DIR=~/mnist-t10k examples/record.sh HOME_FOLDER
#
# GAN_DATA_DIR: a folder with only the 10,000 test images of MNIST (t10k-images-idx3-ubyte.gz).
# A second start skips the studies that HOME_FOLDER has.
set -euo pipefail
: "${GAN_DATA_DIR:?set it to a folder that holds t10k-images-idx3-ubyte.gz and no training images}"
home=${1:?usage: examples/record.sh HOME_FOLDER}
cd "$(dirname "$0")/.."
gan() { .venv/bin/python -m gan_runtime "$@" --home "$home"; }

# The rate that grows with the batch, Radford et al.'s momentum, and the generator's average: digits at every batch (docs/dcgan.md).
repaired=(--set dataset=mnist --set accelerator=cpu --set adam_beta_1=0.5
          --set learning_rate_generator=0.0002 --set learning_rate_discriminator=0.0002 --set learning_rate_scaling=linear
          --set ema_decay=0.98 --set samples_from=ema)
short=("${repaired[@]}" --set batch_size_global=256 --set epochs=3)
profiled=(--set profile_steps=10 --set count_kernels=yes)

study() { # TITLE QUESTION OPTIONS…
    local title=$1 question=$2
    shift 2
    grep -qsF "\"title\":\"$title\"" "$home"/runs/*/journal-supervisor.jsonl || gan study "$question" "$@" --title "$title"
}

mkdir -p "$home"
study "Batch size on MNIST" batch_size --values 64,128,256,512 --repeats 3 "${repaired[@]}" --set replicas=8 --set epochs=12
study "Replicas on MNIST" replicas --values 1,8 --repeats 3 "${short[@]}"
study "Precision on MNIST" precision --values float32,mixed_bfloat16 --repeats 3 "${short[@]}" "${profiled[@]}"
study "XLA on MNIST" xla --values off,jit,autocluster --repeats 3 "${short[@]}" "${profiled[@]}"
study "Rate schedule on MNIST" schedule --repeats 1 "${repaired[@]}" --set batch_size_global=128 --set replicas=8 \
    --set epochs=12 --set restart_epochs=4

# Fig. 11: the loss surfaces along the descent of the paper's setting at batch 512, repaired.
if ! grep -qsF paper-512-repaired "$home"/runs/paper-*/spec.json; then
    gan train --preset paper --set batch_size_global=512 --set learning_rate_scaling=linear --set adam_beta_1=0.5 \
        --set accelerator=cpu --set ema_decay=0.98 --set samples_from=ema --set name=paper-512-repaired
    gan surface "$(basename "$(ls -d "$home"/runs/paper-* | tail -1)")"
fi

.venv/bin/python examples/fewer_grays.py "$home"
mapfile -t runs < <(ls "$home/runs")
gan bundle "${runs[@]}" --to examples/paper.zip --prefix example- --overwrite
