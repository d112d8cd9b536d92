// Package adapters tests that a portable plugin behaves the same on every release: it compiles a
// probe into the kube-scheduler of each release, runs it through that release's framework, and
// compares the calls with a golden transcript. It also compares scheduler.PodRequests for random
// pods with the count of the release's scheduler; SEED repeats the pods of a run. Build tag
// adapters.
package adapters
