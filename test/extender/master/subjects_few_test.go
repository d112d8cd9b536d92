//go:build linux && !releases

package master

var releases = []string{"v1.24.3"}
