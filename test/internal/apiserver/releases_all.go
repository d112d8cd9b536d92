//go:build linux && releases

package apiserver

// Releases returns the releases on whose API servers and schedulers a test runs.
func Releases() []string { return []string{"v1.20.15", Release, "v1.29.2", "v1.34.2", "v1.37.1"} }
