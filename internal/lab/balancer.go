//go:build linux

package lab

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/artifact/kubeadm"
)

const balancer = "haproxy"

// balancerConfiguration renders haproxy's configuration. A server that does not answer /readyz, for
// example because its etcd does not, gets no new connections. Its open connections stay open, as
// with most load balancers.
func balancerConfiguration(at netip.AddrPort, masters []*Node) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `global
  log stdout format raw local0
  maxconn 4000

defaults
  mode tcp
  log global
  timeout connect 1s
  timeout client 1h
  timeout server 1h
  timeout check 5s
  retries 2
  option redispatch

frontend apiservers
  bind %s
  default_backend apiservers

backend apiservers
  balance roundrobin
  option httpchk GET /readyz
  http-check expect status 200
  default-server check check-ssl verify none inter 1s fastinter 500ms fall 3 rise 1
`, at)
	for _, n := range masters {
		fmt.Fprintf(&b, "  server %s %s:%d\n", n.hostName, n.address, kubeadm.Port)
	}
	return []byte(b.String())
}

func balancerDaemon(config string) daemon {
	return daemon{balancer, []string{balancer, "-db", "-f", config}}
}

func (l *Lab) balancerAt() (netip.AddrPort, error) {
	subnet, err := netip.ParsePrefix(l.state.Subnet)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("read the lab's network: %w", err)
	}
	return netip.AddrPortFrom(addressIn(subnet, balancerAddress), kubeadm.Port), nil
}

// startBalancer starts the load balancer and waits until it accepts connections.
func (u *bringUp) startBalancer(ctx context.Context) error {
	at, err := u.lab.balancerAt()
	if err != nil {
		return err
	}
	network := u.lab.network()
	config := filepath.Join(network.dir, "haproxy.cfg")
	if err := os.WriteFile(config, balancerConfiguration(at, u.lab.masters()), 0o644); err != nil {
		return fmt.Errorf("write the load balancer's configuration: %w", err)
	}
	if err := network.startDaemon(balancerDaemon(config), u.machine.path); err != nil {
		return err
	}
	return network.waitFor(ctx, "the load balancer", balancer, func(ctx context.Context) error {
		connection, err := new(net.Dialer).DialContext(ctx, "tcp",
			net.JoinHostPort(at.Addr().String(), strconv.Itoa(kubeadm.Port)))
		if err != nil {
			return err
		}
		return connection.Close()
	})
}
