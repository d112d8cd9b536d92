#!/bin/sh
# Makes the mounts and the network of {{.What}} of lab {{.Name}} in the namespaces that it is
# started in, then waits: as long as it lives, they do.
set -eu
cd /
{{range .Groups}}echo $$ > {{q .}}/cgroup.procs
{{end}}
echo {{q .Host}} > /proc/sys/kernel/hostname

# -n: or mount notes it in the machine's /run.
mount -n -t tmpfs -o mode=0755 lab /run
{{range $i, $p := .Kept}}mkdir -p /run/lab/kept/{{$i}}
mount --rbind {{q $p}} /run/lab/kept/{{$i}}
{{end}}
# The part of /var/lib/pmk-sched that is the node's own: labs may be below it.
mkdir -p /run/lab/state
mount --bind {{q .Dir}}/root{{.State}} /run/lab/state
# Links in /sys are those of this network namespace, and the control groups those
# of this control group namespace: the lab's own and what is below.
mount -t sysfs lab /sys
{{$v2 := false}}{{range .Trees}}{{if and (eq .Type "cgroup2") (eq .Path "/sys/fs/cgroup")}}{{$v2 = true}}{{end}}{{end}}{{if not $v2}}mount -t tmpfs -o mode=0755 lab /sys/fs/cgroup
{{end}}{{range .Trees}}mkdir -p {{q .Path}}
mount -t {{.Type}}{{with .Options}} -o {{.}}{{end}} lab {{q .Path}}
{{end}}{{range $from, $to := .TreeLinks}}ln -s {{q $to}} {{q $from}}
{{end}}
{{range $i, $p := .Covered}}if [ -d {{q $p}} ]; then
	mkdir -p /run/lab/cover/{{$i}}/upper /run/lab/cover/{{$i}}/work
	mount -t overlay -o lowerdir={{$p}},upperdir=/run/lab/cover/{{$i}}/upper,workdir=/run/lab/cover/{{$i}}/work lab {{$p}}
fi
{{end}}mkdir -p {{.State}}
mount --bind /run/lab/state {{.State}}
{{range $i, $p := .Kept}}mkdir -p {{q $p}}
mount --rbind /run/lab/kept/{{$i}} {{q $p}}
{{end}}
mkdir -p /run/lab/sysctl
{{range $name, $value := .Tunables}}if [ -e /proc/sys/{{$name}} ]; then
	echo {{$value}} > /run/lab/sysctl/{{base $name}}
	mount --bind /run/lab/sysctl/{{base $name}} /proc/sys/{{$name}}
fi
{{end}}
rm -f /etc/hosts /etc/resolv.conf /etc/hostname
printf '127.0.0.1 localhost\n::1 localhost\n' > /etc/hosts
{{range .Nodes}}echo {{.Address}} {{.Host}} >> /etc/hosts
{{end}}echo {{q .Host}} > /etc/hostname
echo '# A lab has no name server.' > /etc/resolv.conf

ip link set lo up
ip link add eth0 address {{.MAC}} type veth peer name {{.Link}} netns "$1"
ip address add {{.Address}}/{{.Prefix}} dev eth0
ip link set eth0 up
ip route add default via {{.Gateway}}
{{range .Nodes}}{{if and .Pods (ne .Address $.Address)}}ip route add {{.Pods}} via {{.Address}}
{{end}}{{end}}
{{range .Bound}}mkdir -p {{.}}
mount --bind {{q $.Dir}}/root{{.}} {{.}}
{{end}}mount --make-rshared /
echo $$ > {{q .HolderPID}}
exec sleep infinity
