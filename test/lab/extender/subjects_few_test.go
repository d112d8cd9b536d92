//go:build linux && !releases

package extender

var releases = []string{"v1.24.3"}
