#!/usr/bin/env bash
# Installs the Debian packages of the programs that the lab and the tests run, if any of them is missing. A program that
# came from elsewhere is left alone: Debian's containerd would throw out Docker's. No service is started, now or at boot.
# Arguments are more packages, each with its programs: 'chromium chromium'.
set -euo pipefail

# A package and its programs.
needed=(
	'etcd-server etcd'
	'containerd containerd ctr containerd-shim-runc-v2'
	'runc runc'
	'containernetworking-plugins host-local loopback portmap'
	'iptables iptables iptables-save'
	'iproute2 ip'
	'util-linux nsenter unshare'
	'mount mount'
	'procps pkill'
	'curl curl'
	'openssl openssl'
	'buildah buildah'
	'prometheus prometheus promtool'
	'haproxy haproxy'
	'keepalived keepalived'
	"$@"
)
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/cni/bin:/usr/lib/cni:/usr/libexec/cni

missing=()
for line in "${needed[@]}"; do
	read -r package programs <<<"$line"
	for program in $programs; do
		command -v "$program" >/dev/null || { missing+=("$package"); break; }
	done
done
if [ ! -x /bin/busybox ] || ldd /bin/busybox >/dev/null 2>&1; then
	missing+=(busybox-static)
fi
[ -s /etc/ssl/certs/ca-certificates.crt ] || missing+=(ca-certificates)
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	echo "missing packages: on Debian, run as root: apt-get install --no-install-recommends ${missing[*]}" >&2
	exit 1
fi
echo "installing: ${missing[*]}"
if [ ! -e /usr/sbin/policy-rc.d ]; then
	trap 'rm -f /usr/sbin/policy-rc.d' EXIT
	printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
	chmod 755 /usr/sbin/policy-rc.d
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -q >/dev/null
apt-get install -qy --no-install-recommends -o DPkg::Lock::Timeout=300 "${missing[@]}" >/dev/null
if [ -d /run/systemd/system ]; then
	# PACKAGE:SERVICE: the lab and the tests start these programs themselves
	for service in etcd-server:etcd containerd:containerd prometheus:prometheus haproxy:haproxy keepalived:keepalived \
		docker-registry:docker-registry redis-server:redis-server; do
		case " ${missing[*]} " in *" ${service%:*} "*) systemctl disable --quiet "${service#*:}.service" ;; esac
	done
fi
