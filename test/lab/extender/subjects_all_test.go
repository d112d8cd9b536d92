//go:build linux && releases

package extender

var releases = []string{"v1.22.2", "v1.24.3", "v1.33.13", "v1.37.1"}
