#!/bin/sh
# What only a real device can tell, in one table, within three minutes. Needs no toolchain and no network: only the program,
# built before with `cargo build --release -p leasehold-gpu-check`, beside this script, in $GPU_CHECK or in target/release.
# Exits as the program does, or with 2 where it can't be run.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
for program in "${GPU_CHECK:-}" "$here/leasehold-gpu-check" "$here/../../target/release/leasehold-gpu-check"; do
    [ -f "$program" ] || continue
    if [ -x "$program" ]; then
        exec timeout -k 5 170 "$program" "$@"
    fi
    echo "$program is here, but may not be executed: chmod +x it; where that is so already, copy it to a file system that is not mounted noexec, and name it in GPU_CHECK" >&2
    exit 2
done
echo "leasehold-gpu-check is not here: build it where there is a toolchain (cargo build --release -p leasehold-gpu-check), and put it beside this script" >&2
exit 2
