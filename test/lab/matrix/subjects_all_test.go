//go:build linux && labs

package matrix

// subjects returns the releases that change the behavior of a node or a scheduler, with both
// layouts of control-plane nodes.
func subjects() []subject {
	return []subject{
		{release: "v1.20.15", layout: "pmk", api: "v1beta1"},
		{release: "v1.21.3", layout: "pmk", api: "v1beta1"}, // of PMK's public node agent
		{release: "v1.22.2", layout: "pmk", api: "v1beta2"},
		{release: "v1.24.3", layout: "pmk", api: "v1beta3"},
		{release: "v1.24.3", layout: "kubeadm", api: "v1beta3"},
		{release: "v1.25.4", layout: "kubeadm", api: "v1"},
		{release: "v1.28.15", layout: "kubeadm", api: "v1"},
		{release: "v1.29.2", layout: "kubeadm", api: "v1"},
		{release: "v1.31.0", layout: "kubeadm", api: "v1"},
		{release: "v1.34.2", layout: "kubeadm", api: "v1"},
		{release: "v1.36.3", layout: "kubeadm", api: "v1"},
		{release: "v1.37.1", layout: "pmk", api: "v1"},
	}
}
