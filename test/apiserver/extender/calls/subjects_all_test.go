//go:build linux && releases

package calls

var releases = []string{"v1.22.2", "v1.24.3", "v1.33.13", "v1.37.1"}

// allFailures has [moreFailures] made too.
const allFailures = true

// Pods of the three schedulers that meet a failure: 500.
const (
	waitingPods   = 225
	ignoringPods  = 225
	bystanderPods = 50
)
