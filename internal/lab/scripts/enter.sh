#!/bin/sh
# Runs a command on {{.What}} of lab {{.Name}}: enter COMMAND [ARGUMENT ...]
set -eu
# As on a node that systemd started: containers that are not root read what is made here.
umask 022
fail() { echo "{{.What}} of lab {{.Name}} is not running: $1" >&2; exit 125; }
[ $# -gt 0 ] || { echo "usage: enter COMMAND [ARGUMENT ...]" >&2; exit 125; }
holder=
read -r holder 2>/dev/null < {{q .HolderPID}} || fail "its namespaces were never made"
grep -qsx "$holder" {{q (index .Groups 0)}}/cgroup.procs || fail "process $holder, which held its namespaces, is gone"
{{range .Groups}}echo $$ > {{q .}}/cgroup.procs
{{end}}exec nsenter --target "$holder" --cgroup --mount --net --uts -- sh -c 'cd "$0" 2>/dev/null || cd /; exec "$@"' "$PWD" "$@"
