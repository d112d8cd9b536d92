#!/usr/bin/env bash
# Installs the Debian packages that the lab and the tests run, if any of them is missing.
set -euo pipefail

packages=(etcd-server containerd runc containernetworking-plugins busybox-static iptables iproute2 util-linux procps buildah ca-certificates)

missing=()
for package in "${packages[@]}"; do
	dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" != 0 ]; then
	echo "missing packages: run as root: apt-get install --no-install-recommends ${missing[*]}" >&2
	exit 1
fi
echo "installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -q >/dev/null
apt-get install -qy --no-install-recommends "${missing[@]}" >/dev/null
