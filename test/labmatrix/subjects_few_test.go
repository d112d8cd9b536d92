//go:build releases && !labmatrix

package labmatrix

// subjects are the oldest that PMK's public node agent knows, and the newest.
func subjects() []subject {
	return []subject{
		{release: "v1.21.3", layout: "pmk", api: "v1beta1"},
		{release: "v1.37.1", layout: "pmk", api: "v1"},
	}
}
