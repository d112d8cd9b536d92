//go:build linux && !releases

package apiserver

// Releases returns the releases on whose API servers and schedulers a test runs.
func Releases() []string { return []string{Release} }
