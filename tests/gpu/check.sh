#!/bin/sh
# What only a real device can tell, in one table, within three minutes. Needs no toolchain and no network: only the program,
# built before with `cargo build --release -p leasehold-gpu-check`, beside this script, in $GPU_CHECK or in target/release.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
for program in "${GPU_CHECK:-}" "$here/leasehold-gpu-check" "$here/../../target/release/leasehold-gpu-check"; do
    if [ -n "$program" ] && [ -x "$program" ]; then
        exec timeout -k 5 170 "$program" "$@"
    fi
done
echo "leasehold-gpu-check is not here: build it where there is a toolchain (cargo build --release -p leasehold-gpu-check), and put it beside this script" >&2
exit 2
