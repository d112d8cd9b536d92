# What a user does on a machine without a network and without Go.
set -euxo pipefail
cd /root
! command -v go
[ -z "$(ip route)" ]
pmk-sched bundle unpack bundle.tar.zst
trap 'pmk-lab down --name air' EXIT
pmk-lab up --branch v1.24.3 --layout kubeadm --nodes 2 --name air
on_node() { pmk-lab exec --name air -- "$@"; }
on_node pmk-sched detect
on_node pmk-sched build --branch v1.24.3 --with builtin:timestamp --tag localhost/air:v1.24.3 --load containerd
on_node pmk-sched build extender --archive /root/extender.tar
on_node pmk-sched deploy --name air --image localhost/air:v1.24.3
on_node pmk-sched verify --name air
on_node pmk-sched snapshot --to-file /root/cluster.tar.gz
pmk-sched simulate pending --snapshot cluster.tar.gz
