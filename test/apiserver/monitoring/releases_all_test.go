//go:build linux && releases

package monitoring

// One of each form of the metrics, and the newest.
var releases = []string{"v1.20.15", "v1.24.3", "v1.29.2", "v1.37.1"}
