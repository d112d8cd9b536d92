#!/bin/sh
# Starts the namespaces of lab {{.Name}} and holds them. The argument is the id of
# a process in the network namespace that gets the other end of the link.
set -eu
{{range .Roots}}echo $$ > {{q .}}/cgroup.procs
{{end}}exec unshare --cgroup --mount --net --uts --propagation slave sh {{q .Dir}}/node.sh "$1"
