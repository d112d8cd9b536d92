//go:build linux && !releases

package calls

var releases = []string{"v1.24.3"}

// allFailures has [moreFailures] made too.
const allFailures = false

// Pods of the three schedulers that meet a failure.
const (
	waitingPods   = 30
	ignoringPods  = 30
	bystanderPods = 10
)
