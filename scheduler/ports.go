package scheduler

import corev1 "k8s.io/api/core/v1"

// HostPort is a port of a node that a pod needs.
type HostPort struct {
	IP       string
	Protocol corev1.Protocol
	Number   int32
}

// anyAddress is the address of a port without one. It conflicts with all addresses.
const anyAddress = "0.0.0.0"

// HostPorts returns the ports of the node that a pod needs as long as it runs, as the plugin
// NodePorts counts them.
func HostPorts(pod *corev1.Pod) []HostPort {
	var all []HostPort
	add := func(c *corev1.Container) {
		for _, p := range c.Ports {
			if p.HostPort <= 0 {
				continue
			}
			port := HostPort{IP: anyAddress, Protocol: corev1.ProtocolTCP, Number: p.HostPort}
			if p.HostIP != "" {
				port.IP = p.HostIP
			}
			if p.Protocol != "" {
				port.Protocol = p.Protocol
			}
			all = append(all, port)
		}
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; IsSidecar(c) {
			add(c)
		}
	}
	for i := range pod.Spec.Containers {
		add(&pod.Spec.Containers[i])
	}
	return all
}

// Conflicts reports whether two pods cannot have both ports on one node.
func (p HostPort) Conflicts(other HostPort) bool {
	return p.Number == other.Number && p.Protocol == other.Protocol &&
		(p.IP == other.IP || p.IP == anyAddress || other.IP == anyAddress)
}
