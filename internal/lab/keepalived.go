//go:build linux

package lab

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
)

// keeper gives the control-plane nodes' virtual address to one of them, as on PMK: to another node
// within seconds when that node is lost, and within a minute when its API server does not answer
// (platform9/nodelet, pf9-kube/defaults.env).
const (
	keeper           = "keepalived"
	keeperConfigPath = "/etc/keepalived/keepalived.conf"
)

// virtualAddress returns the address that moves between the control-plane nodes. It is invalid if
// there is only one, or another layout than PMK's.
func (l *Lab) virtualAddress() netip.Addr {
	subnet, err := netip.ParsePrefix(l.state.Subnet)
	if err != nil || l.state.Layout != LayoutPMK || l.state.Masters < 2 {
		return netip.Addr{}
	}
	return addressIn(subnet, movingAddress)
}

// keeperConfiguration renders keepalived's configuration for a node. check is the command that
// succeeds while the node's API server is ready. The node that has the address keeps it when
// another node starts.
func keeperConfiguration(n nodeConfig, check []string) []byte {
	var others []string
	priority := 100 // of the first node; the others follow in order
	for i, m := range n.members {
		if m.address == n.address {
			priority -= i
			continue
		}
		others = append(others, "    "+m.address.String())
	}
	return fmt.Appendf(nil, `global_defs {
  script_user root
  vrrp_garp_master_refresh 10
}

vrrp_script apiserver {
  script "%s"
  interval 10
  timeout 9
  fall 6
  rise 2
}

vrrp_instance apiserver {
  interface eth0
  state BACKUP
  nopreempt
  virtual_router_id 51
  priority %d
  advert_int 1
  unicast_src_ip %s
  unicast_peer {
%s
  }
  virtual_ipaddress {
    %s
  }
  track_script {
    apiserver
  }
}
`, strings.Join(check, " "), priority, n.address, strings.Join(others, "\n"), n.virtual)
}

// apiServerCheck is the command that asks the node's own API server whether it is ready. PMK's does
// not answer without a certificate.
func (n *Node) apiServerCheck(l layout) []string {
	return []string{n.binary("kubectl"), "--kubeconfig=" + l.admin, "--request-timeout=8s", "get", "--raw=/readyz"}
}

func keeperDaemon() daemon {
	return daemon{keeper, []string{
		keeper, "--dont-fork", "--log-console", "--log-detail", "--no-syslog", "--vrrp", "--use-file=" + keeperConfigPath,
		"--pid=" + filepath.Join("/run", keeper+".pid"), "--vrrp_pid=" + filepath.Join("/run", keeper+"-vrrp.pid"),
	}}
}

// startKeepers starts keepalived on every node when the API servers are ready, and waits until one
// of them answers at the virtual address.
func (u *bringUp) startKeepers(ctx context.Context) error {
	for _, n := range u.lab.masters() {
		if err := n.startDaemon(keeperDaemon(), u.machine.path); err != nil {
			return err
		}
	}
	return u.connect(ctx, keeper)
}
