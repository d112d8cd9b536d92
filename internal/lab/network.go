//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
)

const (
	// podCIDR and serviceCIDR exist only in the lab's network namespaces, so all labs use the same.
	podCIDR     = "10.244.0.0/16"
	serviceCIDR = "10.96.0.0/16"
	serviceIP   = "10.96.0.1"
)

// subnetPools are the networks of which each lab gets a /24: first 198.18.0.0/15, which is reserved
// for tests and not routed (RFC 2544), then private ones.
func subnetPools() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("198.18.0.0/15"),
		netip.MustParsePrefix("10.213.0.0/16"),
		netip.MustParsePrefix("172.27.0.0/16"),
		netip.MustParsePrefix("192.168.128.0/17"),
	}
}

// chooseSubnet returns the first /24 of the pools that does not overlap a network in use.
func chooseSubnet(pools, used []netip.Prefix) (netip.Prefix, error) {
	for _, pool := range pools {
		a := pool.Masked().Addr().As4()
		count := 1 << (24 - pool.Bits())
		for i := range count {
			n := (uint32(a[0])<<16 | uint32(a[1])<<8 | uint32(a[2])) + uint32(i)
			subnet := netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(n >> 16), byte(n >> 8), byte(n), 0}), 24)
			if !overlapsAny(subnet, used) {
				return subnet, nil
			}
		}
	}
	return netip.Prefix{},
		errors.New("choose a network for the lab: every candidate conflicts with a route of this machine")
}

func overlapsAny(p netip.Prefix, used []netip.Prefix) bool {
	for _, u := range used {
		if p.Overlaps(u) {
			return true
		}
	}
	return false
}

// machineNetworks returns the networks of the machine's addresses and routes, except the default
// route.
func machineNetworks() ([]netip.Prefix, error) {
	var used []netip.Prefix
	add := func(n *net.IPNet) {
		if n == nil {
			return
		}
		ones, _ := n.Mask.Size()
		if addr, ok := netip.AddrFromSlice(n.IP); ok && ones > 0 {
			used = append(used, netip.PrefixFrom(addr.Unmap(), ones).Masked())
		}
	}
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, fmt.Errorf("list the machine's routes: %w", err)
	}
	for _, r := range routes {
		add(r.Dst)
	}
	addrs, err := netlink.AddrList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, fmt.Errorf("list the machine's addresses: %w", err)
	}
	for _, a := range addrs {
		add(a.IPNet)
	}
	return used, nil
}

// Last byte of the addresses in a lab's network: this machine, the first node, the virtual address
// that moves between control-plane nodes, and the network's own host, which runs the load balancer.
const (
	machineAddress  = 1
	firstNode       = 2
	movingAddress   = 253
	balancerAddress = 254
)

func addressIn(subnet netip.Prefix, last int) netip.Addr {
	a := subnet.Addr().As4()
	a[3] = byte(last)
	return netip.AddrFrom4(a)
}

// hardwareAddress returns the MAC address for an address in the lab's network. It stays the same
// when a node is started again: the other nodes know it.
func hardwareAddress(address netip.Addr) string {
	a := address.As4()
	return net.HardwareAddr{0x02, 0x00, a[0], a[1], a[2], a[3]}.String()
}

const bridge = "br0"

// plug connects a node to the lab's network, unplug disconnects it.
func (n *Node) plug(ctx context.Context, path string) error {
	return n.lab.network().run(ctx, path, "ip", "link", "set", n.port(), "master", bridge, "up")
}

func (n *Node) unplug(ctx context.Context, path string) error {
	return n.lab.network().run(ctx, path, "ip", "link", "set", n.port(), "nomaster")
}

// lockNetworks serializes the choice of networks. An abstract socket is a lock that leaves no file
// and that the kernel releases when the process ends.
func lockNetworks(ctx context.Context) (unlock func(), err error) {
	deadline := time.Now().Add(time.Minute)
	for {
		var lc net.ListenConfig
		l, err := lc.Listen(ctx, "unix", "@pmk-sched-lab-network")
		if err == nil {
			return func() { l.Close() }, nil
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("choose a network for the lab: another lab has held the lock for a minute: %w", err)
		}
		if err := clock.Sleep(ctx, 50*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// setUpLink sets the machine's address on the lab's network link.
func setUpLink(name string, subnet netip.Prefix) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find link %s: %w", name, err)
	}
	host := addressIn(subnet, machineAddress)
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: host.AsSlice(), Mask: net.CIDRMask(subnet.Bits(), 32)}}
	if err := netlink.AddrReplace(link, addr); err != nil {
		return fmt.Errorf("give link %s the address %s: %w", name, host, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("set link %s up: %w", name, err)
	}
	return nil
}

// removeLink removes the machine's end, and with it the other end. The kernel does the same a
// moment after the network namespace has ended.
func removeLink(name string) error {
	link, err := netlink.LinkByName(name)
	var gone netlink.LinkNotFoundError
	if errors.As(err, &gone) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find link %s: %w", name, err)
	}
	if err := netlink.LinkDel(link); err != nil {
		if _, again := netlink.LinkByName(name); errors.As(again, &gone) {
			return nil
		}
		return fmt.Errorf("remove link %s: %w", name, err)
	}
	return nil
}
