// Package adapters tests that a portable plugin behaves the same on every release: it compiles a probe into the
// kube-scheduler of each, leads it through that release's own framework, and compares what happened. Build tag adapters.
package adapters
