#!/bin/sh
# Makes the network of lab {{.Name}} in the namespaces that it is started in, then waits: as long
# as it lives, they do. A bridge connects the nodes with each other and with this machine.
set -eu
cd /
{{range .Groups}}echo $$ > {{q .}}/cgroup.procs
{{end}}
ip link set lo up
ip link add {{.Bridge}} type bridge
ip address add {{.Address}}/{{.Prefix}} dev {{.Bridge}}
ip link set {{.Bridge}} up
ip link add eth0 type veth peer name {{.Link}} netns "$1"
ip link set eth0 master {{.Bridge}} up

echo $$ > {{q .HolderPID}}
exec sleep infinity
