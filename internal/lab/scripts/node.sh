#!/bin/sh
# Makes the mounts and the network of lab {{.Name}} in the namespaces that it is
# started in, then waits: as long as it lives, they do.
set -eu
cd /
echo {{q .Host}} > /proc/sys/kernel/hostname

mount -t tmpfs -o mode=0755 lab /run
{{range $i, $p := .Kept}}mkdir -p /run/lab/kept/{{$i}}
mount --rbind {{q $p}} /run/lab/kept/{{$i}}
{{end}}
# Links in /sys are those of this network namespace, control groups the machine's.
mkdir -p /run/lab/cgroup
mount --rbind /sys/fs/cgroup /run/lab/cgroup
mount -t sysfs lab /sys
mount --rbind /run/lab/cgroup /sys/fs/cgroup
umount -l /run/lab/cgroup

{{range $i, $p := .Covered}}if [ -d {{q $p}} ]; then
	mkdir -p /run/lab/cover/{{$i}}/upper /run/lab/cover/{{$i}}/work
	mount -t overlay -o lowerdir={{$p}},upperdir=/run/lab/cover/{{$i}}/upper,workdir=/run/lab/cover/{{$i}}/work lab {{$p}}
fi
{{end}}{{range $i, $p := .Kept}}mount --rbind /run/lab/kept/{{$i}} {{q $p}}
{{end}}
mkdir -p /run/lab/sysctl
{{range $name, $value := .Tunables}}if [ "$(cat /proc/sys/{{$name}} 2>/dev/null || echo none)" != none ]; then
	echo {{$value}} > /run/lab/sysctl/{{base $name}}
	mount --bind /run/lab/sysctl/{{base $name}} /proc/sys/{{$name}}
fi
{{end}}
rm -f /etc/hosts /etc/resolv.conf /etc/hostname
printf '127.0.0.1 localhost\n::1 localhost\n%s %s\n' {{.Address}} {{q .Host}} > /etc/hosts
echo {{q .Host}} > /etc/hostname
echo '# A lab has no name server.' > /etc/resolv.conf

ip link set lo up
ip link add eth0 type veth peer name {{.Link}} netns "$1"
ip address add {{.Address}}/{{.Prefix}} dev eth0
ip link set eth0 up
ip route add default via {{.Gateway}}

{{range .Bound}}mkdir -p {{.}}
mount --bind {{q $.Dir}}/root{{.}} {{.}}
{{end}}mount --make-rshared /
echo $$ > {{q .HolderPID}}
exec sleep infinity
