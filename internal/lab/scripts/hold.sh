#!/bin/sh
# Starts the namespaces of {{.What}} of lab {{.Name}} and holds them. The argument is the id of
# a process in the network namespace that gets the other end of the link.
set -eu
# As on a node that systemd started: containers that are not root read what is made here.
umask 022
{{range .Roots}}echo $$ > {{q .}}/cgroup.procs
{{end}}exec unshare --cgroup --mount --net --uts --propagation slave sh {{q .Dir}}/init.sh "$1"
