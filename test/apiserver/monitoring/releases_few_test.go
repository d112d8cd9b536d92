//go:build linux && !releases

package monitoring

var releases = []string{"v1.24.3"}
