//go:build linux && releases && !pluginlab

package pluginlab

// subjects are two releases beside that of every day.
func subjects() []subject {
	return []subject{
		{release: "v1.24.3", layout: "pmk", everyCredentials: true},
		{release: "v1.29.2", layout: "kubeadm"},
		{release: "v1.37.1", layout: "pmk"},
	}
}
