//go:build linux && !pluginlab

package plugins

func subjects() []subject {
	return []subject{{release: "v1.24.3", layout: "pmk", everyCredentials: true}}
}
