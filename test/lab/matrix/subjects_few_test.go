//go:build releases && !labmatrix

package matrix

// subjects are the oldest that PMK's public node agent knows: all of a master has to be compiled for each where nothing is kept.
func subjects() []subject {
	return []subject{{release: "v1.21.3", layout: "pmk", api: "v1beta1"}}
}
