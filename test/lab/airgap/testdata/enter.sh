# Runs a command in the root directory $1, in a network namespace with only a loopback interface. The
# root is a mount of its own, since labs enter mount namespaces.
set -eu
root=$1
shift
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
ip link set lo up
cd "$root"
pivot_root . mnt
umount -l /mnt
exec env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
