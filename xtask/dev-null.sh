#!/usr/bin/env bash
# Sees to it that /dev/null is a device. A build tool that runs as root can replace it by a file, and
# what others write there is then read back as their input, long after and with strange errors.
set -euo pipefail

[ -c /dev/null ] && exit 0
echo "/dev/null is not a device: making it one again" >&2
if ! { rm -f /dev/null && mknod -m 666 /dev/null c 1 3; }; then
    echo "run as root: rm -f /dev/null && mknod -m 666 /dev/null c 1 3" >&2
    exit 1
fi
