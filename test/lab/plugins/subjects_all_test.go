//go:build linux && pluginlab

package plugins

// subjects are a release of each form of the scheduling framework from 1.24 on.
func subjects() []subject {
	return []subject{
		{release: "v1.24.3", layout: "pmk", everyCredentials: true},
		{release: "v1.29.2", layout: "kubeadm"},
		{release: "v1.33.13", layout: "kubeadm"},
		{release: "v1.34.2", layout: "kubeadm"},
		{release: "v1.37.1", layout: "pmk"},
	}
}
